package label

import (
	"fmt"
	"strings"
)

// glyphName returns the name of r's glyph (Adobe Glyph List).
func glyphName(r rune) string {
	if name, ok := latin[r]; ok {
		return name
	}
	return fmt.Sprintf("uni%04X", r)
}

// fold returns s in ASCII: letters without their accents, a question mark for
// what has no Latin base.
func fold(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r >= 0x300 && r <= 0x36f: // combining accents
		case digraphs[r] != "":
			b.WriteString(digraphs[r])
		case latin[r] != "":
			b.WriteByte(latin[r][0])
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// digraphs are the letters whose glyph's name does not begin with their base.
var digraphs = map[rune]string{
	'Æ': "AE", 'æ': "ae", 'Œ': "OE", 'œ': "oe", 'ß': "ss", 'Ð': "D", 'ð': "d",
	'Þ': "Th", 'þ': "th", 'ı': "i", '–': "-", '—': "-", '’': "'", '·': ".", '€': "EUR",
}

// latin has the glyph names of the letters of Europe's Latin alphabets that are
// not in ASCII.
var latin = names(`
	ÀAgrave ÁAacute ÂAcircumflex ÃAtilde ÄAdieresis ÅAring ÆAE ÇCcedilla ÈEgrave ÉEacute ÊEcircumflex
	ËEdieresis ÌIgrave ÍIacute ÎIcircumflex ÏIdieresis ÐEth ÑNtilde ÒOgrave ÓOacute ÔOcircumflex ÕOtilde
	ÖOdieresis ØOslash ÙUgrave ÚUacute ÛUcircumflex ÜUdieresis ÝYacute ÞThorn ßgermandbls àagrave áaacute
	âacircumflex ãatilde äadieresis åaring æae çccedilla èegrave éeacute êecircumflex ëedieresis ìigrave
	íiacute îicircumflex ïidieresis ðeth ñntilde òograve óoacute ôocircumflex õotilde öodieresis øoslash
	ùugrave úuacute ûucircumflex üudieresis ýyacute þthorn ÿydieresis ĀAmacron āamacron ĂAbreve ăabreve
	ĄAogonek ąaogonek ĆCacute ćcacute ČCcaron čccaron ĎDcaron ďdcaron ĐDcroat đdcroat ĒEmacron ēemacron
	ĖEdotaccent ėedotaccent ĘEogonek ęeogonek ĚEcaron ěecaron ĞGbreve ğgbreve ĢGcommaaccent ģgcommaaccent
	ĪImacron īimacron ĮIogonek įiogonek İIdotaccent ıdotlessi ĶKcommaaccent ķkcommaaccent ĹLacute ĺlacute
	ĻLcommaaccent ļlcommaaccent ĽLcaron ľlcaron ŁLslash łlslash ŃNacute ńnacute ŅNcommaaccent ņncommaaccent
	ŇNcaron ňncaron ŌOmacron ōomacron ŐOhungarumlaut őohungarumlaut ŒOE œoe ŔRacute ŕracute ŘRcaron řrcaron
	ŚSacute śsacute ŞScedilla şscedilla ŠScaron šscaron ȘScommaaccent șscommaaccent ŢTcommaaccent
	ţtcommaaccent ŤTcaron ťtcaron ŪUmacron ūumacron ŮUring ůuring ŰUhungarumlaut űuhungarumlaut ŲUogonek
	ųuogonek ŸYdieresis ŹZacute źzacute ŻZdotaccent żzdotaccent ŽZcaron žzcaron €Euro –endash —emdash
	’quoteright ·periodcentered`)

func names(table string) map[rune]string {
	m := make(map[rune]string)
	for _, entry := range strings.Fields(table) {
		for i, r := range entry {
			if i == 0 {
				m[r] = entry[len(string(r)):]
			}
		}
	}
	return m
}
