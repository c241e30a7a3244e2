package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var deadlineCases = []Case{
	{ID: "deadlines/by-default", Title: "a caller without a time limit is not kept for ever", Source: "gRPC, deadlines: always set one", run: boundedByDefault},
	{ID: "deadlines/over-already", Title: "a context that is over already: nothing is sent", Source: "package context", run: overAlready},
	{ID: "deadlines/cancel-in-flight", Title: "the caller leaves while no answer comes: over at once", Source: "package context", run: cancelInFlight},
	{ID: "deadlines/cancel-in-a-wait", Title: "the caller leaves in the middle of a wait: over at once, and nothing more is sent", Source: "package context", run: cancelInAWait},
}

// boundedByDefault gives a client time for several attempts.
func boundedByDefault(s *stage) {
	s.mock.Inject(mockcarrier.Stall())
	r := s.call(context.Background(), 8*AttemptTimeout, s.track)
	s.want(r.Err != nil, "the call succeeds without an answer")
}

func overAlready(s *stage) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := s.call(ctx, patience, s.ship("key-1", "order-1"))
	s.want(errors.Is(r.Err, context.Canceled), "the error is not context.Canceled: %s", line(r.Err))
	s.want(len(s.mock.Requests()) == 0, "%d requests come", len(s.mock.Requests()))
	told(&s.findings, "outcome", r.Outcome, NotSent)
}

func cancelInFlight(s *stage) {
	s.mock.Inject(mockcarrier.StallAfter())
	r := s.canceled(func() bool { return len(s.mock.Ledger()) > 0 })
	if r.hung {
		return
	}
	s.want(errors.Is(r.Err, context.Canceled), "the error is not context.Canceled: %s", line(r.Err))
	told(&s.findings, "outcome", r.Outcome, Unknown)
}

func cancelInAWait(s *stage) {
	const wait = 2
	s.mock.Inject(mockcarrier.Status(503).RetryAfter(wait))
	r := s.canceled(func() bool {
		requests := s.sent("createShipment")
		return len(requests) > 0 && requests[0].Status != 0
	})
	if r.hung || !s.want(r.late >= 0, "the call does not wait for the %d s that the carrier asked for", wait) {
		return
	}
	s.want(errors.Is(r.Err, context.Canceled), "the error is not context.Canceled: %s", line(r.Err))
	s.want(r.late < wait*time.Second/2, "the call returns %v after the caller has left", r.late.Round(time.Millisecond))
	s.want(len(s.sent("createShipment")) == 1, "%d requests come", len(s.sent("createShipment")))
}

// departure is a call whose caller has left.
type departure struct {
	reply
	late time.Duration // how long after the caller it returned; negative if it was before
}

// canceled buys something, and leaves soon after a condition holds.
func (s *stage) canceled(when func() bool) departure {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan time.Time, 1)
	go func() {
		eventually(defaultLimit, when)
		const soon = 100 * time.Millisecond // a client has begun to wait
		time.Sleep(soon)
		left <- time.Now()
		cancel()
	}()
	r := s.call(ctx, defaultLimit, s.ship("key-1", "order-1"))
	returned := time.Now()
	return departure{r, returned.Sub(<-left)}
}
