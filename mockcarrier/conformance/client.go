package conformance

import (
	"context"
	"io"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// Client is the client under test, behind three of the carrier's operations. An
// adapter is some 40 lines: make the call, and copy what the client tells into
// a [Result]. It may be used by several goroutines at once. If it is an
// [io.Closer] it is closed at the end of its case.
//
// Each call is bounded by its context, on top of what limits the client itself
// has. An adapter adds nothing that the client does not do by itself: no retry,
// no check, no key.
type Client interface {
	// Track asks for a parcel: GET {base}/tracking/{number}. Result.Value is the
	// member "status" of the answer.
	Track(ctx context.Context, number string) Result
	// Ship buys a shipment: POST {base}/shipments with the order, which is JSON,
	// and the header Idempotency-Key. An empty key leaves it to the client to
	// make one. Result.Value is the member "id" of the answer.
	Ship(ctx context.Context, key string, order []byte) Result
	// Label downloads a label, GET {base}/shipments/{id}/label, into w, as it
	// comes. Result.Value is not used.
	Label(ctx context.Context, shipmentID string, w io.Writer) Result
}

// Result is what a client tells of a call. All but Err may be left zero: what
// the client does not tell is scored as such where a rule asks for it.
type Result struct {
	// Value is what the answer says; see the methods of [Client].
	Value string
	// Err is nil if the call succeeded. Its text must show no secret.
	Err error
	// Outcome is what the client says of a failed call.
	Outcome Outcome
	// StatusCode is that of the last answer; 0 if none came.
	StatusCode int
	// RetryAfter is how long the carrier wants to be left alone.
	RetryAfter time.Duration
	// RequestID is the X-Request-Id of the last answer.
	RequestID string
	// Key is the idempotency key that was used.
	Key string
	// Attempts is how many attempts the client made.
	Attempts int
	// Sends is how often a request went out, as far as the client knows: its
	// attempts, and what its HTTP library sent again by itself.
	Sends int
}

// Outcome says whether the carrier acted.
type Outcome string

// The outcomes. The zero value is that the client does not tell.
const (
	NoStatement Outcome = ""
	NotSent     Outcome = "not sent" // nothing reached the carrier
	Rejected    Outcome = "rejected" // the carrier says that it did not act
	Unknown     Outcome = "unknown"  // it may have acted
	Done        Outcome = "done"     // it acted, and its answer is lost or unreadable
)

// AttemptTimeout is the time limit of one attempt, the reading of its body
// included, that a client under test is to be set up with, if it can be. All
// else stays as in production, but that a breaker which reopens soon makes the
// suite quicker.
const AttemptTimeout = time.Second

// APIKey is what the client is to send in the header X-Api-Key.
const APIKey = mockcarrier.APIKey
