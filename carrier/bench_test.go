package carrier_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// The benchmarks hold a call through the SDK against the same call by hand,
// turn by turn in one run: on a shared machine only the ratio means anything.

func BenchmarkGet(b *testing.B) {
	hc := &http.Client{Transport: canned{200, fourEvents}}
	client := newClient(b, baseURL, carrier.WithTransport(canned{200, fourEvents}), carrier.WithAPIKey("secret"))
	compare(b, func(ctx context.Context) error {
		return byHand(ctx, hc, baseURL, "GET", "/tracking/BK1001TR", "", nil, new(carrier.Tracking))
	}, func(ctx context.Context) error {
		_, err := client.GetTracking(ctx, "BK1001TR")
		return err
	})
}

func BenchmarkKeyedPost(b *testing.B) {
	order := smallestOrder("order-1001")
	key := carrier.DeriveIdempotencyKey("createShipment", "order-1001", 1)
	hc := &http.Client{Transport: canned{201, made}}
	client := newClient(b, baseURL, carrier.WithTransport(canned{201, made}), carrier.WithAPIKey("secret"))
	compare(b, func(ctx context.Context) error {
		return byHand(ctx, hc, baseURL, "POST", "/shipments", key, order, new(carrier.Shipment))
	}, func(ctx context.Context) error {
		_, err := client.CreateShipment(ctx, order, carrier.WithIdempotencyKey(key))
		return err
	})
}

func BenchmarkGetOverLoopback(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(fourEvents)
	}))
	defer srv.Close()
	hc := srv.Client()
	client := newClient(b, srv.URL, carrier.WithAPIKey("secret"))
	compare(b, func(ctx context.Context) error {
		return byHand(ctx, hc, srv.URL, "GET", "/tracking/BK1001TR", "", nil, new(carrier.Tracking))
	}, func(ctx context.Context) error {
		_, err := client.GetTracking(ctx, "BK1001TR")
		return err
	})
}

func compare(b *testing.B, hand, sdk func(context.Context) error) {
	const turn = 20
	ctx := b.Context()
	took := func(f func(context.Context) error) time.Duration {
		begun := time.Now()
		for range turn {
			if err := f(ctx); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begun)
	}
	var h, s time.Duration
	turns := 0
	for b.Loop() {
		h += took(hand)
		s += took(sdk)
		turns++
	}
	calls := float64(turns * turn)
	b.ReportMetric(float64(h.Nanoseconds())/calls, "ns/by-hand")
	b.ReportMetric(float64(s.Nanoseconds())/calls, "ns/sdk")
	b.ReportMetric(float64(s)/float64(h), "sdk/by-hand")
	b.ReportMetric(0, "ns/op")
}
