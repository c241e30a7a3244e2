package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// exporting returns a carrier with n parcels whose 6 events have happened.
func exporting(t *testing.T, n int, opts ...carrier.Option) (*mockcarrier.Server, *carrier.Client, carrier.ExportTrackingEventsParams) {
	t.Helper()
	srv, client := inMemory(t, append([]carrier.Option{carrier.WithRetry(carrier.RetryPolicy{Rand: func() float64 { return 0 }})}, opts...)...)
	since := carrier.NewTime(time.Now().Add(-time.Hour))
	for i := range n {
		if _, err := client.CreateShipment(t.Context(), smallestOrder(fmt.Sprint("order-", i))); err != nil {
			t.Fatal(err)
		}
	}
	srv.Advance(48 * time.Hour)
	return srv, client, carrier.ExportTrackingEventsParams{Since: &since}
}

// exported goes through an export, and returns what came, in short, and the error.
func exported(ctx context.Context, client *carrier.Client, params carrier.ExportTrackingEventsParams) (events []string, last string, err error) {
	for e, err := range client.TrackingEvents(ctx, params) {
		if err != nil {
			return events, last, err
		}
		events, last = append(events, e.TrackingNumber+" "+string(e.Event.Status)+" "+e.Event.Location), e.Cursor
	}
	return events, last, nil
}

func requestsFor(srv *mockcarrier.Server, operation string) int {
	n := 0
	for _, r := range srv.Requests() {
		if r.Operation == operation {
			n++
		}
	}
	return n
}

// Ten answers are cut, stall or end within a line, and nothing is missing and
// nothing comes twice.
func TestTrackingEventsOverTenCuts(t *testing.T) {
	for name, fault := range map[string]mockcarrier.Fault{
		"cut in chunks":   mockcarrier.Truncate(1500, mockcarrier.ByChunks),
		"cut by length":   mockcarrier.Truncate(1500, mockcarrier.ByLength),
		"cut by close":    mockcarrier.Truncate(1500, mockcarrier.ByClose),
		"reset":           mockcarrier.ResetBody(1500),
		"stalled":         mockcarrier.StallBody(1500),
		"one line a time": mockcarrier.Truncate(400, mockcarrier.ByChunks),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, params := exporting(t, 20)
				want, _, err := exported(t.Context(), client, params)
				if err != nil || len(want) != 120 {
					t.Fatalf("%d events: %v", len(want), err)
				}
				srv.Inject(fault.On("exportTrackingEvents").Times(10))
				before := requestsFor(srv, "exportTrackingEvents")
				got, last, err := exported(t.Context(), client, params)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%v: got %d events\n%v\nwant\n%v", err, len(got), got, want)
				}
				if n := requestsFor(srv, "exportTrackingEvents") - before; n != 11 {
					t.Errorf("%d requests", n)
				}
				// The next day it goes on behind the last.
				params.Cursor = &last
				if got, _, err := exported(t.Context(), client, params); err != nil || len(got) != 0 {
					t.Errorf("behind the end: %v, %v", got, err)
				}
			})
		})
	}
}

// A carrier that begins again each time brings nothing new either.
func TestTrackingEventsOfACarrierThatForgetsTheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, params := exporting(t, 0)
		const line = `{"cursor":"c1","trackingNumber":"BK2001TR","event":{"status":"in_transit"}}`
		srv.Inject(mockcarrier.Status(200).WithBody(line+"\n"+line[:20]).WithHeader("Content-Type", "application/x-ndjson").On("exportTrackingEvents"))
		got, last, err := exported(t.Context(), client, params)
		if n := requestsFor(srv, "exportTrackingEvents"); err == nil || n != 4 || len(got) != 4 || last != "c1" {
			t.Errorf("%d requests, %d events, %q last: %v", n, len(got), last, err)
		}
	})
}

