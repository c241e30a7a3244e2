package simulation

import (
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// policy is what one fleet differs in from another: options, and nothing else.
type policy struct {
	name    string
	options func(random func() float64) []resilience.Option
}

// The first rows have parameters that other studies use, so that their figures
// can be compared: four attempts, backoff from 0.5 s to 8 s, no time limit for
// the whole call, a breaker that opens after five failures in a row for 5 s
// with one probe, a budget as in gRPC. What the policies cannot express, and
// what the table hence lacks: decorrelated jitter; a bucket that a retry costs
// something and that its success refunds (AWS: 500 tokens, 5 or 14 a retry);
// a plain share of the calls of the last ten seconds (Finagle, Linkerd). The
// breaker's open time cannot be had without its jitter of 20 %.
var (
	noRetry     = policy{"no retry", bare(resilience.WithoutRetry())}
	fixed       = policy{"fixed 0.5 s", backoff(resilience.RetryPolicy{Jitter: resilience.NoJitter, Multiplier: -1})}
	exponential = policy{"exponential, no jitter", backoff(resilience.RetryPolicy{Jitter: resilience.NoJitter})}
	equal       = policy{"exponential, equal jitter", backoff(resilience.RetryPolicy{Jitter: resilience.EqualJitter})}
	full        = policy{"exponential, full jitter", backoff(resilience.RetryPolicy{Jitter: resilience.FullJitter})}

	budgeted = full.with("full + gRPC's budget", resilience.WithRetryBudget(grpcBudget))
	ours     = full.with("full + our budget", resilience.WithRetryBudget(resilience.BudgetPolicy{}))
	broken   = full.with("full + breaker", resilience.WithBreaker(plainBreaker))
	both     = full.with("full + breaker + gRPC's budget",
		resilience.WithRetryBudget(grpcBudget), resilience.WithBreaker(plainBreaker))

	// Everything by default; and a breaker whose callers wait for the probe. They
	// are a queue in front of the upstream, so how long they may wait decides
	// whether it can work that queue off: 5 s is short enough here, and the
	// default of 30 s is not, where the upstream goes on with abandoned calls.
	byDefault = policy{"our default", seeded(resilience.RetryPolicy{})}
	waiting   = byDefault.with("our default, waiting at most 30 s", waitWhenOpen)
	impatient = byDefault.with("our default, waiting at most 5 s", waitWhenOpen, resilience.WithTimeout(5*time.Second))
)

var policies = []policy{
	noRetry, fixed, exponential, equal, full, budgeted, ours, broken, both, byDefault, impatient, waiting,
}

var waitWhenOpen = resilience.WithBreaker(resilience.BreakerPolicy{WaitWhenOpen: true})

var (
	grpcBudget   = resilience.BudgetPolicy{Tokens: 10, Ratio: 0.1, Refill: -1}
	plainBreaker = resilience.BreakerPolicy{
		ConsecutiveFailures: 5, FailureRatio: -1, OpenFor: 5 * time.Second, HalfOpenCalls: 1,
	}
)

// bare has neither budget nor breaker nor a total time limit.
func bare(opts ...resilience.Option) func(func() float64) []resilience.Option {
	return func(func() float64) []resilience.Option {
		return append([]resilience.Option{
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
			resilience.WithoutBreaker(),
			resilience.WithTimeout(-1),
		}, opts...)
	}
}

// backoff is bare, with four attempts.
func backoff(p resilience.RetryPolicy) func(func() float64) []resilience.Option {
	p.MaxAttempts, p.BaseDelay, p.MaxDelay = 4, 500*time.Millisecond, 8*time.Second
	return func(random func() float64) []resilience.Option {
		p := p
		p.Rand = random
		return bare(resilience.WithRetry(p))(random)
	}
}

// seeded is everything by default, but for the random source.
func seeded(p resilience.RetryPolicy) func(func() float64) []resilience.Option {
	return func(random func() float64) []resilience.Option {
		p := p
		p.Rand = random
		return []resilience.Option{resilience.WithRetry(p)}
	}
}

// with is p with more options, which replace those before them.
func (p policy) with(name string, opts ...resilience.Option) policy {
	return policy{name, func(random func() float64) []resilience.Option {
		return append(p.options(random), opts...)
	}}
}
