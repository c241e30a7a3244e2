package conformance

import (
	"context"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var outageCases = []Case{
	{ID: "outage/retries-bounded", Title: "in an outage fewer than 1.5 attempts for each call", Source: "gRPC A6, retryThrottling; Google SRE book, ch. 21", run: retriesBounded},
	{ID: "outage/fails-fast", Title: "in an outage most calls fail without a request", Source: "Nygard, Release It!: circuit breaker", run: failsFast},
	{ID: "outage/refusal-not-sent", Title: "what is refused without a request says that it was not sent", Source: "package resilience, Outcome: not sent", run: refusalNotSent},
	{ID: "outage/recovers", Title: "after an outage calls succeed again", Source: "Nygard, Release It!: circuit breaker", run: recovers},
	{ID: "outage/hung-carrier", Title: "a carrier that hangs is an outage too", Source: "package resilience, BreakerPolicy", run: hungCarrier},
	{ID: "outage/probe-canceled", Title: "a probe whose caller leaves does not keep the breaker open for ever", Source: "gobreaker: half-open", run: probeCanceled},
	{ID: "outage/not-found", Title: "404s are no outage", Source: "package resilience, BreakerPolicy", run: noOutage(mockcarrier.Status(404), defaultLimit)},
	{ID: "outage/rate-limited", Title: "429s are no outage", Source: "package resilience, BreakerPolicy", run: noOutage(mockcarrier.Status(429), defaultLimit)},
	{ID: "outage/callers-leave", Title: "callers that leave are no outage", Source: "package resilience, BreakerPolicy", run: noOutage(mockcarrier.Stall(), 20*time.Millisecond)},
}

// outage makes calls that fail, until so many were made.
func (s *stage) outage(calls int) []reply {
	var replies []reply
	for range calls {
		replies = append(replies, s.within(defaultLimit, s.track))
	}
	return replies
}

func retriesBounded(s *stage) {
	const calls = 40
	s.mock.Inject(mockcarrier.Status(503))
	s.outage(calls)
	n := len(s.sent("getTracking"))
	s.want(n < calls*3/2, "%d calls are %d requests", calls, n)
}

func failsFast(s *stage) {
	const calls = 40
	s.mock.Inject(mockcarrier.Status(503))
	s.outage(calls)
	n := len(s.sent("getTracking"))
	s.want(n < calls/2, "%d calls are %d requests: there is no breaker", calls, n)
}

func refusalNotSent(s *stage) {
	s.mock.Inject(mockcarrier.Status(503))
	for range 40 {
		before := len(s.sent("getTracking"))
		r := s.within(defaultLimit, s.track)
		if len(s.sent("getTracking")) == before {
			told(&s.findings, "outcome", r.Outcome, NotSent)
			return
		}
	}
	s.want(false, "40 calls in an outage, and none is refused: there is no breaker")
}

// reopens is how long a breaker may take to let calls through again.
const reopens = 10 * time.Second

// recovered says whether calls succeed in the end.
func (s *stage) recovered() bool {
	return eventually(reopens, func() bool {
		time.Sleep(20 * time.Millisecond)
		return s.within(defaultLimit, s.track).Err == nil
	})
}

func recovers(s *stage) {
	s.mock.Inject(mockcarrier.Status(503))
	s.outage(20)
	s.mock.ClearFaults()
	s.want(s.recovered(), "%v after the outage calls still fail", reopens)
}

// hungCarrier has impatient callers, each of which leaves before an attempt ends.
func hungCarrier(s *stage) {
	const calls = 12
	s.mock.Inject(mockcarrier.Stall())
	for range calls {
		s.within(AttemptTimeout*6/10, s.track)
	}
	n := len(s.sent("getTracking"))
	s.want(n < calls, "%d calls that end without an answer are %d requests: there is no breaker, or it does not see them", calls, n)
}

func probeCanceled(s *stage) {
	s.mock.Inject(mockcarrier.Status(503))
	s.outage(20)
	s.mock.Inject(mockcarrier.Stall())
	probes := len(s.sent("getTracking")) + 1
	s.want(eventually(reopens, func() bool {
		time.Sleep(20 * time.Millisecond)
		s.within(50*time.Millisecond, s.track)
		return len(s.sent("getTracking")) >= probes
	}), "no request comes within %v of the outage", reopens)
	s.mock.ClearFaults()
	s.want(s.recovered(), "%v after a probe whose caller left calls still fail", reopens)
}

// noOutage has calls fail by a fault that says nothing of the carrier's health.
func noOutage(f mockcarrier.Fault, limit time.Duration) func(*stage) {
	return func(s *stage) {
		s.mock.Inject(f)
		for range 12 {
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(limit, cancel)
			s.call(ctx, limit+patience, s.track)
			timer.Stop()
			cancel()
		}
		s.mock.ClearFaults()
		r := s.within(defaultLimit, s.track)
		s.want(r.Err == nil, "the next call fails: %s; the carrier is well", line(r.Err))
	}
}
