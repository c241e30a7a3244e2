package resilience

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Error is what every failed call returns. errors.Is asks it for the
// sentinels ([ErrNotFound], [ErrTimeout], …), for the caller's context error and
// cause, and for what the network said; errors.As finds an *Error in any
// wrapping.
//
// Neither its text nor any of its fields holds a credential, not even where the
// carrier echoed one: they are replaced by "[REDACTED]".
type Error struct {
	// Operation is the operationId; for a request that matches no operation,
	// the method and "(unknown)"; for a Breaker of its own, the breaker's name.
	Operation string
	// Outcome says whether the carrier acted, all attempts taken together.
	Outcome Outcome
	// StatusCode is that of the last answer, also where its body did not come;
	// 0 if none came.
	StatusCode int
	// Problem is what the last answer's body says of the error, or nil.
	Problem *Problem
	// RequestID is the carrier's id of the last answered request.
	RequestID string
	// IdempotencyKey is the key that the call carried; "" if none. Repeat the
	// call with it to make the repeat harmless.
	IdempotencyKey string
	// Attempts is how many attempts were begun; 0 if nothing was tried.
	Attempts int
	// RetryAfter is the carrier's wish, or the breaker's; 0 if there is none.
	RetryAfter time.Duration
	// Timeout is the time limit that ran out, as it was set; 0 if none did.
	Timeout time.Duration
	// Header is that of the last answer, credentials removed; nil if none came.
	Header http.Header
	// Body is at most 4 KiB of the last answer, if that was no success.
	Body []byte

	causes []error // sentinels first
	what   string  // what happened, for the text
}

// Unwrap returns the sentinels that hold, and the causes.
func (e *Error) Unwrap() []error { return e.causes }

// Error returns one line: the operation, what happened, the outcome where it
// is unknown, the number of attempts and the carrier's request id.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Operation != "" {
		b.WriteString(e.Operation)
		b.WriteString(": ")
	}
	b.WriteString(e.describe())
	if errors.Is(e, ErrOutcomeUnknown) {
		b.WriteString("; outcome unknown, repeat with the same idempotency key or look it up")
	}
	if e.RetryAfter > 0 && !errors.Is(e, ErrCircuitOpen) {
		fmt.Fprintf(&b, "; retry after %s", round(e.RetryAfter))
	}
	switch {
	case e.Attempts == 1:
		b.WriteString(" (1 attempt")
	case e.Attempts > 1:
		fmt.Fprintf(&b, " (%d attempts", e.Attempts)
	default:
		b.WriteString(" (not sent")
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, ", request %s", e.RequestID)
	}
	b.WriteString(")")
	return b.String()
}

func (e *Error) describe() string {
	if e.what != "" {
		return e.what
	}
	if e.StatusCode != 0 {
		return statusText(e.StatusCode)
	}
	if n := len(e.causes); n > 0 {
		return oneLine(e.causes[n-1].Error(), 300)
	}
	return "failed"
}

func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return fmt.Sprintf("status %d", code)
}

// Format writes Error for every verb, %+v and %#v included.
func (e Error) Format(f fmt.State, verb rune) {
	if verb == 'q' {
		fmt.Fprintf(f, "%q", e.Error())
		return
	}
	_, _ = io.WriteString(f, e.Error())
}

// LogValue gives log/slog the fields that are safe to keep: no header, no body.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("message", e.Error()),
		slog.String("operation", e.Operation),
		slog.String("outcome", e.Outcome.String()),
		slog.Int("attempts", e.Attempts),
	}
	if e.StatusCode != 0 {
		attrs = append(attrs, slog.Int("status", e.StatusCode))
	}
	if e.Problem != nil && e.Problem.Code != "" {
		attrs = append(attrs, slog.String("code", printable(e.Problem.Code, 64)))
	}
	if e.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", e.RequestID))
	}
	if e.IdempotencyKey != "" {
		attrs = append(attrs, slog.String("idempotency_key", e.IdempotencyKey))
	}
	if e.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retry_after", e.RetryAfter))
	}
	return slog.GroupValue(attrs...)
}

// Refuse returns the [Error] for a call that is refused before anything is
// sent: it Is [ErrInvalidRequest], and err can be found in it.
func Refuse(op *Operation, err error) error {
	name := ""
	if op != nil {
		name = op.ID
	}
	return refuse(name, err)
}

func refuse(operation string, err error) *Error {
	return &Error{
		Operation: operation, Outcome: OutcomeNotSent,
		causes: []error{ErrInvalidRequest, err}, what: "invalid request: " + oneLine(err.Error(), 300),
	}
}

// statusSentinels are what a status makes of an error.
func statusSentinels(status int) []error {
	switch {
	case status == http.StatusUnauthorized:
		return []error{ErrUnauthorized}
	case status == http.StatusForbidden:
		return []error{ErrForbidden}
	case status == http.StatusNotFound, status == http.StatusGone:
		return []error{ErrNotFound}
	case status == http.StatusConflict:
		return []error{ErrConflict}
	case status == http.StatusTooManyRequests:
		return []error{ErrRateLimited}
	case status == http.StatusRequestTimeout:
		return []error{ErrTimeout}
	case status == http.StatusGatewayTimeout:
		return []error{ErrTimeout, ErrUnavailable}
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge,
		status == http.StatusRequestURITooLong, status == http.StatusUnprocessableEntity,
		status == http.StatusRequestHeaderFieldsTooLarge:
		return []error{ErrInvalidRequest}
	case status == http.StatusNotModified:
		return []error{ErrNotModified}
	case status >= 500:
		return []error{ErrUnavailable}
	}
	return nil
}
