package mockcarrier_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// steady is a retry policy without chance: what the carrier asks for is waited
// for, and no more.
var steady = carrier.RetryPolicy{Rand: func() float64 { return 0 }}

func sdk(t *testing.T, s *mockcarrier.Server, opts ...carrier.Option) *carrier.Client {
	t.Helper()
	client, err := carrier.New(s.URL, append([]carrier.Option{
		carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(s.Transport()), carrier.WithRetry(steady),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// inRealTime runs f some times, and wants the quickest to take less than limit.
// With the race detector it runs once, and may take longer.
func inRealTime(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	best, times := time.Hour, 10
	if raceDetector {
		times = 1
	}
	for range times {
		start := time.Now()
		f()
		if best = min(best, time.Since(start)); best < limit {
			break
		}
	}
	if best >= limit && !raceDetector {
		t.Errorf("the quickest took %v, and should take less than %v", best, limit)
	}
	t.Logf("%v of real time", best)
}

func TestTwoWaitsOfHalfAMinute(t *testing.T) {
	inRealTime(t, 50*time.Millisecond, func() {
		synctest.Test(t, func(t *testing.T) {
			s := mockcarrier.StartInMemory(t)
			s.Inject(mockcarrier.Status(503).RetryAfter(30).Times(2))
			client := sdk(t, s, carrier.WithTimeout(2*time.Minute))
			start := time.Now()
			if _, err := client.CreateShipment(t.Context(), shipmentRequest()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != time.Minute {
				t.Errorf("two waits of 30 s took %v", took)
			}
		})
	})
}

func TestThreeDaysOfPolling(t *testing.T) {
	inRealTime(t, 5*time.Second, func() { // 0.7 s on two cores with nothing else to do
		synctest.Test(t, func(t *testing.T) {
			s := mockcarrier.StartInMemory(t)
			client := sdk(t, s)
			bought, err := client.CreateShipment(t.Context(), shipmentRequest())
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			var seen []carrier.TrackingStatus
			for range 72 * 60 {
				tracking, err := client.GetTracking(t.Context(), bought.TrackingNumber)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(seen); n == 0 || seen[n-1] != tracking.Status {
					seen = append(seen, tracking.Status)
				}
				time.Sleep(time.Minute)
			}
			if took := time.Since(start); took != 72*time.Hour {
				t.Errorf("it took %v", took)
			}
			if fmt.Sprint(seen) != "[label_created picked_up in_transit out_for_delivery delivered]" {
				t.Errorf("the parcel was %v", seen)
			}
		})
	})
}

// 200 bubbles at the same time, each with a carrier and a client of its own,
// over all protocols.
func TestParallelBubbles(t *testing.T) {
	for i := range 200 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var opts []mockcarrier.Option
				if i%4 == 0 {
					opts = append(opts, mockcarrier.WithHTTP2())
				}
				if i%8 < 2 {
					opts = append(opts, mockcarrier.WithTLS())
				}
				s := mockcarrier.StartInMemory(t, opts...)
				s.Inject(mockcarrier.Status(503).RetryAfter(30).Times(3))
				client := sdk(t, s, carrier.WithTimeout(5*time.Minute), carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: 4, Rand: steady.Rand}))
				start := time.Now()
				bought, err := client.CreateShipment(t.Context(), shipmentRequest())
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != 90*time.Second {
					t.Errorf("it took %v", took)
				}
				if ledger := s.Ledger(); len(ledger) != 1 || bought.ID != "shp_2001" {
					t.Errorf("another test is seen: %v, %s", ledger, bought.ID)
				}
			})
		})
	}
}
