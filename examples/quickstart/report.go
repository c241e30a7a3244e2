package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func printTable(stdout io.Writer, orders []carrier.ShipmentRequest, bought []purchase) {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nORDER\tTO\tTRACKING\tPRICE\tATTEMPTS\tANSWER")
	for i, p := range bought {
		answer := "first"
		if p.replayed {
			answer = "replayed"
		}
		price := ""
		if c := p.Charge; c != nil {
			price = c.Amount + " " + string(c.Currency)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", orders[i].Reference, orders[i].To.Country, p.TrackingNumber, price, p.attempts, answer)
	}
	_ = w.Flush()
}

// follow shows a parcel's events as the carrier's clock moves on. It puts the
// clock back in the end: the carrier remembers a key for 24 hours, and on the
// day after tomorrow another run would buy everything again. A service asks
// ListShipments by key before it repeats a purchase of the day before.
func follow(ctx context.Context, client *carrier.Client, admin admin, number string, stdout io.Writer) (err error) {
	fmt.Fprintf(stdout, "\nFollowing %s:\n", number)
	const step, most = 12 * time.Hour, 40
	var ahead time.Duration
	defer func() {
		if ahead > 0 {
			err = errors.Join(err, admin.advance(ctx, -ahead))
		}
	}()
	seen := 0
	for range most {
		t, err := client.GetTracking(ctx, number)
		if err != nil {
			return err
		}
		events := slices.SortedStableFunc(slices.Values(t.Events), func(a, b carrier.TrackingEvent) int {
			return a.At.Time().Compare(b.At.Time())
		})
		for _, e := range events[min(seen, len(events)):] {
			fmt.Fprintf(stdout, "  %s  %-18s %s\n", e.At.Time().Format("2006-01-02 15:04"), e.Status, e.Location)
		}
		seen = len(events)
		if t.Status == carrier.TrackingStatusDelivered {
			return nil
		}
		if err := admin.advance(ctx, step); err != nil {
			return err
		}
		ahead += step
	}
	return fmt.Errorf("%s was not delivered within %s of the carrier's time", number, most*step)
}

// saveLabel streams the label to a file, and looks at what it got.
func saveLabel(ctx context.Context, client *carrier.Client, p purchase, dir string, stdout io.Writer) error {
	label, err := client.GetLabel(ctx, p.ID, carrier.GetLabelParams{})
	if err != nil {
		return err
	}
	defer label.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, "label-"+p.TrackingNumber+".pdf")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, label)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	saved, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(saved, []byte("%PDF-")) || !bytes.Contains(saved[max(0, len(saved)-32):], []byte("%%EOF")) {
		return fmt.Errorf("%s is no PDF", name)
	}
	fmt.Fprintf(stdout, "\nLabel: %s, %s, %d bytes\n", name, label.ContentType, n)
	return nil
}

// compare holds what was bought against the carrier's own ledger.
func compare(ctx context.Context, admin admin, orders []carrier.ShipmentRequest, bought []purchase, stdout io.Writer) error {
	charges, err := admin.ledger(ctx)
	if err != nil {
		return err
	}
	perOrder := map[string]int{}
	for _, c := range charges {
		perOrder[c.Reference]++
	}
	var wrong []error
	for i, o := range orders {
		if n := perOrder[o.Reference]; n != 1 {
			wrong = append(wrong, fmt.Errorf("%s was charged %d times", o.Reference, n))
		}
		if !slices.ContainsFunc(charges, func(c mockcarrier.Charge) bool { return c.ShipmentID == bought[i].ID }) {
			wrong = append(wrong, fmt.Errorf("%s: the ledger has no shipment %s", o.Reference, bought[i].ID))
		}
	}
	attempts := 0
	for _, p := range bought {
		attempts += p.attempts
	}
	fmt.Fprintf(stdout, "Ledger: %d orders, %d charges, after %d attempts.\n", len(orders), len(charges), attempts)
	if len(charges) != len(orders) {
		wrong = append(wrong, fmt.Errorf("%d charges for %d orders", len(charges), len(orders)))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "Every order was bought exactly once.")
	return nil
}
