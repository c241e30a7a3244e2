package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/callback"
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

var order = carrier.ShipmentRequest{
	Reference: "order-1001", Service: "standard",
	From:    carrier.Address{Name: "Ada Books", Line1: "1 Main Street", City: "Istanbul", PostalCode: "34000", Country: "TR"},
	To:      carrier.Address{Name: "Kitabevi Ankara", Line1: "12 Park Avenue", City: "Ankara", PostalCode: "06000", Country: "TR"},
	Parcels: []carrier.Parcel{{Weight: carrier.Weight{Value: 1.2, Unit: carrier.WeightUnitKg}}},
}

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

// Ask what it costs, buy at that price, save the label, and hand the parcels over.
func ExampleClient_QuoteRates() {
	_, url, stop := sandbox()
	defer stop()
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()

	quote, err := client.QuoteRates(ctx, carrier.RateRequest{From: order.From, To: order.To, Parcels: order.Parcels})
	if err != nil || len(quote.Rates) == 0 {
		fmt.Println("no service carries this", err)
		return
	}
	cheapest := quote.Rates[0]
	order := order
	order.Service, order.RateID = cheapest.Service, &cheapest.ID
	s, err := client.CreateShipment(ctx, order)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Service, s.Charge.Amount == cheapest.Price.Amount)

	label, err := client.GetLabel(ctx, s.ID, carrier.GetLabelParams{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer label.Close()
	if _, err := io.Copy(io.Discard, label); err != nil { // a file, in a real service
		fmt.Println(err)
		return
	}

	m, err := client.CreateManifest(ctx, carrier.ManifestRequest{
		Date: time.Now().AddDate(0, 0, 1).Format(time.DateOnly), ShipmentIds: []string{s.ID},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.ShipmentCount, "handed over")
	_, err = client.CancelShipment(ctx, s.ID)
	fmt.Println("too late to cancel:", errors.Is(err, carrier.ErrConflict))
	// Output:
	// economy true
	// 1 handed over
	// too late to cancel: true
}

// A token from the carrier's own endpoint in place of an API key: fetched when it
// is needed, renewed before it ends, shared by all calls.
func ExampleWithOAuth2() {
	_, url, stop := sandbox()
	defer stop()
	client, err := carrier.New(url, carrier.WithOAuth2(mockcarrier.ClientID, mockcarrier.ClientSecret))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	t, err := client.GetTracking(context.Background(), "BK1002TR")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Status)
	// Output: delivered
}

// A service that is told what happens to its parcels.
func ExampleNewCallbackHandler() {
	var mu sync.Mutex                         // notifications come at the same time as well
	parcels := map[string]*carrier.Tracking{} // a table, in a real service
	handler, err := carrier.NewCallbackHandler(func(_ context.Context, u carrier.TrackingUpdate) error {
		if u.Data == nil {
			return nil // a kind of news that this version does not know
		}
		mu.Lock()
		defer mu.Unlock()
		known := parcels[u.Data.TrackingNumber]
		if !carrier.Advances(known, u.Data) {
			return nil // older than what is known
		}
		parcels[u.Data.TrackingNumber] = u.Data
		fmt.Println(u.Data.TrackingNumber, u.Data.Status)
		return nil // after an error it is delivered again
	}, callback.WithSecrets(carrier.Secret(os.Getenv("CARRIER_CALLBACK_SECRET"))))
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("POST /carrier/callbacks", handler)
}

// Test it with the mock: Advance moves the parcels along, and delivers what the
// service is to be told, twice and in disorder if it is asked to.
func ExampleNewCallbackHandler_test() {
	parcels := map[string]*carrier.Tracking{}
	handler, err := carrier.NewCallbackHandler(func(_ context.Context, u carrier.TrackingUpdate) error {
		if u.Data != nil && carrier.Advances(parcels[u.Data.TrackingNumber], u.Data) {
			parcels[u.Data.TrackingNumber] = u.Data
			fmt.Println(u.Data.TrackingNumber, u.Data.Status)
		}
		return nil
	}, callback.WithSecrets("whsec_Zm9vYmFyYmF6cXV4"))
	if err != nil {
		fmt.Println(err)
		return
	}
	mock := mockcarrier.New(mockcarrier.WithWebhookHandler(handler))
	server := httptest.NewServer(mock)
	defer server.Close()
	mock.Inject(mockcarrier.Redeliver().EveryNth(2))
	mock.Inject(mockcarrier.DeliverOutOfOrder().Times(1))

	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	if _, err := client.CreateSubscription(ctx, carrier.SubscriptionRequest{
		URL: "https://shop.example/carrier/callbacks", Secret: "whsec_Zm9vYmFyYmF6cXV4",
	}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.CreateShipment(ctx, order); err != nil {
		fmt.Println(err)
		return
	}
	mock.Advance(48 * time.Hour)
	fmt.Println(len(mock.Deliveries()), "deliveries")
	// Output:
	// BK2001TR picked_up
	// BK2001TR in_transit
	// BK2001TR in_transit
	// BK2001TR out_for_delivery
	// BK2001TR delivered
	// 8 deliveries
}

// Go through what has happened since the last time, over cuts.
func ExampleClient_TrackingEvents() {
	mock, url, stop := sandbox()
	defer stop()
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	if _, err := client.CreateShipment(ctx, order); err != nil {
		fmt.Println(err)
		return
	}
	mock.Advance(8 * time.Hour)
	mock.Inject(mockcarrier.Truncate(400, mockcarrier.ByChunks).On("exportTrackingEvents").Times(1))

	stored := "" // the cursor of the last event, with what follows from it
	for event, err := range client.TrackingEvents(ctx, carrier.ExportTrackingEventsParams{Cursor: &stored}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		stored = event.Cursor
		fmt.Println(event.TrackingNumber, event.Event.Status)
	}
	// Output:
	// BK2001TR label_created
	// BK2001TR picked_up
	// BK2001TR in_transit
}
