package mockcarrier_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// shipmentRequest is the smallest shipment.
func shipmentRequest() carrier.ShipmentRequest {
	return carrier.ShipmentRequest{
		Reference: "order-1001",
		Service:   "standard",
		From:      carrier.Address{Name: "Ada Books", Line1: "1 Main Street", City: "Istanbul", PostalCode: "34000", Country: "TR"},
		To:        carrier.Address{Name: "Deniz Kaya", Line1: "12 Park Avenue", City: "Ankara", PostalCode: "06000", Country: "TR"},
		Parcels:   []carrier.Parcel{{Weight: carrier.Weight{Value: 1.2, Unit: carrier.WeightUnitKg}}},
	}
}

// The carrier is down, then processes the request and loses its answer. The
// client asks again with the same key, and the shipment is bought once.
//
// In a test, Start or StartInMemory take the place of New and httptest.
func Example() {
	mock := mockcarrier.New()
	server := httptest.NewServer(mock)
	defer server.Close()
	mock.Inject(mockcarrier.ResetAfter().Times(1))
	mock.Inject(mockcarrier.Status(503).Times(1)) // the newest strikes first

	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey(mockcarrier.APIKey),
		carrier.WithRetry(carrier.RetryPolicy{BaseDelay: time.Millisecond}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	shipment, err := client.CreateShipment(context.Background(), shipmentRequest())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("got", shipment.TrackingNumber)
	for _, r := range mock.Requests() {
		fmt.Printf("%s %d %q\n", r.Operation, r.Status, r.Fault)
	}
	for _, c := range mock.Ledger() {
		fmt.Println("bought", c.TrackingNumber, "for", c.Amount, c.Currency)
	}
	// Output:
	// got BK2001TR
	// createShipment 503 "status 503"
	// createShipment 0 "reset after processing"
	// createShipment 201 ""
	// bought BK2001TR for 6.40 EUR
}

// Follow a parcel through its days without waiting for them.
func ExampleCarrier_Advance() {
	mock := mockcarrier.New()
	server := httptest.NewServer(mock)
	defer server.Close()
	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	shipment, err := client.CreateShipment(ctx, shipmentRequest())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		t, err := client.GetTracking(ctx, shipment.TrackingNumber)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.Status)
		mock.Advance(12 * time.Hour)
	}
	// Output:
	// label_created
	// in_transit
	// in_transit
	// in_transit
	// delivered
}