// It gives up after three answers that bring nothing new, and says where to go
// on.
func TestTrackingEventsGivesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		faults   []mockcarrier.Fault // the newest strikes first
		events   int
		requests int
		is       error
	}{
		"cut at once": {[]mockcarrier.Fault{mockcarrier.Truncate(10, mockcarrier.ByChunks)}, 0, 4, carrier.ErrUnavailable},
		"cut after some": {
			[]mockcarrier.Fault{mockcarrier.Truncate(10, mockcarrier.ByChunks), mockcarrier.Truncate(2000, mockcarrier.ByChunks).Times(2)}, 14, 5, carrier.ErrUnavailable,
		},
		"cut, then well a bit": {
			[]mockcarrier.Fault{
				mockcarrier.Truncate(10, mockcarrier.ByChunks), mockcarrier.Truncate(2000, mockcarrier.ByChunks).Times(1),
				mockcarrier.Truncate(10, mockcarrier.ByChunks).Times(3),
			}, 7, 7, carrier.ErrUnavailable,
		},
		"stalled":   {[]mockcarrier.Fault{mockcarrier.StallBody(10)}, 0, 4, carrier.ErrTimeout},
		"malformed": {[]mockcarrier.Fault{mockcarrier.Status(200).WithBody(`{"cursor":7}`).WithHeader("Content-Type", "application/x-ndjson")}, 0, 4, carrier.ErrMalformedResponse},
		"refused":   {[]mockcarrier.Fault{mockcarrier.Status(401)}, 0, 1, carrier.ErrUnauthorized},
		"down":      {[]mockcarrier.Fault{mockcarrier.Status(503)}, 0, 3, carrier.ErrUnavailable}, // which the call itself retries
		"too large": {[]mockcarrier.Fault{mockcarrier.Oversize(2 << 20)}, 0, 1, carrier.ErrResponseTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, params := exporting(t, 20, carrier.WithoutBreaker())
				for _, f := range tc.faults {
					srv.Inject(f.On("exportTrackingEvents"))
				}
				begun := time.Now()
				got, last, err := exported(t.Context(), client, params)
				var e *carrier.ExportError
				if !errors.As(err, &e) || !errors.Is(err, tc.is) {
					t.Fatalf("got %v", err)
				}
				if len(got) != tc.events || e.Events != tc.events || e.Cursor != last {
					t.Errorf("%d events, %q last; the error says %d and %q", len(got), last, e.Events, e.Cursor)
				}
				if n := requestsFor(srv, "exportTrackingEvents"); n != tc.requests {
					t.Errorf("%d requests", n)
				}
				if took := time.Since(begun); took > 3*time.Minute {
					t.Errorf("it took %v", took)
				}
				if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, fmt.Sprintf("after %d events: ", tc.events)) {
					t.Errorf("got %q", text)
				}

				srv.ClearFaults()
				params.Cursor = &e.Cursor
				rest, _, err := exported(t.Context(), client, params)
				if err != nil || len(got)+len(rest) != 120 {
					t.Errorf("%d and then %d events: %v", len(got), len(rest), err)
				}
			})
		})
	}
}

// Who leaves is let go, in the middle of a wait as well, and no connection is
// kept.
func TestTrackingEventsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, params := exporting(t, 20)
		srv.Inject(mockcarrier.StallBody(1500).On("exportTrackingEvents"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		got, _, err := exported(ctx, client, params)
		if !errors.Is(err, context.DeadlineExceeded) || len(got) == 0 || time.Since(begun) != 10*time.Second {
			t.Errorf("after %v: %v with %d events", time.Since(begun), err, len(got))
		}
		srv.ClearFaults()
		for range client.TrackingEvents(t.Context(), params) {
			break
		}
		if n := requestsFor(srv, "exportTrackingEvents"); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// An export whose lines have no cursor is not asked for twice.
func TestTrackingEventsWithoutCursors(t *testing.T) {
	requests := 0
	client := newClient(t, "https://api.carrier.example/v1", carrier.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		requests++
		const lines = `{"trackingNumber":"BK2001TR"}` + "\n" + `{"trackingNumber":"BK20`
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: io.NopCloser(strings.NewReader(lines)), ContentLength: -1, Request: r,
		}, nil
	})))
	n := 0
	var last error
	for _, err := range client.TrackingEvents(t.Context(), carrier.ExportTrackingEventsParams{}) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 1 || requests != 1 || !errors.Is(last, carrier.ErrMalformedResponse) {
		t.Errorf("%d events in %d requests: %v", n, requests, last)
	}
}
