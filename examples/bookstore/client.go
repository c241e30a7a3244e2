package main

import (
	"log/slog"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// newClient makes the one client of the process. Its connections, retry budget
// and breakers are shared by all requests, which is what they are for: a client
// for each request would learn nothing from the one before.
func newClient(cfg config, log *slog.Logger, more ...carrier.Option) (*carrier.Client, error) {
	return carrier.New(cfg.carrierURL, append([]carrier.Option{
		carrier.WithAPIKey(cfg.carrierKey),
		carrier.WithLogger(log),
		carrier.WithUserAgent("bookstore/1.0"),
		carrier.WithTimeout(longest(cfg)), // and no longer than each request's context
		carrier.WithAttemptTimeout(cfg.trackAttempt),
		carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: cfg.attempts}),
		carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: cfg.retryTokens, Ratio: cfg.retryRatio}),
		carrier.WithBreaker(carrier.BreakerPolicy{
			ConsecutiveFailures: cfg.breakerFailures,
			FailureRatio:        cfg.breakerRatio,
			OpenFor:             cfg.breakerOpen,
		}),
	}, more...)...)
}
