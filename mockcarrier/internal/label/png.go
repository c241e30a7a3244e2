package label

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
)

// PNG returns the labels, 400 by 600 pixels each, one below the other.
func PNG(labels []Label) ([]byte, error) {
	img := paper(max(1, len(labels)))
	for i, l := range labels {
		if !l.Blank {
			canvas{img, i * height}.draw(l)
		}
	}
	return encode(img)
}

// width and height are those of a picture, in pixels.
const width, height = 400, 600

func paper(pages int) *image.Paletted {
	return image.NewPaletted(image.Rect(0, 0, width, pages*height), color.Palette{color.White, color.Black})
}

func encode(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

type canvas struct {
	*image.Paletted
	top int
}

func (c canvas) draw(l Label) {
	const left = 20
	c.text(left, 20, 6, l.Service)
	c.text(300, 20, 3, l.count())
	c.text(300, 42, 2, l.Weight)
	c.fill(left, 66, width-2*left, 2)
	for i, line := range l.From {
		c.text(left, 78+i*17, 2, line)
	}
	c.fill(left, 232, width-2*left, 2)
	for i, line := range l.To {
		c.text(left, 248+i*24, 2, line)
	}
	c.text(left, 424, 1, l.Reference)
	c.barcode(l.TrackingNumber)
}

// barcode draws a number at the foot of the picture.
func (c canvas) barcode(number string) {
	total := bars(number, func(int, int) {})
	module := max(1, min(2, width/(total+20)))
	start := (width - total*module) / 2
	bars(number, func(at, modules int) {
		c.fill(start+at*module, 440, modules*module, 100)
	})
	c.text(start, 556, 4, number)
}

func (c canvas) fill(x, y, width, height int) {
	for row := range height {
		for column := range width {
			c.SetColorIndex(x+column, c.top+y+row, 1)
		}
	}
}

// text writes s in capitals of 3 by 5 dots, each scale pixels wide.
func (c canvas) text(x, y, scale int, s string) {
	for _, r := range strings.ToUpper(fold(s)) {
		dots, ok := font[r]
		if !ok {
			dots = font['?']
		}
		for i, dot := range dots {
			if dot == '1' {
				c.fill(x+i%3*scale, y+i/3*scale, scale, scale)
			}
		}
		x += 4 * scale
	}
}

// font has 5 rows of 3 dots a letter.
var font = map[rune]string{
	' ': "000000000000000", '!': "010010010000010", '#': "101111101111101", '&': "010101010101011",
	'\'': "010010000000000", '(': "001010010010001", ')': "100010010010100", '*': "101010101000000",
	'+': "000010111010000", ',': "000000000010100", '-': "000000111000000", '.': "000000000000010",
	'/': "001001010100100", ':': "000010000010000", ';': "000010000010100", '?': "110001010000010",
	'@': "010101111100011", '_': "000000000000111", '"': "101101000000000", '%': "101001010100101",
	'0': "111101101101111", '1': "010110010010111", '2': "111001111100111", '3': "111001111001111",
	'4': "101101111001001", '5': "111100111001111", '6': "111100111101111", '7': "111001010010010",
	'8': "111101111101111", '9': "111101111001111",
	'A': "010101111101101", 'B': "110101110101110", 'C': "011100100100011", 'D': "110101101101110",
	'E': "111100110100111", 'F': "111100110100100", 'G': "011100101101011", 'H': "101101111101101",
	'I': "111010010010111", 'J': "001001001101010", 'K': "101101110101101", 'L': "100100100100111",
	'M': "101111111101101", 'N': "110101101101101", 'O': "010101101101010", 'P': "110101110100100",
	'Q': "010101101111011", 'R': "110101110101101", 'S': "011100010001110", 'T': "111010010010010",
	'U': "101101101101111", 'V': "101101101101010", 'W': "101101111111101", 'X': "101101010101101",
	'Y': "101101010010010", 'Z': "111001010100111",
}
