package resilience

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// failure is the error of a call that ended without a success: what all of its
// attempts together mean to the caller.
func (c *call) failure() *Error {
	if c.local != nil {
		return refuse(c.op.ID, stripURL(c.local))
	}
	e := &Error{Operation: c.op.ID, Outcome: c.outcome, IdempotencyKey: c.key, Attempts: c.attempts}
	c.addAnswer(e)

	what := ""
	if j := c.judged; j != nil {
		e.causes = j.sentinels()
		if j.unauthorized != nil {
			e.RetryAfter = j.retryAfter
		}
		if j.cause != nil {
			e.causes = append(e.causes, stripURL(j.cause))
		}
		what = j.describe(c.redactor())
		switch {
		case j.limit != nil:
			e.Timeout = j.limit.limit
		case j.left && c.Context.Err() == context.DeadlineExceeded:
			e.Timeout = c.callerLimit
		}
	}
	switch {
	case c.last != nil && c.last.refused:
		what = c.addRefusal(e, c.last.err, what)
	case c.decision.why != nil:
		what = c.addRefusal(e, c.decision.why, what)
	case c.Err() != nil && (c.judged == nil || c.decision.retry):
		// The caller left before the first attempt, or in a wait.
		err := contextError(c.Context)
		e.causes = append(e.causes, err)
		what = join(oneLine(err.Error(), 200), " after ", what)
	}
	if c.Context.Err() == context.DeadlineExceeded && errors.Is(e, context.DeadlineExceeded) {
		e.causes = append([]error{ErrTimeout}, e.causes...)
		if e.Timeout == 0 {
			e.Timeout = c.callerLimit
		}
	}
	if e.Outcome == OutcomeUnknown && c.op.safety != SafetyRead {
		e.causes = append([]error{ErrOutcomeUnknown}, e.causes...)
	}
	e.what = c.redactor().text(what)
	return e
}

// addAnswer copies what the last answer said.
func (c *call) addAnswer(e *Error) {
	a := c.answered
	if a == nil {
		return
	}
	r := c.redactor()
	e.StatusCode = a.status
	e.Problem = a.problem.clone()
	e.RequestID = requestID(a.header, a.problem, r)
	e.Header = r.header(a.header)
	switch {
	case a.class == classSuccess:
	case a.bodyErr != nil:
		e.Body = r.cutBody(a.body, maxErrorKept)
	default:
		e.Body = r.body(a.body, maxErrorKept)
	}
	if c.judged == a {
		e.RetryAfter = a.retryAfter
	}
}

// addRefusal notes a refusal by breaker or budget, beside the failure before it.
func (c *call) addRefusal(e *Error, why error, what string) string {
	var open *openError
	switch {
	case errors.As(why, &open):
		e.causes = append(e.causes, ErrCircuitOpen, ErrUnavailable, open)
		e.RetryAfter = max(e.RetryAfter, open.retryAfter)
	case errors.Is(why, ErrBudgetExhausted):
		e.causes = append(e.causes, ErrBudgetExhausted)
	default: // the caller left, or ran out of time, at the gate
		e.causes = append(e.causes, why)
	}
	if what == "" {
		return oneLine(why.Error(), 200)
	}
	return what + "; then " + oneLine(why.Error(), 200)
}

func join(a, separator, b string) string {
	if b == "" {
		return a
	}
	return a + separator + b
}

// sentinels are what an attempt's result makes of the error.
func (a *attempt) sentinels() []error {
	var s []error
	switch {
	case a.class == classCanceled, a.class == classUnreadable, a.unauthorized != nil && a.limit == nil, a.class == classAnswered && a.status != http.StatusNotModified:
		// The cause says it all.
	case a.limit != nil && a.problem == nil && (a.status == 0 || a.class == classBodyLost):
		s = append(s, ErrTimeout)
	case a.class == classBodyLost:
		s = append(s, ErrUnavailable)
	case a.status == 0:
		s = append(s, a.silence()...)
	case a.keyReused:
		s = append(s, ErrKeyReused)
	default:
		s = append(s, statusSentinels(a.status)...)
	}
	if a.inProgress {
		s = append(s, ErrInProgress)
	}
	return s
}

// silence tells no answer at all from a time limit of the transport's own.
func (a *attempt) silence() []error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(a.cause, ErrBlocked), errors.Is(a.cause, ErrInvalidRequest), errors.Is(a.cause, ErrResponseTooLarge), a.sendErr.Load() != nil:
		return nil
	case errors.As(a.cause, &timeout) && timeout.Timeout() && a.sent():
		return []error{ErrTimeout}
	default:
		return []error{ErrUnavailable}
	}
}

var codeToken = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// describe is what happened, in a few words: no body, no header, no URL.
func (a *attempt) describe(r redactor) string {
	what := ""
	if a.status != 0 {
		what = statusText(a.status)
		if a.problem != nil && codeToken.MatchString(a.problem.Code) {
			what += " (" + a.problem.Code + ")"
		}
	}
	if a.cause == nil {
		return what
	}
	text := oneLine(r.text(stripURL(a.cause).Error()), 300) // cut last, so that no half of a secret is left
	if what == "" {
		return text
	}
	return what + ": " + text
}

// stripURL takes net/http's *url.Error off: its text has the URL, with the query.
func stripURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Err
	}
	return err
}

// transportError is what the transport returned. Only a caller's own context
// makes an error Is context.Canceled or context.DeadlineExceeded: what the
// network says of those is hidden, everything else can be found.
type transportError struct {
	err  error
	text string // without secrets
}

func newTransportError(err error, r redactor) *transportError {
	return &transportError{err, r.text(err.Error())}
}

func (e *transportError) Error() string { return e.text }

// Format writes Error for every verb: %#v would show what the redactor knows.
func (e *transportError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

func (e *transportError) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

func (e *transportError) As(target any) bool { return errors.As(e.err, target) }

// view is the attempt as hooks see it.
func (c *call) view(a *attempt) Attempt {
	v := Attempt{
		Operation: c.op.ID, Number: a.number, StatusCode: a.status,
		Header: c.redactor().header(a.header), Outcome: a.outcome, Elapsed: a.elapsed,
	}
	if a.cause != nil {
		v.Err = &attemptError{a.sentinels(), stripURL(a.cause), a.describe(c.redactor())}
	}
	return v
}

// attemptError is Attempt.Err: errors.Is works as it does on an Error.
type attemptError struct {
	sentinels []error
	cause     error
	what      string
}

func (e *attemptError) Error() string { return e.what }
func (e *attemptError) Unwrap() []error {
	return append(e.sentinels[:len(e.sentinels):len(e.sentinels)], e.cause)
}

// fill tells the caller how the call went.
func (c *call) fill(info *CallInfo) {
	*info = CallInfo{
		Operation: c.op.ID, Attempts: c.attempts, Sends: c.sends, IdempotencyKey: c.key,
		Elapsed: time.Since(c.started),
	}
	if a := c.answered; a != nil {
		info.StatusCode = a.status
		info.RequestID = requestID(a.header, a.problem, c.redactor())
		info.Replayed = a.replayed
		info.Header = c.redactor().header(a.header)
	}
}

var _ fmt.Formatter = (*Error)(nil)
