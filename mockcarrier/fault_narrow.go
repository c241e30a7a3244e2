package mockcarrier

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// On narrows the rule to operations, by operationId.
func (f Fault) On(operations ...string) Fault {
	f.Operations = slices.Concat(f.Operations, operations)
	return f
}

// ForKey narrows the rule to requests with one of these idempotency keys.
func (f Fault) ForKey(keys ...string) Fault {
	f.Keys = slices.Concat(f.Keys, keys)
	return f
}

// ForReference narrows the rule to requests about shipments with one of these
// references of the sender.
func (f Fault) ForReference(references ...string) Fault {
	f.References = slices.Concat(f.References, references)
	return f
}

// ForTracking narrows the rule to requests about one of these parcels.
func (f Fault) ForTracking(numbers ...string) Fault {
	f.TrackingNumbers = slices.Concat(f.TrackingNumbers, numbers)
	return f
}

// With narrows the rule to requests that all the matchers match.
func (f Fault) With(matchers ...Matcher) Fault {
	f.Match = slices.Concat(f.Match, matchers)
	return f
}

// Skip leaves the first n requests alone.
func (f Fault) Skip(n int) Fault { f.After = n; return f }

// Times lets the rule strike n times, and then no more. A sequence begins again
// when n is more than it has steps.
func (f Fault) Times(n int) Fault { f.First = n; return f }

// EveryNth lets the rule strike at each nth request only.
func (f Fault) EveryNth(n int) Fault { f.Every = n; return f }

// AllButEveryNth lets the rule strike at all but each nth request.
func (f Fault) AllButEveryNth(n int) Fault { f.AllBut = n; return f }

// Chance lets the rule strike with a probability from 0 to 1. The same seed
// gives the same decisions; 0 stands for the seed of [WithSeed]. Requests are
// told apart by the order of their arrival: those that arrive at the same time
// share out the decisions as it comes.
func (f Fault) Chance(probability float64, seed uint64) Fault {
	f.Probability, f.Seed = &probability, seed
	return f
}

// Lasting lets the rule be in force for d, on the carrier's clock, from when it
// is injected: an outage.
func (f Fault) Lasting(d time.Duration) Fault { f.Lasts = d; return f }

// Until lets the rule be in force until t, on the carrier's clock.
func (f Fault) Until(t time.Time) Fault { f.Ends = t; return f }

// Looping lets a sequence begin again after its last step, without end.
func (f Fault) Looping() Fault { f.Loop = true; return f }

// MayNotFire says that it is no failure of the test if the rule never strikes.
func (f Fault) MayNotFire() Fault { f.Optional = true; return f }

// UpTo makes a delay vary: any time from its own to most is as likely. After
// [Fault.Spread] it is the longest.
func (f Fault) UpTo(most time.Duration) Fault { f.MaxWait = most; return f }

// Spread makes a delay vary as those of networks do, log-normally: half are
// longer than its time, few much longer. See [Fault.Sigma].
func (f Fault) Spread(sigma float64) Fault { f.Sigma = sigma; return f }

// RetryAfter adds a Retry-After of whole seconds. [Fault.RetryAfterDate] is its
// other form. What carriers really send is text: WithHeader("Retry-After",
// "soon"), "-1", "99999999999999999999", "".
func (f Fault) RetryAfter(seconds int) Fault {
	return f.WithHeader("Retry-After", fmt.Sprint(seconds))
}

// RetryAfterDate adds a Retry-After that is an HTTP date, d after the answer on
// the carrier's clock. It may be in the past.
func (f Fault) RetryAfterDate(d time.Duration) Fault { f.RetryDate = &d; return f }

// WithHeader adds a header to the answer that the fault gives.
func (f Fault) WithHeader(name, value string) Fault {
	h := f.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Add(name, value)
	f.Header = h
	return f
}

// WithCode sets the code of the problem details that the fault gives.
func (f Fault) WithCode(code string) Fault { f.Code = code; return f }

// WithBody replaces the body of the answer that the fault gives.
func (f Fault) WithBody(body string) Fault { f.Body = body; return f }

// BeforeProcessing sets [PhaseBefore].
func (f Fault) BeforeProcessing() Fault { f.Phase = PhaseBefore; return f }

// DuringProcessing sets [PhaseDuring].
func (f Fault) DuringProcessing() Fault { f.Phase = PhaseDuring; return f }

// AfterProcessing sets [PhaseAfter].
func (f Fault) AfterProcessing() Fault { f.Phase = PhaseAfter; return f }
