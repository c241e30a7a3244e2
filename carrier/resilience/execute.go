package resilience

import (
	"context"
	"errors"
)

// Execute runs f if the breaker lets it, and judges it by its error: nil is a
// success, an error is a failure, and one that came after ctx had ended counts
// for nothing. A panic, too, counts for nothing, and goes on. Put a time limit
// into f: while a probe hangs, everything else is refused.
//
// A refusal is an [Error] for [ErrCircuitOpen], with RetryAfter. With
// WaitWhenOpen, Execute waits instead, if ctx's deadline allows.
func (b *Breaker) Execute(ctx context.Context, f func(context.Context) error) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	until, _ := ctx.Deadline()
	a, err := b.enter(ctx, until, 0)
	if err != nil {
		return b.refused(ctx, err)
	}
	verdict := verdictExcluded
	defer func() { a.end(verdict, 0) }()
	err = f(ctx)
	switch {
	case err == nil:
		verdict = verdictSuccess
	case ctx.Err() == nil:
		verdict = verdictFailure
	}
	return err
}

func (b *Breaker) refused(ctx context.Context, err error) error {
	var open *openError
	if !errors.As(err, &open) {
		return contextError(ctx)
	}
	return &Error{
		Operation: b.name, Outcome: OutcomeNotSent, RetryAfter: open.retryAfter,
		causes: []error{ErrCircuitOpen, ErrUnavailable, open},
	}
}
