package mockcarrier_test

import (
	"context"
	"fmt"
	"net/http"
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

// The first order is bought, and the second is not, whatever the client does.
func ExampleCarrier_Expect() {
	mock := mockcarrier.New()
	server := httptest.NewServer(mock)
	defer server.Close()
	mock.Expect("createShipment").With(mockcarrier.Body("/reference", "order-1001"))
	mock.Expect("createShipment").With(mockcarrier.Body("/reference", "order-1002")).Times(0)
	mock.Expect("getTracking").AtLeast(1)

	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if _, err := client.CreateShipment(context.Background(), shipmentRequest()); err != nil {
		fmt.Println(err)
		return
	}
	// Start and StartInMemory do this at the end of the test.
	fmt.Println(mock.Verify())
	// Output:
	// mockcarrier: 1 expectation was not met:
	//   expected     with     wanted      came
	//   getTracking  nothing  at least 1  0
}

// Down, then a lost answer, then well, and then from the start.
func ExampleSequence() {
	mock := mockcarrier.New()
	server := httptest.NewServer(mock)
	defer server.Close()
	mock.Inject(mockcarrier.Sequence(
		mockcarrier.Status(503).RetryAfter(1).Times(2), mockcarrier.HTML(502), mockcarrier.None()).On("getStatus").Looping())

	for range 6 {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/v1/status", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		request.Header.Set("X-Api-Key", mockcarrier.APIKey)
		response, err := server.Client().Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		response.Body.Close()
		fmt.Print(response.StatusCode, " ")
	}
	// Output: 503 503 502 200 503 503
}

// Why does the fault not strike?
func ExampleCarrier_Explain() {
	mock := mockcarrier.New()
	mock.Inject(mockcarrier.Status(503).On("getTracking").ForTracking("BK1002TR").Times(1))

	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/v1/tracking/BK1001TR", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	explanation, err := mock.Explain(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(explanation)
	// Output:
	// ✓ operation getTracking
	// ✗ fault status 503 for getTracking, parcel BK1002TR, first 1
	//     ✓ operation getTracking
	//     ✗ parcel: got BK1001TR, want BK1002TR
}
