package label

// Proof is what the proof of a delivery says. What is empty is left out.
type Proof struct {
	TrackingNumber string // ASCII
	Service        string
	Reference      string
	DeliveredAt    string
	Place          string
	SignedBy       string
}

// lines are what is written, each by its name.
func (p Proof) lines() [][2]string {
	var lines [][2]string
	for _, line := range [][2]string{
		{"Delivered", p.DeliveredAt}, {"Place", p.Place}, {"Signed by", p.SignedBy}, {"Service", p.Service}, {"Reference", p.Reference},
	} {
		if line[1] != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

const proofTitle = "Proof of delivery"

// PDF returns the proof as a document of one page.
func (p Proof) PDF() []byte {
	letters := &alphabet{codes: map[rune]byte{}}
	sheet := page{letters: letters}
	sheet.text("B", 20, margin, 398, proofTitle)
	sheet.rule(380)
	for i, line := range p.lines() {
		y := 350 - float64(i)*40
		sheet.text("R", 8, margin, y, line[0])
		sheet.text("B", 12, margin, y-15, line[1])
	}
	sheet.rule(124)
	sheet.barcode(p.TrackingNumber)
	return bind([]string{sheet.String()}, letters)
}

// PNG returns the proof as a picture of 400 by 600 pixels.
func (p Proof) PNG() ([]byte, error) {
	const left = 20
	img := paper(1)
	c := canvas{img, 0}
	c.text(left, 20, 5, proofTitle)
	c.fill(left, 66, width-2*left, 2)
	for i, line := range p.lines() {
		y := 90 + i*60
		c.text(left, y, 2, line[0])
		c.text(left, y+18, 3, line[1])
	}
	c.barcode(p.TrackingNumber)
	return encode(img)
}
