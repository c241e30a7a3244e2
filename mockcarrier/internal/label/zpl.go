package label

import (
	"bytes"
	"fmt"
	"strings"
)

// ZPL returns the labels for a label printer of 203 dots an inch.
func ZPL(labels []Label) []byte {
	var b bytes.Buffer
	for _, l := range labels {
		b.WriteString("^XA\n^CI28\n^PW812\n^LL1218\n") // UTF-8, 4 by 6 inches
		if l.Blank {
			b.WriteString("^XZ\n")
			continue
		}
		text := func(x, y, size int, s string) {
			if s != "" {
				fmt.Fprintf(&b, "^FO%d,%d^A0N,%d,%d^FH_^FD%s^FS\n", x, y, size, size, zplEscape.Replace(s))
			}
		}
		text(40, 40, 60, strings.ToUpper(l.Service))
		text(600, 50, 36, l.count())
		text(40, 130, 26, l.Weight)
		b.WriteString("^FO40,170^GB732,3,3^FS\n")
		for i, line := range l.From {
			text(40, 190+i*32, 26, line)
		}
		b.WriteString("^FO40,440^GB732,3,3^FS\n")
		for i, line := range l.To {
			text(40, 465+i*50, 42, line)
		}
		text(40, 890, 24, l.Reference)
		fmt.Fprintf(&b, "^FO60,930^BY3^BCN,190,Y,N,N^FD%s^FS\n^XZ\n", zplEscape.Replace(l.TrackingNumber))
	}
	return b.Bytes()
}

// zplEscape writes what ZPL would take for a command in hexadecimal, which ^FH
// announces.
var zplEscape = strings.NewReplacer("^", "_5E", "~", "_7E", "_", "_5F", "\n", " ", "\r", " ")
