package carrier

import "github.com/carrier-sdk/carrier-go/carrier/resilience"

// Error is what every failed call returns: use errors.As to get it, and
// errors.Is with the Err… values to ask what happened. Its text, its fields and
// its %+v and %#v show no credential.
type Error = resilience.Error

// Problem is what an error answer said of itself (RFC 9457).
type Problem = resilience.Problem

// ProblemError is one member of a request that the carrier refused.
type ProblemError = resilience.ProblemError

// FieldErrors is what is wrong with a request that was refused before it was
// sent: errors.As finds it in an [*Error].
type FieldErrors = resilience.FieldErrors

// FieldError is one of [FieldErrors].
type FieldError = resilience.FieldError

// Outcome says whether the carrier acted.
type Outcome = resilience.Outcome

// The outcomes. Whatever the carrier may have done is OutcomeUnknown, the zero value.
const (
	OutcomeUnknown  = resilience.OutcomeUnknown  // it may have acted
	OutcomeNotSent  = resilience.OutcomeNotSent  // nothing reached it
	OutcomeRejected = resilience.OutcomeRejected // it said that it did not act
	OutcomeDone     = resilience.OutcomeDone     // it acted; its answer may be lost
)

// For errors.Is. One error can be several of these.
var (
	// ErrInvalidRequest: refused here before anything was sent, or answered
	// with 400, 413, 414, 422 (other than for a reused key) or 431. Correct the request.
	ErrInvalidRequest = resilience.ErrInvalidRequest
	// ErrUnauthorized: 401, or refused by the token endpoint ([TokenError]). The
	// credentials are missing, wrong or expired: Error.AuthReason tells.
	ErrUnauthorized = resilience.ErrUnauthorized
	// ErrForbidden: 403. The credentials are known, and not entitled;
	// Error.AuthReason tells where the answer says otherwise.
	ErrForbidden = resilience.ErrForbidden
	// ErrNotFound: 404 or 410.
	ErrNotFound = resilience.ErrNotFound
	// ErrConflict: any 409.
	ErrConflict = resilience.ErrConflict
	// ErrInProgress: 409, a request with the same key is being worked on. Ask
	// again later with the same key.
	ErrInProgress = resilience.ErrInProgress
	// ErrKeyReused: the idempotency key came with other bytes before (422), or
	// other bytes are in flight under it here. A new intent needs a new key.
	ErrKeyReused = resilience.ErrKeyReused
	// ErrRateLimited: 429. Error.RetryAfter has the carrier's wish.
	ErrRateLimited = resilience.ErrRateLimited
	// ErrUnavailable: no answer at all, any 5xx, or an open breaker; time
	// limits are ErrTimeout.
	ErrUnavailable = resilience.ErrUnavailable
	// ErrTimeout: a time limit ran out (if it was the caller's, the error Is
	// context.DeadlineExceeded too), or 408, 504.
	ErrTimeout = resilience.ErrTimeout
	// ErrCircuitOpen: refused by the breaker; Error.RetryAfter says until when.
	ErrCircuitOpen = resilience.ErrCircuitOpen
	// ErrBudgetExhausted: the retry budget refused a retry; it stands beside
	// the failure itself.
	ErrBudgetExhausted = resilience.ErrBudgetExhausted
	// ErrOutcomeUnknown: the operation may have acted. Repeat it with the same
	// idempotency key, or look it up ([Client.ListShipments]); never with a new key.
	ErrOutcomeUnknown = resilience.ErrOutcomeUnknown
	// ErrResponseTooLarge: over the limit of [WithMaxResponseBytes], or one of
	// [Limits]; a [LimitError] names it.
	ErrResponseTooLarge = resilience.ErrResponseTooLarge
	// ErrMalformedResponse: an answer that is not what the spec says.
	ErrMalformedResponse = resilience.ErrMalformedResponse
	// ErrBlocked: refused by the egress guard; see [Client.Fetch] and [WithEgressGuard].
	ErrBlocked = resilience.ErrBlocked
	// ErrNotReady: 202, the document is still being made; ask again after
	// Error.RetryAfter.
	ErrNotReady = resilience.ErrNotReady
	// ErrNotModified: 304 to a conditional request.
	ErrNotModified = resilience.ErrNotModified
)
