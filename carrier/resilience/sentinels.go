package resilience

import "errors"

// Sentinels for errors.Is. One error can be several of them: a createShipment
// that ran out of time Is ErrTimeout and ErrOutcomeUnknown. What a status or a
// network failure makes of an error is told at each of them.
var (
	// ErrInvalidRequest: refused here, before anything was sent, or answered
	// with 400, 413, 414, 431, or 422 (other than for a reused key). Correct the request.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnauthorized: 401, or refused by the token endpoint ([TokenError]). The
	// credentials are missing, wrong or expired: [Error.AuthReason] tells.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: 403, or a token endpoint that will not give this client such
	// a token. The credentials are known, and not entitled; [Error.AuthReason]
	// tells where the answer says otherwise.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound: 404 or 410.
	ErrNotFound = errors.New("not found")
	// ErrConflict: any 409, so that every ErrInProgress is one too.
	ErrConflict = errors.New("conflict")
	// ErrInProgress: a 409 which says that a request with the same key is
	// still being worked on. Ask again later, with the same key.
	ErrInProgress = errors.New("a request with this idempotency key is in progress")
	// ErrKeyReused: a 422 which says that the key came with other bytes
	// before, or a call here while other bytes were in flight under its key.
	// A programming error: a new intent needs a new key.
	ErrKeyReused = errors.New("idempotency key reused with another request")
	// ErrRateLimited: 429. Error.RetryAfter has the carrier's wish.
	ErrRateLimited = errors.New("rate limited")
	// ErrUnavailable: no answer at all (dial, DNS, TLS, reset, end of file),
	// any 5xx, or an open breaker. Time limits are ErrTimeout instead.
	ErrUnavailable = errors.New("carrier unavailable")
	// ErrTimeout: a time limit ran out, of an attempt, of the whole call, of
	// an idle stream or of the caller's context (context.DeadlineExceeded
	// then holds too), or the answer was 408 or 504.
	ErrTimeout = errors.New("time limit exceeded")
	// ErrCircuitOpen: refused by the breaker, the call or its retry.
	// Error.RetryAfter says when it will next let a call through.
	ErrCircuitOpen = errors.New("circuit breaker open")
	// ErrBudgetExhausted: a retry was refused by the retry budget. It stands
	// beside the failure that would have been retried.
	ErrBudgetExhausted = errors.New("retry budget exhausted")
	// ErrOutcomeUnknown: the operation can act, and may have. Repeat it with
	// the same idempotency key, or look the result up; never with a new key.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrResponseTooLarge: the answer is over a limit, which a [LimitError] names.
	// It is not retried, and no failure to the breaker.
	ErrResponseTooLarge = errors.New("response too large")
	// ErrMalformedResponse: an answer that is not what the spec says: an
	// undocumented 2xx, another media type, a body that does not decode.
	ErrMalformedResponse = errors.New("malformed response")
	// ErrBlocked: refused by the egress guard ([EgressPolicy]). It was not sent,
	// is not retried, and counts for nothing.
	ErrBlocked = errors.New("blocked by the egress guard")
	// ErrNotReady: 202 for a document that is still being made; ask again
	// after Error.RetryAfter.
	ErrNotReady = errors.New("not ready yet")
	// ErrNotModified: 304 to a conditional request.
	ErrNotModified = errors.New("not modified")
)
