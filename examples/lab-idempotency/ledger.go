package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// account is what the carrier's journal and ledger say of an order.
type account struct {
	order, client           string
	requests, keys, charges int
	numbers                 []string // of the shipments that were made
	wantKeys, wantCharges   int
}

// settle prints the ledger, and compares it with what the lab claims.
func settle(u *upstream, stdout io.Writer) error {
	accounts := []account{
		{order: freshKey, client: "tried again with a fresh key", wantKeys: 2, wantCharges: 2},
		{order: oneKey, client: "tried again with the same key", wantKeys: 1, wantCharges: 1},
		{order: randomKey, client: "killed, its key was random", wantKeys: 2, wantCharges: 2},
		{order: derivedKey, client: "killed, its key was derived", wantKeys: 1, wantCharges: 1},
	}
	fmt.Fprint(stdout, "\nThe carrier's ledger:\n\n")
	w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   ORDER\tCLIENT\tREQUESTS\tKEYS\tPAID\tSHIPMENTS")
	var wrong []error
	for _, a := range accounts {
		a.count(u)
		fmt.Fprintf(w, "   %s\t%s\t%d\t%d\t%d\t%s\n", a.order, a.client, a.requests, a.keys, a.charges, strings.Join(a.numbers, ", "))
		wrong = append(wrong, a.check())
	}
	_ = w.Flush()
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "\nOne order, one key: on every attempt, in every process. Then it is bought once.")
	return nil
}

func (a *account) count(u *upstream) {
	keys := map[string]bool{}
	for _, r := range u.Requests() {
		var body struct{ Reference string }
		if json.Unmarshal(r.Body, &body) == nil && body.Reference == a.order {
			a.requests++
			keys[r.Key] = true
		}
	}
	for _, c := range u.charges(a.order) {
		a.charges++
		a.numbers = append(a.numbers, c.TrackingNumber)
	}
	a.keys = len(keys)
}

func (a account) check() error {
	if a.requests != 2 || a.keys != a.wantKeys || a.charges != a.wantCharges {
		return fmt.Errorf("%s: %d requests with %d keys bought %d shipments, want 2, %d and %d",
			a.order, a.requests, a.keys, a.charges, a.wantKeys, a.wantCharges)
	}
	return nil
}
