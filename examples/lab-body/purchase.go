package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// latePurchase is the second scene: the shipment is made, 201 has come, and the
// body that would say which shipment it is has not.
func latePurchase(ctx context.Context, stdout io.Writer) error {
	fmt.Fprint(stdout, "2. The same for a purchase: 201 comes, the shipment does not.\n\n")
	u := startUpstream(mockcarrier.StallBody(40).On("createShipment").Times(1))
	defer u.stop()
	client, err := carrier.New(u.url, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithAttemptTimeout(limit))
	if err != nil {
		return err
	}
	defer client.Close()
	key := carrier.WithIdempotencyKey(carrier.DeriveIdempotencyKey("createShipment", order.Reference, 1))

	_, late := client.CreateShipment(ctx, order, key, carrier.WithoutRetry())
	if err := statusKept(late, http.StatusCreated); err != nil {
		return err
	}
	var e *carrier.Error
	errors.As(late, &e)
	w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   ATTEMPT\tSTATUS\tWHAT CARRIER-GO SAYS\tSHIPMENTS IN THE LEDGER")
	fmt.Fprintf(w, "   the body is late\t%d\toutcome %v, %v\t%d\n", e.StatusCode, e.Outcome, carrier.ErrTimeout, len(u.Ledger()))

	var info carrier.CallInfo
	shipment, err := client.CreateShipment(ctx, order, key, carrier.WithCallInfo(&info))
	if err != nil {
		return err
	}
	ledger := u.Ledger()
	fmt.Fprintf(w, "   the same key again\t%d\tit is %s, replayed\t%d\n", info.StatusCode, shipment.TrackingNumber, len(ledger))
	_ = w.Flush()
	if len(ledger) != 1 || ledger[0].ShipmentID != shipment.ID || !info.Replayed {
		return fmt.Errorf("the purchase: %d shipments, replayed %v, want the first of one", len(ledger), info.Replayed)
	}
	return nil
}

var order = carrier.ShipmentRequest{
	Reference: "order-1001", Service: "standard",
	From:    carrier.Address{Name: "Ada Books", Line1: "1 Main Street", City: "Istanbul", PostalCode: "34000", Country: "TR"},
	To:      carrier.Address{Name: "Jane Reader", Line1: "2 Side Street", City: "Ankara", PostalCode: "06000", Country: "TR"},
	Parcels: []carrier.Parcel{{Weight: carrier.Weight{Value: 1.2, Unit: carrier.WeightUnitKg}}},
}
