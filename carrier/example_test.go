package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// sandbox stands in for the carrier in the examples.
func sandbox() (mock *mockcarrier.Carrier, baseURL string, stop func()) {
	mock = mockcarrier.New()
	server := httptest.NewUnstartedServer(mock)
	server.Config.ConnContext = mock.ConnContext
	server.Start()
	return mock, server.URL + "/v1", func() { mock.Close(); server.Close() }
}

var order = smallestOrder("order-1001")

// The first program: follow a parcel, and buy a shipment.
func Example() {
	_, url, stop := sandbox() // "https://api.carrier.example/v1", at a real carrier
	defer stop()
	ctx := context.Background()

	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	t, err := client.GetTracking(ctx, "BK1001TR")
	switch {
	case errors.Is(err, carrier.ErrNotFound):
		fmt.Println("no such parcel")
		return
	case errors.Is(err, carrier.ErrCircuitOpen), errors.Is(err, carrier.ErrTimeout):
		fmt.Println("the carrier has a bad day; try again later")
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	fmt.Println(t.TrackingNumber, t.Status)

	s, err := client.CreateShipment(ctx, order, carrier.WithIdempotencyKey(
		carrier.DeriveIdempotencyKey("createShipment", "order-1001", 1)))
	if errors.Is(err, carrier.ErrOutcomeUnknown) {
		fmt.Println("same key again, now or after a restart: never a second label")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.TrackingNumber, s.Status)
	// Output:
	// BK1001TR in_transit
	// BK2001TR created
}

// A lost answer does not buy a second label: the retry has the same key, and
// the carrier replays what it had answered.
func ExampleClient_CreateShipment() {
	mock, url, stop := sandbox()
	defer stop()
	mock.Inject(mockcarrier.ResetAfter().On("createShipment").Times(1)) // bought, and the answer lost

	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	var info carrier.CallInfo
	s, err := client.CreateShipment(context.Background(), order, carrier.WithCallInfo(&info))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.TrackingNumber, "after", info.Attempts, "attempts, replayed:", info.Replayed)
	fmt.Println("charges:", len(mock.Ledger()))
	// Output:
	// BK2001TR after 2 attempts, replayed: true
	// charges: 1
}

// A label is a stream: read it to the end or close it.
func ExampleClient_GetLabel() {
	_, url, stop := sandbox()
	defer stop()
	ctx := context.Background()
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	s, err := client.CreateShipment(ctx, order)
	if err != nil {
		fmt.Println(err)
		return
	}

	label, err := client.GetLabel(ctx, s.ID, carrier.GetLabelParams{})
	var e *carrier.Error
	if errors.Is(err, carrier.ErrNotReady) && errors.As(err, &e) {
		fmt.Println("ask again in", e.RetryAfter)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer label.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(label, head); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(label.ContentType, string(head))
	// Output: application/pdf %PDF
}

// What an error tells.
func ExampleError() {
	_, url, stop := sandbox()
	defer stop()
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_, err = client.GetTracking(context.Background(), "BK9999TR")
	var e *carrier.Error
	if errors.As(err, &e) {
		fmt.Println(e.Operation, e.StatusCode, e.Outcome, e.Problem.Code)
	}
	// Output: getTracking 404 rejected tracking_not_found
}

// A request that the spec refuses is never sent; every mistake is told at once.
func ExampleFieldErrors() {
	client, err := carrier.New("https://api.carrier.example/v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	bad := order
	bad.Reference = ""
	bad.To.Country = "Turkey"
	_, err = client.CreateShipment(context.Background(), bad)
	var fields carrier.FieldErrors
	if errors.As(err, &fields) {
		for _, f := range fields {
			fmt.Println(f.Pointer, f.Rule)
		}
	}
	// Output:
	// /reference required
	// /to/country maxLength
	// /to/country pattern
}

// Time limits and retries, for the client and for one call.
func ExampleNew_options() {
	client, err := carrier.New("https://api.carrier.example/v1",
		carrier.WithAPIKey("key"),
		carrier.WithTimeout(10*time.Second),       // a whole call
		carrier.WithAttemptTimeout(3*time.Second), // each attempt
		carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: 4, MaxDelay: time.Second}),
		carrier.WithBreaker(carrier.BreakerPolicy{OpenFor: 2 * time.Second}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Printf("%+v\n", client) // holds a credential, and shows none
	// Output: carrier.Client
}

// The same order gives the same key, in every process and after every restart.
func ExampleDeriveIdempotencyKey() {
	fmt.Println(carrier.DeriveIdempotencyKey("createShipment", "order-1001", 1))
	fmt.Println(carrier.DeriveIdempotencyKey("createShipment", "order-1001", 2))
	// Output:
	// c27af891-b7f0-550c-b004-3690755c19ed
	// dceba67b-2f0c-5997-b7da-3f0c5c350ef3
}
