package resilience

import (
	"context"
	"log/slog"
	"time"
)

// logAttempt notes a failed attempt. Nothing of headers, bodies or queries is
// ever logged: the texts are those of the errors.
func (c *call) logAttempt(a *attempt) {
	l := c.doer.config.logger
	if l == nil || a.class == classSuccess || !l.Enabled(c, slog.LevelDebug) {
		return
	}
	l.LogAttrs(context.WithoutCancel(c), slog.LevelDebug, "attempt failed", append(c.logAttrs(a),
		slog.Duration("elapsed", a.elapsed),
		slog.String("outcome", a.outcome.String()))...)
}

func (c *call) logAttrs(a *attempt) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("operation", c.op.ID),
		slog.Int("attempt", a.number),
		slog.String("reason", a.describe(c.redactor())),
	}
	if a.status != 0 {
		attrs = append(attrs, slog.Int("status", a.status))
	}
	return attrs
}

// announceRetry tells logger and hook of a wait that begins.
func (c *call) announceRetry(wait time.Duration) {
	a := c.judged
	if l := c.doer.config.logger; l != nil {
		l.LogAttrs(context.WithoutCancel(c), slog.LevelWarn, "retrying", append(c.logAttrs(a), slog.Duration("wait", wait))...)
	}
	if hook := c.settings.retry.OnRetry; hook != nil {
		hook(c.view(a), wait)
	}
}

// logBreaker wraps OnStateChange so that the logger hears of it as well.
func logBreaker(l *slog.Logger, next func(group string, from, to BreakerState)) func(string, BreakerState, BreakerState) {
	if l == nil {
		return next
	}
	return func(group string, from, to BreakerState) {
		l.Warn("circuit breaker changed", "group", group, "from", from.String(), "to", to.String())
		if next != nil {
			next(group, from, to)
		}
	}
}
