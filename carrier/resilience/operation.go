package resilience

import "time"

// Safety says what repeating an operation can do. It is a property of the
// operation, taken from the spec, and not of the HTTP method: at real carriers
// many a POST only reads, and some a GET acts.
type Safety int8

const (
	// SafetyByMethod is the zero value: GET, HEAD and OPTIONS are reads, PUT
	// and DELETE are idempotent, POST and PATCH are keyed where the operation
	// names a KeyHeader, and unsafe otherwise.
	SafetyByMethod Safety = iota
	// SafetyRead changes nothing at the carrier. It may always be repeated.
	SafetyRead
	// SafetyIdempotent changes something, but twice is the same as once.
	SafetyIdempotent
	// SafetyKeyed acts once for each idempotency key, which the carrier honours.
	SafetyKeyed
	// SafetyUnsafe acts each time that it arrives: it is repeated only if it
	// provably did not arrive, or was refused without being processed.
	SafetyUnsafe
)

// String returns the word that x-safety has for it.
func (s Safety) String() string {
	switch s {
	case SafetyRead:
		return "read"
	case SafetyIdempotent:
		return "idempotent"
	case SafetyKeyed:
		return "keyed"
	case SafetyUnsafe:
		return "unsafe"
	default:
		return "by method"
	}
}

// Operation is what the pipeline has to know of an API operation. A table of
// them is generated from the spec; [WithOperations] and [Doer.Call] take it.
// An Operation is read-only once it was handed over.
//
// The zero value of every field but ID, Method and Path is a correct default.
type Operation struct {
	// ID is the operationId, as the spec has it: "getTracking".
	ID string
	// Method is the HTTP method, in upper case.
	Method string
	// Path is the template below the base URL: "/tracking/{trackingNumber}".
	Path string
	// Safety is x-safety.
	Safety Safety
	// KeyHeader is the header that carries the idempotency key; empty for an
	// operation that the carrier does not deduplicate. Such an operation never
	// carries a key: net/http would take it for leave to send a POST twice.
	KeyHeader string
	// KeyTTL is how long the carrier remembers a key (x-idempotency-ttl);
	// 0 means 24 hours. A key older than that is not sent again.
	KeyTTL time.Duration
	// Group is x-group, else the first tag: the operations that share a breaker.
	Group string
	// Success lists the documented 2xx answers. Empty means that any 2xx is a success.
	Success []Success
	// Stream hands the body over unread: labels, documents, exports.
	Stream bool
	// Timeout and AttemptTimeout are x-timeout and x-attempt-timeout, the
	// operation's defaults for the total and for one attempt; 0 means those of
	// the client. Options of the client and of the call override them.
	Timeout, AttemptTimeout time.Duration
	// MaxBody is x-max-body, the limit in bytes of a decompressed answer;
	// 0 means the client's.
	MaxBody int64
	// InProgressCodes are the problem codes of a 409 that mean "a request with
	// this key is still being worked on" (x-in-progress-codes); empty means
	// "idempotency_in_progress".
	InProgressCodes []string
	// KeyReusedCodes are the problem codes of a 422 that mean "this key came
	// with other bytes before" (x-key-reused-codes); empty means
	// "idempotency_key_reused".
	KeyReusedCodes []string
}

// Success is one documented 2xx answer.
type Success struct {
	// Status is the HTTP status; 0 stands for any 2xx (the spec's "2XX").
	Status int
	// ContentTypes are the media types that the spec has for it, without
	// parameters. Empty means that the answer has no content.
	ContentTypes []string
	// Kind says what the answer is to the caller.
	Kind SuccessKind
}

// SuccessKind says what a documented 2xx means.
type SuccessKind int8

const (
	// ResultAnswer is the result, and is decoded: the zero value.
	ResultAnswer SuccessKind = iota
	// NotReadyAnswer is a 202 for a document that is still being made: [ErrNotReady].
	NotReadyAnswer
	// OtherAnswer is documented, but of another schema than the result: an
	// error with [OutcomeDone], which keeps the body.
	OtherAnswer
)
