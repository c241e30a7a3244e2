// Package label draws shipping labels of 4 by 6 inches, with a Code 128 bar
// code that scans, as PDF, ZPL and PNG, and proofs of delivery of the same size
// as PDF and PNG. The same content gives the same bytes.
package label

import "fmt"

// Label is what is printed for one parcel. Empty fields leave their line empty.
type Label struct {
	TrackingNumber string // ASCII
	Service        string
	Reference      string
	From, To       []string // address, line by line
	Weight         string   // with its unit
	Parcel, Of     int      // "1 of 2"
	Blank          bool     // nothing is printed
}

func (l Label) count() string { return fmt.Sprintf("%d of %d", l.Parcel, l.Of) }
