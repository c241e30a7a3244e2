package resilience

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// RetryPolicy says when an attempt is followed by another one, and when that
// starts. What is safe to repeat is not its business: that is decided by the
// operation's [Safety] and by what happened, and no policy overrides it.
//
// A zero field means its default, a negative one switches the rule off.
type RetryPolicy struct {
	// MaxAttempts counts all attempts, the first included; default 3.
	// Negative: as many as time and budget allow.
	MaxAttempts int
	// BaseDelay is the ceiling of the first backoff; default 100 ms.
	// Negative: no backoff at all; a Retry-After is still waited for.
	BaseDelay time.Duration
	// MaxDelay is the ceiling of every backoff; default 5 s. Negative: none.
	MaxDelay time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for; default
	// 60 s. A longer one ends the call at once, with the answer that brought
	// it and Error.RetryAfter. Negative: Retry-After is not read.
	MaxRetryAfter time.Duration
	// Multiplier is the growth from one ceiling to the next; default 2, at
	// least 1. Negative: no growth.
	Multiplier float64
	// Jitter spreads the backoffs; default FullJitter.
	Jitter Jitter
	// Statuses are the statuses that are retried; nil means 408, 421, 425,
	// 429, 500, 502, 503, 504 and 520 to 524. An empty, non-nil list retries none.
	// A 409 in progress is retried in any case, a 421 once at most.
	Statuses []int
	// Retryable is asked, in place of Statuses, for every failed attempt that
	// is safe to repeat, whether it got an answer or not; nil means Statuses
	// for answers, and true for the rest. It must not block.
	Retryable func(Attempt) bool
	// OnRetry is called before each wait, outside of any lock.
	OnRetry func(a Attempt, wait time.Duration)
	// Rand returns numbers in [0,1); nil means math/rand/v2. It may be called
	// from several goroutines at once. For tests and simulations.
	Rand func() float64
}

// Attempt is one attempt of a call, as hooks see it.
type Attempt struct {
	// Operation is the operationId; for a request that matches no operation,
	// the method and "(unknown)".
	Operation string
	// Number is 1 for the first attempt of a call.
	Number int
	// StatusCode is 0 if no answer came.
	StatusCode int
	// Header is the answer's, credentials removed; nil if no answer came.
	Header http.Header
	// Err is what went wrong beside the status; nil for a whole answer.
	Err error
	// Outcome is this attempt's, not that of the call.
	Outcome Outcome
	// Elapsed is the time of this attempt, the wait for a breaker not included.
	Elapsed time.Duration
}

// defaultStatuses are those for which a repeat can help.
var defaultStatuses = []int{408, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524}

// retryPolicy is a RetryPolicy with its defaults filled in.
type retryPolicy struct {
	RetryPolicy
}

func newRetryPolicy(p RetryPolicy) (*retryPolicy, error) {
	switch {
	case !finite(p.Multiplier):
		return nil, invalid("RetryPolicy.Multiplier must be a finite number")
	case p.Multiplier > 0 && p.Multiplier < 1:
		return nil, invalid("RetryPolicy.Multiplier must be at least 1")
	case p.Jitter < FullJitter || p.Jitter > NoJitter:
		return nil, invalid("RetryPolicy.Jitter must be FullJitter, EqualJitter or NoJitter")
	}
	if err := validateStatuses("RetryPolicy.Statuses", p.Statuses); err != nil {
		return nil, err
	}
	p.MaxAttempts = orDefault(p.MaxAttempts, 3, math.MaxInt)
	p.BaseDelay = orDefault(p.BaseDelay, 100*time.Millisecond, 0)
	p.MaxDelay = orDefault(p.MaxDelay, 5*time.Second, math.MaxInt64)
	p.MaxRetryAfter = orDefault(p.MaxRetryAfter, time.Minute, -1)
	p.Multiplier = orDefault(p.Multiplier, 2, 1)
	if p.Statuses == nil {
		p.Statuses = defaultStatuses
	}
	p.Statuses = slices.Clone(p.Statuses)
	return &retryPolicy{p}, nil
}

func validateStatuses(name string, statuses []int) error {
	for _, s := range statuses {
		if s < 300 || s > 599 {
			return invalid("%s must lie between 300 and 599, not %d", name, s)
		}
	}
	return nil
}

// orDefault gives a policy's field its meaning.
func orDefault[T int | int64 | float64 | time.Duration](v, zero, negative T) T {
	switch {
	case v == 0:
		return zero
	case v < 0:
		return negative
	default:
		return v
	}
}

// wants reports whether the policy retries an attempt that is safe to repeat.
func (p *retryPolicy) wants(c *call, a *attempt) bool {
	if p.Retryable != nil {
		return p.Retryable(c.view(a))
	}
	switch {
	case a.status == 0, a.class == classBodyLost, a.inProgress:
		return true
	default:
		return slices.Contains(p.Statuses, a.status)
	}
}

// decision is what follows an attempt that failed.
type decision struct {
	retry   bool
	renewal bool // with another token, beside the policy
	wait    time.Duration
	why     error // why a retry that was wanted does not follow, for the error; nil if none was
}

// decide is the whole rule of retrying. It is asked once after each attempt.
func (c *call) decide(a *attempt, now time.Time) decision {
	policy := c.settings.retry
	if a.class == classSuccess {
		c.doer.budget.succeed(now)
		return decision{}
	}

	if c.renews(a, now) {
		return decision{retry: true, renewal: true}
	}

	// While the breaker is not closed its gate stands in for the budget, for
	// the probes as for the waiting calls that a successful one lets out.
	gated := a.gate != nil && (a.freed || a.gate.standsIn())
	affordable := true
	if !gated && a.throttles() {
		affordable = c.doer.budget.fail(now)
	}

	switch {
	case policy == nil, c.Err() != nil, c.oneShot:
		return decision{}
	case !a.class.repeatable(c.op.safety), !policy.wants(c, a):
		return decision{}
	case a.status == http.StatusMisdirectedRequest && c.misdirected > 1:
		return decision{}
	case c.counted >= policy.MaxAttempts:
		return decision{}
	case !affordable:
		return decision{why: ErrBudgetExhausted}
	}

	if policy.MaxRetryAfter >= 0 && a.retryAfter > policy.MaxRetryAfter {
		return decision{}
	}
	wait := policy.wait(max(c.counted, 1), a.retryAfter)
	if !c.fits(wait, now) {
		return decision{}
	}
	if c.op.keyed() && now.Add(wait).Sub(c.firstSent) >= c.op.keyTTL()-keyMargin {
		return decision{}
	}
	if a.gate != nil {
		// An open breaker that outlasts the wait, or the time that there is to
		// wait at its gate, ends the loop now, with the answer that came,
		// instead of later, with a refusal.
		if open := a.gate.openFor(now); open > wait && !(c.waitsAtGate() && c.fits(open, now)) {
			return decision{why: &openError{group: a.gate.name, retryAfter: open}}
		}
	}
	return decision{retry: true, wait: wait}
}

// fits reports whether there is room for the wait and then for an attempt.
func (c *call) fits(wait time.Duration, now time.Time) bool {
	if c.deadline.IsZero() {
		return true
	}
	left := c.deadline.Sub(now)
	return addDurations(wait, c.reserve(left)) <= left
}

// reserve is the least time that is worth beginning an attempt with.
func (c *call) reserve(left time.Duration) time.Duration {
	attempt := left
	if c.settings.attemptTimeout > 0 {
		attempt = min(attempt, c.settings.attemptTimeout)
	}
	return max(50*time.Millisecond, attempt/10)
}
