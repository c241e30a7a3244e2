package resilience

import "time"

// BreakerPolicy says when a group of operations is taken for broken, and how
// it is tried again. A breaker is asked on each attempt; while it is open,
// nothing is sent, and calls fail at once with [ErrCircuitOpen], or wait.
//
// A failure is: no answer (dial, DNS, TLS, reset, end of file, attempt
// timeout), an unreadable or malformed 2xx, or one of FailureStatuses. Any
// other answer is a success, 4xx included. Not judged at all are: the caller's
// leaving, the caller's deadline if it was sooner than the attempt timeout
// (unless the attempt had run for min(attempt timeout/2, 1 s) by then), 401,
// 403, 429, a refusal by guard, breaker or budget, an access token or a
// signature that could not be had, an encoding error, and time
// spent waiting for a place in our own full connection pool.
//
// A zero field means its default, a negative one switches the rule off.
type BreakerPolicy struct {
	// ConsecutiveFailures in a row open it; default 5.
	ConsecutiveFailures int
	// FailureRatio of at least MinimumCalls judged in Window opens it; default 0.5.
	FailureRatio float64
	// MinimumCalls is how many calls must have been judged before FailureRatio
	// means anything; default 10. Negative: one is enough.
	MinimumCalls int
	// Window is how far back judged calls count, in ten steps; default 10 s.
	// Negative: nothing is forgotten.
	Window time.Duration
	// OpenFor is how long it stays open before a probe is let through; default
	// 5 s, jittered by 20 % either way, and never less than a Retry-After that
	// came with the last failure (capped by 60 s, or the policy's
	// MaxRetryAfter). Negative: a probe is let through at once.
	OpenFor time.Duration
	// WaitWhenOpen makes callers wait for the probe if their deadline allows,
	// first come first, and leave spread out when it succeeds: evenly over
	// max(500 ms, 5 ms × waiting calls). A failed probe of a waiting call does
	// not count against its MaxAttempts. Default false: fail at once.
	//
	// The waiting calls are a backlog of as much as the total time limit: keep
	// that short, 5 s say. Simulated with the default of 30 s, an upstream that
	// queues was kept down for good by what each good probe let out.
	WaitWhenOpen bool
	// HalfOpenCalls is how many probes are let through when it is half-open,
	// and how many successes close it; default 1, and with WaitWhenOpen one
	// goes out at a time. Negative: no probing; it closes when OpenFor is over.
	HalfOpenCalls int
	// FailureStatuses are the statuses that are failures; nil means 500, 502,
	// 503, 504 and 520 to 524. Empty and non-nil means none.
	FailureStatuses []int
	// OnStateChange is called after each change, in order, outside of any lock.
	OnStateChange func(group string, from, to BreakerState)
}

// BreakerState is where a breaker stands.
type BreakerState int

const (
	// BreakerClosed lets everything through: the zero value.
	BreakerClosed BreakerState = iota
	// BreakerHalfOpen lets probes through.
	BreakerHalfOpen
	// BreakerOpen lets nothing through.
	BreakerOpen
)

// String returns "closed", "half-open" or "open".
func (s BreakerState) String() string {
	switch s {
	case BreakerHalfOpen:
		return "half-open"
	case BreakerOpen:
		return "open"
	default:
		return "closed"
	}
}

var defaultFailureStatuses = []int{500, 502, 503, 504, 520, 521, 522, 523, 524}

func (p BreakerPolicy) validate() error {
	switch {
	case !finite(p.FailureRatio):
		return invalid("BreakerPolicy.FailureRatio must be a finite number")
	case p.FailureRatio > 1:
		return invalid("BreakerPolicy.FailureRatio must be at most 1")
	case p.HalfOpenCalls > 1<<20:
		return invalid("BreakerPolicy.HalfOpenCalls must be at most %d", 1<<20)
	}
	return validateStatuses("BreakerPolicy.FailureStatuses", p.FailureStatuses)
}
