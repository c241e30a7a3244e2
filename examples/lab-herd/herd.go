package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// herd is what the callers did with one policy.
type herd struct {
	policy
	arrivals []arrival // at the carrier
	attempts int       // as the callers count them
	served   int       // callers that got their answer
	last     time.Duration
	stall    time.Duration // how late the machine was to wake a goroutine, at worst
}

// stampede lets the callers of a policy begin at once, over HTTP.
func stampede(ctx context.Context, p policy) (herd, error) {
	u := new(upstream)
	server := httptest.NewServer(u)
	defer server.Close()
	client, err := carrier.New(server.URL, p.options...)
	if err != nil {
		return herd{}, err
	}
	defer client.Close()
	return u.trample(ctx, p, client)
}

// trample goes down, and lets the callers begin.
func (u *upstream) trample(ctx context.Context, p policy, client *carrier.Client) (herd, error) {
	u.start = time.Now()
	h := herd{policy: p}
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		wrong error
	)
	for range callers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			var info carrier.CallInfo
			_, err := client.GetTracking(ctx, "BK1001TR", carrier.WithCallInfo(&info))
			done := time.Since(u.start)
			mu.Lock()
			defer mu.Unlock()
			h.attempts += info.Attempts
			switch {
			case err == nil:
				h.served++
				h.last = max(h.last, done)
			case !errors.Is(err, carrier.ErrUnavailable):
				wrong = errors.Join(wrong, err)
			}
		})
	}
	stalled := watchClock()
	wg.Wait()
	h.stall = stalled()
	u.mu.Lock()
	defer u.mu.Unlock()
	h.arrivals = u.arrivals
	if wrong != nil {
		return h, fmt.Errorf("%s: %w", p.name, wrong)
	}
	return h, ctx.Err()
}

// watchClock watches how late a goroutine that sleeps is woken. stalled ends it,
// and returns the worst.
func watchClock() (stalled func() time.Duration) {
	const nap = 5 * time.Millisecond
	done := make(chan struct{})
	worst := make(chan time.Duration)
	go func() {
		var late time.Duration
		for {
			begun := time.Now()
			select {
			case <-time.After(nap):
				late = max(late, time.Since(begun)-nap)
			case <-done:
				worst <- late
				return
			}
		}
	}()
	return func() time.Duration { close(done); return <-worst }
}

// bin is how many attempts arrived in one step.
type bin struct{ refused, answered int }

func (b bin) total() int { return b.refused + b.answered }

// bins count the arrivals step by step, from the beginning to the last of them.
func (h herd) bins() []bin {
	var bins []bin
	for _, a := range h.arrivals {
		i := int(a.at / step)
		for len(bins) <= i {
			bins = append(bins, bin{})
		}
		if a.refused {
			bins[i].refused++
		} else {
			bins[i].answered++
		}
	}
	return bins
}

// fullest is the fullest step from the given one on.
func (h herd) fullest(from int) int {
	most := 0
	for i, b := range h.bins() {
		if i >= from {
			most = max(most, b.total())
		}
	}
	return most
}
