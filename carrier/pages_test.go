package carrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// What was made is found, over the edges of pages, the newest first, and from a
// cursor on.
func TestAllPages(t *testing.T) {
	_, client := inMemory(t)
	two := 2
	var parcels, subscriptions []string
	for range 5 {
		s, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
		if err != nil {
			t.Fatal(err)
		}
		parcels = append([]string{s.TrackingNumber}, parcels...)
		made, err := client.CreateSubscription(t.Context(), carrier.SubscriptionRequest{
			URL: "https://shop.example/", Secret: "whsec_Zm9vYmFyYmF6cXV4",
		})
		if err != nil {
			t.Fatal(err)
		}
		subscriptions = append([]string{made.ID}, subscriptions...)
	}
	if _, err := client.CreateShipment(t.Context(), smallestOrder("order-2")); err != nil {
		t.Fatal(err)
	}

	var found []string
	for p, err := range client.AllTracking(t.Context(), carrier.SearchTrackingParams{Reference: "order-1", Limit: &two}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p.TrackingNumber)
	}
	if !slices.Equal(found, parcels) {
		t.Errorf("found %v, want %v", found, parcels)
	}

	all := client.AllSubscriptions(t.Context(), carrier.ListSubscriptionsParams{Limit: &two})
	for range 2 { // it can be gone through again
		found = nil
		for s, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, s.ID)
		}
		if !slices.Equal(found, subscriptions) {
			t.Errorf("found %v, want %v", found, subscriptions)
		}
	}

	first, err := client.ListSubscriptions(t.Context(), carrier.ListSubscriptionsParams{Limit: &two})
	if err != nil {
		t.Fatal(err)
	}
	found = nil
	for s, err := range client.AllSubscriptions(t.Context(), carrier.ListSubscriptionsParams{Limit: &two, Cursor: &first.NextCursor}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, s.ID)
	}
	if !slices.Equal(found, subscriptions[2:]) {
		t.Errorf("from the cursor on %v, want %v", found, subscriptions[2:])
	}
}

func TestAllPagesEndWithAnError(t *testing.T) {
	_, client := inMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for p, err := range client.AllTracking(ctx, carrier.SearchTrackingParams{Reference: "order-1"}) {
		n++
		if !errors.Is(err, context.Canceled) || p.TrackingNumber != "" {
			t.Errorf("%v, %v", p, err)
		}
	}
	for _, err := range client.AllSubscriptions(ctx, carrier.ListSubscriptionsParams{}) {
		n++
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("%d steps, want one each", n)
	}
}
