package resilience

import (
	"context"
	"errors"
	"time"
)

const (
	defaultTimeout        = 30 * time.Second
	defaultAttemptTimeout = 10 * time.Second
	defaultIdleTimeout    = 30 * time.Second
)

// limitError is one of our own time limits that ran out. It is the cause of
// the attempt's context, so that whose limit it was is told by the context and
// never by the transport's error. It Is [ErrTimeout], and not
// context.DeadlineExceeded: that is the caller's.
type limitError struct {
	what  string // "total", "attempt", "idle"
	limit time.Duration
}

func (e *limitError) Error() string {
	return e.what + " time limit of " + e.limit.String() + " ran out"
}
func (e *limitError) Is(target error) bool { return target == ErrTimeout }
func (e *limitError) Timeout() bool        { return true }

// setDeadline fixes when the call must be over: after the total time limit, or
// at the caller's own deadline if that is sooner.
func (c *call) setDeadline(now time.Time) {
	if c.settings.timeout > 0 {
		c.total = now.Add(c.settings.timeout)
	}
	c.deadline = c.total
	if d, ok := c.Deadline(); ok {
		c.callerLimit = max(d.Sub(now), 0)
		if c.deadline.IsZero() || d.Before(c.deadline) {
			c.deadline = d
		}
	}
}

// attemptDeadline is min(attempt time limit, what is left of the total), and
// the error that tells which. The caller's own deadline comes with its context.
func (c *call) attemptDeadline(now time.Time) (time.Time, *limitError) {
	d := c.total
	limit := &c.totalLimit
	if c.settings.attemptTimeout > 0 {
		if at := now.Add(c.settings.attemptTimeout); d.IsZero() || at.Before(d) {
			d, limit = at, &c.attemptLimit
		}
	}
	return d, limit
}

// attemptContext bounds one attempt, the reading of its body included.
func (c *call) attemptContext(now time.Time) (context.Context, context.CancelFunc) {
	d, limit := c.attemptDeadline(now)
	if d.IsZero() {
		return context.WithCancel(c)
	}
	return context.WithDeadlineCause(c, d, limit)
}

// streamContext bounds one attempt up to its headers. disarm lifts the limit,
// and reports whether it was in time.
func (c *call) streamContext(now time.Time) (ctx context.Context, cancel context.CancelCauseFunc, disarm func() bool) {
	ctx, cancel = context.WithCancelCause(c)
	d, limit := c.attemptDeadline(now)
	if d.IsZero() {
		return ctx, cancel, func() bool { return true }
	}
	t := time.AfterFunc(d.Sub(now), func() { cancel(limit) })
	return ctx, cancel, t.Stop
}

// ownLimit returns the time limit of ours that ended ctx, or nil.
func ownLimit(ctx context.Context) *limitError {
	if ctx.Err() == nil {
		return nil
	}
	var limit *limitError
	if errors.As(context.Cause(ctx), &limit) {
		return limit
	}
	return nil
}

// contextError returns an error that Is both ctx.Err and its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return &causeError{err, cause}
}

// causeError keeps the reason that the caller gave (context.WithCancelCause)
// beside context.Canceled or context.DeadlineExceeded.
type causeError struct{ err, cause error }

func (e *causeError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *causeError) Unwrap() []error { return []error{e.err, e.cause} }
