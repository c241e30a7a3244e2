package resilience

import (
	"math"
	"sync"
	"time"
)

// BudgetPolicy bounds the retries of a client in an outage. It is the retry
// throttling of gRPC (proposal A6), with a slow refill beside it: a bucket of
// Tokens, from which every failed attempt of a kind that could be retried takes
// 1, and into which a success gives Ratio back, and every second Refill. While
// half of the tokens or fewer are left, nothing is retried: the failure is
// returned at once, and Is [ErrBudgetExhausted] too.
//
// First attempts are never held back: that is the breaker's part. While a
// breaker is not closed, its gate stands in for the budget.
type BudgetPolicy struct {
	// Tokens is the size of the bucket, and where it starts; default 10,
	// at most 1000. Negative: no budget.
	Tokens float64
	// Ratio is what a success gives back; default 0.2. Negative: nothing.
	Ratio float64
	// Refill is what a second gives back; default 0.1, so that a client of few
	// calls recovers as well. Negative: nothing.
	Refill float64
}

const maxBudgetTokens = 1000

func (p BudgetPolicy) validate() error {
	if !finite(p.Tokens) || !finite(p.Ratio) || !finite(p.Refill) {
		return invalid("BudgetPolicy: Tokens, Ratio and Refill must be finite numbers")
	}
	if p.Tokens > maxBudgetTokens || p.Ratio > maxBudgetTokens || p.Refill > maxBudgetTokens {
		return invalid("BudgetPolicy: Tokens, Ratio and Refill must be at most %d", maxBudgetTokens)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// budget counts in thousandths, so that sums are exact.
type budget struct {
	max, ratio, refill int64 // thousandths; refill per second

	mu     sync.Mutex
	tokens int64
	rest   int64 // millionths of a thousandth that the refill has not yet made whole
	last   time.Time
}

// newBudget returns nil for "no budget".
func newBudget(p BudgetPolicy) *budget {
	if p.Tokens < 0 {
		return nil
	}
	b := &budget{
		max:    thousandths(p.Tokens, 10),
		ratio:  thousandths(p.Ratio, 0.2),
		refill: thousandths(p.Refill, 0.1),
	}
	b.tokens = b.max
	return b
}

func thousandths(v, byDefault float64) int64 {
	switch {
	case v == 0:
		v = byDefault
	case v < 0:
		v = 0
	}
	return int64(math.Round(v * 1000))
}

// fail takes a token for a failed attempt, and reports whether a retry may follow.
func (b *budget) fail(now time.Time) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.tokens = max(0, b.tokens-1000)
	return b.tokens > b.max/2
}

// succeed gives Ratio back.
func (b *budget) succeed(now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.tokens = min(b.max, b.tokens+b.ratio)
}

// advance gives back what the time since the last call is worth.
func (b *budget) advance(now time.Time) {
	if b.last.IsZero() {
		b.last = now
		return
	}
	elapsed := now.Sub(b.last)
	if elapsed <= 0 {
		return
	}
	b.last = now
	earned := min(elapsed, 24*time.Hour).Microseconds()*b.refill + b.rest
	b.tokens = min(b.max, b.tokens+earned/1e6)
	b.rest = earned % 1e6
}
