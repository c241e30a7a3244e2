package main

import (
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// The policies, in the order in which they are tried.
const (
	noJitter = iota
	equalJitter
	fullJitter
	withBudget
	withBreaker
	waiting
)

// policy is one way to be a client.
type policy struct {
	name, lesson string
	options      []carrier.Option
}

// policies are carrier-go's own. The first four try again for as long as there
// is time: after 100 ms, 200 ms, 400 ms, 800 ms, and then each second.
func policies() []policy {
	retry := func(j carrier.Jitter) carrier.Option {
		return carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: -1, MaxDelay: time.Second, Jitter: j})
	}
	noBudget := carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: -1})
	noBreaker := carrier.WithoutBreaker()
	return []policy{
		noJitter: {
			"Backoff without jitter", "They come back together, each time.",
			[]carrier.Option{retry(carrier.NoJitter), noBudget, noBreaker},
		},
		equalJitter: {
			"Equal jitter", "Half of each wait is random: the crowd blurs.",
			[]carrier.Option{retry(carrier.EqualJitter), noBudget, noBreaker},
		},
		fullJitter: {
			"Full jitter", "All of each wait is random: spread, but more of them.",
			[]carrier.Option{retry(carrier.FullJitter), noBudget, noBreaker},
		},
		withBudget: {
			"Full jitter and retry budget", "Hardly any retries: the carrier is left alone.",
			[]carrier.Option{retry(carrier.FullJitter), noBreaker},
		},
		withBreaker: {
			"The defaults: budget and breaker", "As little, and new calls fail at once, unsent.",
			nil,
		},
		waiting: {
			"Breaker with WaitWhenOpen", "One probe at a time; then all of them, spread out.",
			[]carrier.Option{carrier.WithBreaker(carrier.BreakerPolicy{WaitWhenOpen: true, OpenFor: 250 * time.Millisecond})},
		},
	}
}
