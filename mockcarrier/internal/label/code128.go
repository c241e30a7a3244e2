package label

// code128 returns text as a Code 128 symbol in code set B: the widths of bars
// and spaces in modules, a bar first. What is no printable ASCII is encoded as
// a question mark.
func code128(text string) []int {
	const startB, stop, modulus = 104, 106, 103
	symbols := []int{startB}
	sum := startB
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < ' ' || c > '~' {
			c = '?'
		}
		value := int(c - ' ')
		symbols = append(symbols, value)
		sum += (i + 1) * value
	}
	symbols = append(symbols, sum%modulus, stop)

	var widths []int
	for _, s := range symbols {
		for _, digit := range code128Patterns[s] {
			widths = append(widths, int(digit-'0'))
		}
	}
	return widths
}

// code128Patterns has the widths of each symbol of ISO/IEC 15417, by its value.
var code128Patterns = [...]string{
	"212222", "222122", "222221", "121223", "121322", "131222", "122213", "122312", "132212", "221213",
	"221312", "231212", "112232", "122132", "122231", "113222", "123122", "123221", "223211", "221132",
	"221231", "213212", "223112", "312131", "311222", "321122", "321221", "312212", "322112", "322211",
	"212123", "212321", "232121", "111323", "131123", "131321", "112313", "132113", "132311", "211313",
	"231113", "231311", "112133", "112331", "132131", "113123", "113321", "133121", "313121", "211331",
	"231131", "213113", "213311", "213131", "311123", "311321", "331121", "312113", "312311", "332111",
	"314111", "221411", "431111", "111224", "111422", "121124", "121421", "141122", "141221", "112214",
	"112412", "122114", "122411", "142112", "142211", "241211", "221114", "413111", "241112", "134111",
	"111242", "121142", "121241", "114212", "124112", "124211", "411212", "421112", "421211", "212141",
	"214121", "412121", "111143", "111341", "131141", "114113", "114311", "411113", "411311", "113141",
	"114131", "311141", "411131", "211412", "211214", "211232", "2331112",
}

// bars calls draw for each bar of text: where it begins and how wide it is, in
// modules. It returns the width of the whole symbol.
func bars(text string, draw func(at, width int)) int {
	at := 0
	for i, width := range code128(text) {
		if i%2 == 0 {
			draw(at, width)
		}
		at += width
	}
	return at
}
