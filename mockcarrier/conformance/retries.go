package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var retryCases = []Case{
	{ID: "retries/jitter", Title: "clients that failed together do not come back together",
		Source: "Brooker, Exponential Backoff And Jitter, AWS 2015", run: jitter},
}

// jitter lets some clients fail at the same moment, and looks at how long each
// then waits. Those that wait alike come back alike.
func jitter(s *stage) {
	const clients = 16
	var all sync.WaitGroup
	for i := range clients {
		number := fmt.Sprintf("MC02JITTER%02d", i)
		s.mock.Inject(mockcarrier.Status(503).ForTracking(number).Times(1))
		c := s.another(s.URL)
		defer s.closeClient(c)
		all.Go(func() {
			s.within(defaultLimit, func(ctx context.Context) Result { return c.Track(ctx, number) })
		})
	}
	all.Wait()

	first := map[string]time.Time{}
	var waits []time.Duration
	for _, r := range s.sent("getTracking") {
		number := r.Parameters["trackingNumber"]
		if at, again := first[number]; again {
			waits = append(waits, r.At.Sub(at))
		} else {
			first[number] = r.At
		}
	}
	if !s.want(len(waits) >= clients, "%d of %d clients come back after a 503", len(waits), clients) {
		return
	}
	slices.Sort(waits)
	median := waits[len(waits)/2]
	step := max(median*15/100, 2*time.Millisecond)
	s.want(alike(waits, step) < clients*3/4, "%d of %d clients come back within %v of each other, after %v: there is no jitter",
		alike(waits, step), len(waits), step.Round(time.Millisecond), median.Round(time.Millisecond))
}

// alike returns how many of the sorted waits lie within a step of each other, at most.
func alike(waits []time.Duration, step time.Duration) int {
	most := 0
	for i, from := range waits {
		n := 0
		for _, w := range waits[i:] {
			if w-from <= step {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
