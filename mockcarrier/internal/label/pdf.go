package label

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	pageWidth  = 288 // points: 4 inches
	pageHeight = 432 // points: 6 inches
	margin     = 14
)

// PDF returns a document with a page for each label. It uses the fonts that
// every viewer has, so that it needs none of its own.
func PDF(labels []Label) []byte {
	letters := &alphabet{codes: map[rune]byte{}}
	pages := make([]string, len(labels))
	for i, l := range labels {
		pages[i] = drawLabel(l, letters)
	}
	return bind(pages, letters)
}

// bind returns the document of pages that were drawn with these letters.
func bind(pages []string, letters *alphabet) []byte {
	const catalog, tree, regular, bold, encoding, toUnicode, firstPage = 1, 2, 3, 4, 5, 6, 7
	doc := newDocument()
	kids := make([]string, len(pages))
	for i := range pages {
		kids[i] = fmt.Sprintf("%d 0 R", firstPage+2*i)
	}
	doc.object(catalog, fmt.Sprintf("<< /Type /Catalog /Pages %d 0 R >>", tree))
	doc.object(tree, fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), strings.Join(kids, " ")))
	for id, name := range []string{regular: "Helvetica", bold: "Helvetica-Bold"} {
		if name != "" {
			doc.object(id, fmt.Sprintf("<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding %d 0 R /ToUnicode %d 0 R >>",
				name, encoding, toUnicode))
		}
	}
	doc.object(encoding, letters.encoding())
	doc.stream(toUnicode, letters.toUnicode())
	for i, content := range pages {
		page := firstPage + 2*i
		doc.object(page, fmt.Sprintf("<< /Type /Page /Parent %d 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R "+
			"/Resources << /Font << /R %d 0 R /B %d 0 R >> >> >>", tree, pageWidth, pageHeight, page+1, regular, bold))
		doc.stream(page+1, content)
	}
	return doc.finish(catalog)
}

func drawLabel(l Label, letters *alphabet) string {
	if l.Blank {
		return ""
	}
	p := page{letters: letters}
	p.text("B", 20, margin, 398, strings.ToUpper(l.Service))
	p.text("R", 11, 230, 402, l.count())
	p.text("R", 9, 230, 388, l.Weight)
	p.rule(380)
	for i, line := range l.From {
		p.text("R", 8, margin, 366-float64(i)*10, line)
	}
	p.rule(282)
	for i, line := range l.To {
		p.text("B", 12, margin, 262-float64(i)*15, line)
	}
	p.text("R", 7, margin, 132, l.Reference)
	p.rule(124)
	p.barcode(l.TrackingNumber)
	return p.String()
}

// page is drawn in points, from its lower left corner.
type page struct {
	strings.Builder
	letters *alphabet
}

func (p *page) text(font string, size, x, y float64, s string) {
	if s != "" {
		fmt.Fprintf(p, "BT /%s %g Tf %g %g Td (%s) Tj ET\n", font, size, x, y, p.letters.escape(s))
	}
}

func (p *page) rule(y float64) {
	fmt.Fprintf(p, "%d %g %d 1 re f\n", margin, y, pageWidth-2*margin)
}

// barcode draws a number at the foot of the page.
func (p *page) barcode(number string) {
	const quiet, height, bottom = 10, 74.0, 40.0 // the quiet zone is in modules
	total := bars(number, func(int, int) {})
	module := min(1.5, float64(pageWidth)/float64(total+2*quiet))
	left := (pageWidth - float64(total)*module) / 2
	bars(number, func(at, width int) {
		fmt.Fprintf(p, "%.3f %g %.3f %g re\n", left+float64(at)*module, bottom, float64(width)*module, height)
	})
	p.WriteString("f\n")
	p.text("B", 13, left, 22, number)
}

// alphabet gives the letters beyond ASCII the codes from 128 on, in the order
// in which they are met.
type alphabet struct {
	codes map[rune]byte
	order []rune
}

func (a *alphabet) code(r rune) byte {
	switch {
	case r >= ' ' && r <= '~':
		return byte(r)
	case r < ' ' || r == 0x7f || r > 0xffff:
		return '?'
	}
	if code, ok := a.codes[r]; ok {
		return code
	}
	if len(a.order) == 128 {
		return '?'
	}
	code := byte(128 + len(a.order))
	a.codes[r] = code
	a.order = append(a.order, r)
	return code
}

// escape returns s as the inside of a PDF string.
func (a *alphabet) escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch c := a.code(r); {
		case c == '(' || c == ')' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 128:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (a *alphabet) encoding() string {
	var b strings.Builder
	b.WriteString("<< /Type /Encoding /BaseEncoding /WinAnsiEncoding")
	if len(a.order) > 0 {
		b.WriteString(" /Differences [128")
		for _, r := range a.order {
			b.WriteString(" /" + glyphName(r))
		}
		b.WriteString("]")
	}
	b.WriteString(" >>")
	return b.String()
}

// toUnicode lets a viewer search and copy the text.
func (a *alphabet) toUnicode() string {
	var b strings.Builder
	b.WriteString(`/CIDInit /ProcSet findresource begin
12 dict begin
begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def
/CMapType 2 def
1 begincodespacerange
<00> <FF>
endcodespacerange
1 beginbfrange
<20> <7E> <0020>
endbfrange
`)
	const most = 100 // entries of a section
	for first := 0; first < len(a.order); first += most {
		section := a.order[first:min(first+most, len(a.order))]
		fmt.Fprintf(&b, "%d beginbfchar\n", len(section))
		for _, r := range section {
			fmt.Fprintf(&b, "<%02X> <%04X>\n", a.codes[r], r)
		}
		b.WriteString("endbfchar\n")
	}
	b.WriteString("endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n")
	return b.String()
}

// document writes the objects of a PDF and remembers where they begin.
type document struct {
	bytes.Buffer
	offsets map[int]int
}

func newDocument() *document {
	d := &document{offsets: map[int]int{}}
	d.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n") // the second line says that it is binary
	return d
}

func (d *document) object(id int, body string) {
	d.offsets[id] = d.Len()
	fmt.Fprintf(d, "%d 0 obj\n%s\nendobj\n", id, body)
}

func (d *document) stream(id int, content string) {
	d.object(id, fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
}

// finish writes the table of offsets, whose lines have 20 bytes each.
func (d *document) finish(catalog int) []byte {
	start, size := d.Len(), len(d.offsets)+1
	fmt.Fprintf(d, "xref\n0 %d\n0000000000 65535 f \n", size)
	for id := 1; id < size; id++ {
		fmt.Fprintf(d, "%010d 00000 n \n", d.offsets[id])
	}
	fmt.Fprintf(d, "trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n", size, catalog, start)
	return d.Bytes()
}
