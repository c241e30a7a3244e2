package label

import (
	"bytes"
	"image"
	"image/png"
	"testing"
)

func TestProof(t *testing.T) {
	p := Proof{
		TrackingNumber: "BK1002TR", Service: "express", DeliveredAt: "2026-03-01T09:00:00+03:00",
		Place: "06000 Ankara TR", SignedBy: "A. Yılmaz (neighbour)",
	}
	doc := p.PDF()
	keep(t, "proof.pdf", doc)
	start := number(t, doc, `startxref\n(\d+)\n`)
	if !bytes.HasPrefix(doc, []byte("%PDF-1.")) || !bytes.HasPrefix(doc[start:], []byte("xref\n")) || number(t, doc, `/Count (\d+)`) != 1 {
		t.Error("not a PDF of one page")
	}
	for text, want := range map[string]bool{
		"(Proof of delivery) Tj": true, "(BK1002TR) Tj": true, `\(neighbour\)) Tj`: true, "(06000 Ankara TR) Tj": true,
		"/dotlessi": true, "(Signed by) Tj": true, "(Reference) Tj": false,
	} {
		if bytes.Contains(doc, []byte(text)) != want {
			t.Errorf("%s is there: %v", text, !want)
		}
	}
	content, err := p.PNG()
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "proof.png", content)
	img, err := png.Decode(bytes.NewReader(content))
	if err != nil || img.Bounds().Size() != (image.Point{X: 400, Y: 600}) {
		t.Errorf("got %v, %v", img.Bounds(), err)
	}
	other := p
	other.SignedBy = ""
	if again, err := other.PNG(); err != nil || bytes.Equal(again, content) {
		t.Errorf("who signed is not on it: %v", err)
	}
}
