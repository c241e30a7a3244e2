package resilience

import (
	"net/http"
	"time"
)

// CallInfo tells how a call went. [WithCallInfo] fills one when the call ends,
// for a stream when it is handed over.
type CallInfo struct {
	Operation string
	// Attempts is how many attempts were begun.
	Attempts int
	// Sends is how many connections the request was given. It is more than the
	// attempts that reached a connection where net/http sent one again by
	// itself, and 0 with a transport that is not net/http's.
	Sends int
	// StatusCode is that of the last answer; 0 if none came.
	StatusCode int
	// RequestID is the carrier's id of the last answered request.
	RequestID string
	// IdempotencyKey is the key that the call carried; "" if none.
	IdempotencyKey string
	// Replayed says that the carrier marked its answer as that of an earlier
	// request with the same key.
	Replayed bool
	// Elapsed is the time from the call to its end, all waits included.
	Elapsed time.Duration
	// Header is the last answer's, credentials removed.
	Header http.Header
}
