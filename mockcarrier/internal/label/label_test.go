package label

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var sample = []Label{
	{
		TrackingNumber: "BK2001TR", Service: "express", Reference: `order-1001 (a\b)`, Weight: "1.2 kg", Parcel: 1, Of: 2,
		From: []string{"Ada Books", "1 Main Street", "34000 Istanbul", "TR"},
		To:   []string{"Zoë Müller", "İğdır Şişli ç.", "Łódź", "東京", "CH"},
	},
	{TrackingNumber: "BK2001P2TR", Service: "express", Parcel: 2, Of: 2},
}

func TestCode128(t *testing.T) {
	seen := map[string]int{}
	for value, pattern := range code128Patterns {
		modules, inBars := 0, 0
		for i, digit := range pattern {
			width := int(digit - '0')
			modules += width
			if i%2 == 0 {
				inBars += width
			}
		}
		want := 11
		if value == 106 {
			want = 13
		}
		if modules != want || inBars%2 != 0 {
			t.Errorf("symbol %d: %d modules, %d of them bars", value, modules, inBars)
		}
		if other, twice := seen[pattern]; twice {
			t.Errorf("symbols %d and %d are the same", other, value)
		}
		seen[pattern] = value
	}

	// Start B, P, J, J, 1, 2, 3, C, check symbol, stop.
	var want []int
	for _, value := range []int{104, 48, 42, 42, 17, 18, 19, 35, 55, 106} {
		for _, digit := range code128Patterns[value] {
			want = append(want, int(digit-'0'))
		}
	}
	// 104 + 1·48 + 2·42 + 3·42 + 4·17 + 5·18 + 6·19 + 7·35 = 879 = 8·103 + 55
	if got := code128("PJJ123C"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("PJJ123C: got %v, want %v", got, want)
	}
}

// The structure that a viewer relies on: offsets, lengths, page tree.
func TestPDFIsWellFormed(t *testing.T) {
	for count := 1; count <= len(sample); count++ {
		doc := PDF(sample[:count])
		keep(t, fmt.Sprintf("label%d.pdf", count), doc)
		if !bytes.HasPrefix(doc, []byte("%PDF-1.")) || !bytes.HasSuffix(doc, []byte("%%EOF\n")) {
			t.Fatal("not a PDF")
		}
		start := number(t, doc, `startxref\n(\d+)\n`)
		table := doc[start:]
		if !bytes.HasPrefix(table, []byte("xref\n")) {
			t.Fatal("startxref does not point at the table")
		}
		size := number(t, table, `/Size (\d+)`)
		lines := bytes.SplitAfter(table, []byte("\n"))[2 : 2+size]
		for id, line := range lines {
			if len(line) != 20 {
				t.Fatalf("line %d of the table has %d bytes", id, len(line))
			}
			if id == 0 {
				continue
			}
			offset := number(t, line, `^(\d{10}) 00000 n \n$`)
			if !bytes.HasPrefix(doc[offset:], fmt.Appendf(nil, "%d 0 obj\n", id)) {
				t.Errorf("object %d does not begin at %d", id, offset)
			}
		}
		for _, m := range regexp.MustCompile(`(?s)/Length (\d+) >>\nstream\n(.*?)\nendstream`).FindAllSubmatch(doc, -1) {
			if want, _ := strconv.Atoi(string(m[1])); len(m[2]) != want {
				t.Errorf("a stream of %d bytes says %d", len(m[2]), want)
			}
		}
		if got := number(t, doc, `/Count (\d+)`); got != count {
			t.Errorf("got %d pages, want %d", got, count)
		}
		for _, text := range []string{"(BK2001TR) Tj", `(order-1001 \(a\\b\)) Tj`, "(EXPRESS) Tj", "/edieresis", "/Idotaccent", "/uni6771"} {
			if !bytes.Contains(doc, []byte(text)) {
				t.Errorf("no %s in the document", text)
			}
		}
		if !bytes.Equal(doc, PDF(sample[:count])) {
			t.Error("the same labels gave other bytes")
		}
	}
}

func TestZPL(t *testing.T) {
	odd := Label{TrackingNumber: "BK2002TR", Reference: "a^b~c_d", Parcel: 1, Of: 1}
	got := string(ZPL(append([]Label{odd}, sample...)))
	if strings.Count(got, "^XA") != 3 || strings.Count(got, "^XZ") != 3 {
		t.Errorf("not three labels:\n%s", got)
	}
	for _, want := range []string{"^BCN,190,Y,N,N^FDBK2002TR^FS", "^FDa_5Eb_7Ec_5Fd^FS", "^FDZoë Müller^FS", "^CI28"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

func TestPNG(t *testing.T) {
	got, err := PNG(sample)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "label.png", got)
	img, err := png.Decode(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size != (image.Point{X: 400, Y: 1200}) {
		t.Errorf("got %v pixels", size)
	}
	// Read the bars back from a row of pixels.
	var widths []int
	row, last := 500, false
	for x := range 400 {
		r, _, _, _ := img.At(x, row).RGBA()
		if dark := r == 0; dark != last {
			widths, last = append(widths, 0), dark
		}
		if len(widths) > 0 {
			widths[len(widths)-1]++
		}
	}
	widths = widths[:len(widths)-1] // the quiet zone
	for i := range widths {
		widths[i] /= 2
	}
	if want := code128("BK2001TR"); fmt.Sprint(widths) != fmt.Sprint(want) {
		t.Errorf("the bars are %v, want %v", widths, want)
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"Zoë Müller": "Zoe Muller", "İstanbul ışık": "Istanbul isik", "Łódź": "Lodz", "Straße": "Strasse",
		"e\u0301": "e", "東": "?", "Þór": "Thor", "Ærø": "AEro",
	} {
		if got := fold(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func number(t *testing.T, in []byte, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(in)
	if m == nil {
		t.Fatalf("no %s", pattern)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// keep writes a document where LABEL_DIR says, for a look at it.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if dir := os.Getenv("LABEL_DIR"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Error(err)
		}
	}
}
