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
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// The herd: 100 callers, each with 5 s, meet a carrier that answers bare 503s
// for its first 1.5 s, over real HTTP. All of them must succeed, with hardly
// more requests than that takes, spread out, and soon.
//
// RESILIENCE_HERD_RUNS is how many runs there are; 3 by default.
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
			h := runHerd(t)
			t.Logf("%d of %d succeeded, %d requests, %d in the fullest 250 ms after the first burst, last done after %v",
				h.succeeded, herdCallers, h.requests, h.peak, h.last.Round(time.Millisecond))
			if h.succeeded != herdCallers {
				t.Errorf("%d of %d succeeded", h.succeeded, herdCallers)
			}
			if h.requests > 210 {
				t.Errorf("%d requests", h.requests)
			}
			if h.peak > 60 {
				t.Errorf("%d requests in 250 ms", h.peak)
			}
			if h.last > 2400*time.Millisecond {
				t.Errorf("the last was done after %v", h.last)
			}
		})
	}
}

const (
	herdCallers = 100
	herdOutage  = 1500 * time.Millisecond
	herdStep    = 250 * time.Millisecond
)

type herd struct {
	succeeded, requests int
	peak                int // requests in the fullest aligned herdStep but the first
	last                time.Duration
}

func runHerd(t *testing.T) herd {
	var (
		mu      sync.Mutex
		start   time.Time
		perStep = map[time.Duration]int{}
		h       herd
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		at := time.Since(start)
		h.requests++
		perStep[at/herdStep]++
		mu.Unlock()
		if at < herdOutage {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"in_transit"}`)
	}))
	defer server.Close()
	d := connectTo(t, server.URL, resilience.WithBreaker(resilience.BreakerPolicy{WaitWhenOpen: true, OpenFor: 250 * time.Millisecond}))

	start = time.Now()
	var wg sync.WaitGroup
	for range herdCallers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := track(ctx, d)
			done := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Log(err)
				return
			}
			h.succeeded++
			h.last = max(h.last, done)
		})
	}
	wg.Wait()
	for step, n := range perStep {
		if step > 0 {
			h.peak = max(h.peak, n)
		}
	}
	return h
}
