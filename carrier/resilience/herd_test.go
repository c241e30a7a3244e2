package resilience_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// The herd: 100 callers, each with 5 s, meet a carrier that answers bare 503s
// for its first 1.5 s, over real HTTP. All of them must succeed, with hardly
// more requests than that takes, spread out, and soon.
//
// RESILIENCE_HERD_RUNS is how many runs there are; 3 by default. A machine that
// has no time for the test cannot be held against the breaker: in a run in which
// goroutines woke up late, what depends on the clock is not judged, and said so.
// TestHerdInVirtualTime judges all of it in any case.
func TestHerd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	runs := 3
	if n, err := strconv.Atoi(os.Getenv("RESILIENCE_HERD_RUNS")); err == nil {
		runs = n
	}
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			late := watchForLateness(t)
			server := httptest.NewServer(nil)
			defer server.Close()
			d := connectTo(t, server.URL, herdBreaker)
			h := newHerd()
			server.Config.Handler = h
			h.run(t, d)
			blurred := late() > 25*time.Millisecond
			if blurred {
				t.Log("the machine was too busy: peak and end are not judged")
			}
			h.judge(t, !blurred)
		})
	}
}

func TestHerdInVirtualTime(t *testing.T) {
	runs := 20
	if testing.Short() {
		runs = 3
	}
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHerd()
				d := connectTo(t, "http://carrier.test", herdBreaker, resilience.WithTransport(inProcess{h}))
				h.run(t, d)
				h.judge(t, true)
			})
		})
	}
}

var herdBreaker = resilience.WithBreaker(resilience.BreakerPolicy{WaitWhenOpen: true, OpenFor: 250 * time.Millisecond})

// inProcess hands requests to a handler, after 2 ms on the way.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// watchForLateness returns how late a goroutine woke up at the worst.
func watchForLateness(t *testing.T) func() time.Duration {
	t.Helper()
	const tick = 5 * time.Millisecond
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for last := time.Now(); ; {
			select {
			case <-stop:
				worst <- late
				return
			case <-time.After(tick):
				now := time.Now()
				late = max(late, now.Sub(last)-tick)
				last = now
			}
		}
	}()
	return func() time.Duration { close(stop); return <-worst }
}

const (
	herdCallers = 100
	herdOutage  = 1500 * time.Millisecond
	herdStep    = 250 * time.Millisecond
)

// herd is the carrier of the test, and what it saw.
type herd struct {
	mu        sync.Mutex
	start     time.Time
	perStep   map[time.Duration]int
	requests  int
	succeeded int
	last      time.Duration
}

func newHerd() *herd { return &herd{perStep: map[time.Duration]int{}} }

func (h *herd) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	at := time.Since(h.start)
	h.requests++
	h.perStep[at/herdStep]++
	h.mu.Unlock()
	if at < herdOutage {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"in_transit"}`)
}

func (h *herd) run(t *testing.T, d *resilience.Doer) {
	h.start = time.Now()
	var wg sync.WaitGroup
	for range herdCallers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := track(ctx, d)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil {
				t.Log(err)
				return
			}
			h.succeeded++
			h.last = max(h.last, time.Since(h.start))
		})
	}
	wg.Wait()
}

func (h *herd) judge(t *testing.T, clock bool) {
	t.Helper()
	peak := 0
	for step, n := range h.perStep {
		if step > 0 {
			peak = max(peak, n)
		}
	}
	t.Logf("%d of %d succeeded, %d requests, %d in the fullest 250 ms after the first burst, last done after %v",
		h.succeeded, herdCallers, h.requests, peak, h.last.Round(time.Millisecond))
	if h.succeeded != herdCallers {
		t.Errorf("%d of %d succeeded", h.succeeded, herdCallers)
	}
	if h.requests > 210 {
		t.Errorf("%d requests", h.requests)
	}
	if clock && peak > 60 {
		t.Errorf("%d requests in 250 ms", peak)
	}
	if clock && h.last > 2400*time.Millisecond {
		t.Errorf("the last was done after %v", h.last)
	}
}
