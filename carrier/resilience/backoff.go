package resilience

import (
	"math"
	"math/rand/v2"
	"time"
)

// Jitter says how a backoff is spread, so that callers which failed together
// do not come back together. x is min(MaxDelay, BaseDelay · Multiplier^(n−1))
// before retry n. The names are those of "Exponential Backoff And Jitter"
// (AWS Architecture Blog, 2015), which measures them against each other.
type Jitter int8

const (
	// FullJitter waits U(0, x): the least work for the carrier. The zero value.
	FullJitter Jitter = iota
	// EqualJitter waits x/2 + U(0, x/2).
	EqualJitter
	// NoJitter waits x. Callers that failed together come back together.
	NoJitter
)

// String returns "full", "equal" or "none".
func (j Jitter) String() string {
	switch j {
	case EqualJitter:
		return "equal"
	case NoJitter:
		return "none"
	default:
		return "full"
	}
}

// backoff returns the wait before retry n = 1, 2, …
func (p *retryPolicy) backoff(n int) time.Duration {
	x := p.ceiling(n)
	switch p.Jitter {
	case NoJitter:
		return x
	case EqualJitter:
		return x/2 + p.uniform(x-x/2)
	default:
		return p.uniform(x)
	}
}

// ceiling is x before the jitter. It saturates.
func (p *retryPolicy) ceiling(n int) time.Duration {
	if p.BaseDelay <= 0 {
		return 0
	}
	x := float64(p.BaseDelay) * math.Pow(p.Multiplier, float64(n-1))
	if p.MaxDelay > 0 && x > float64(p.MaxDelay) {
		return p.MaxDelay
	}
	if x >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(x)
}

// uniform returns U(0, x).
func (p *retryPolicy) uniform(x time.Duration) time.Duration {
	u := p.random() * float64(x)
	if u >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(u)
}

func (p *retryPolicy) random() float64 {
	if p.Rand != nil {
		// A source that breaks its promise must not break ours.
		if r := p.Rand(); r > 0 {
			return min(r, 1)
		}
		return 0 // or less, or not a number
	}
	return rand.Float64()
}

// wait is the backoff before retry n, raised to what the carrier asked for. A
// Retry-After is never shortened; it is spread by U(0, min(RA/10, 1 s)), since
// everyone who was turned away got the same one.
func (p *retryPolicy) wait(n int, retryAfter time.Duration) time.Duration {
	w := p.backoff(n)
	if retryAfter <= 0 {
		return w
	}
	return addDurations(max(w, retryAfter), p.uniform(min(retryAfter/10, time.Second)))
}

// addDurations saturates.
func addDurations(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
