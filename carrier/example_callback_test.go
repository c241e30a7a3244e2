package carrier_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// A service that is told what happens to its parcels.
func ExampleNewCallbackHandler() {
	parcels := map[string]*carrier.Tracking{} // a table, in a real service
	handler, err := carrier.NewCallbackHandler(func(_ context.Context, u carrier.TrackingUpdate) error {
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
		if carrier.Advances(parcels[u.Data.TrackingNumber], u.Data) {
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
