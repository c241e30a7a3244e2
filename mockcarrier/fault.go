package mockcarrier

import (
	"net/http"
	"slices"
	"time"
)

// Fault is a rule: which requests it is for, how often it strikes, and the one
// thing that then happens. Make one with a constructor, and narrow it down:
//
//	mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(2)
//	mockcarrier.ResetAfter().ForReference("order-1001").Times(1)
//	mockcarrier.Delay(5 * time.Second).Chance(0.1, 42)
//	mockcarrier.Sequence(mockcarrier.Status(503), mockcarrier.ResetAfter(), mockcarrier.None())
//
// or fill in the fields, which is also the form that the admin API takes.
// [Carrier.Inject] puts it in force. The zero value of every field but Kind is
// its default.
type Fault struct {
	// Kind is what happens.
	Kind Kind
	// Phase is when it happens; "" means the usual phase of the kind.
	Phase Phase

	// Operations are the operationIds that it is for. Keys, References and
	// TrackingNumbers narrow it to requests that are about one of these. An
	// empty list does not narrow, but for [TokenOperation], which has to be named.
	Operations, Keys, References, TrackingNumbers []string
	// Match narrows it to requests that all of these match.
	Match []Matcher

	// After is how many of these requests are left alone at first.
	After int
	// First is how often it strikes at most; 0 means without limit, and for
	// KindSequence once through, unless it is a Loop. In a step of a sequence it
	// is how many requests the step takes; 0 means 1.
	First int
	// Every is n: it strikes at each nth of these requests only.
	Every int
	// AllBut is n: it leaves each nth of these requests alone.
	AllBut int
	// Probability is how likely it strikes, 0 to 1, both exact; nil means that
	// it does. The decision depends on Seed and on the ordinal of the request
	// among those of the rule, and on nothing else.
	Probability *float64
	// Seed is for Probability, MaxWait and Sigma; 0 means that of [WithSeed].
	Seed uint64
	// Lasts is how long it is in force, on the carrier's clock, from when it
	// was injected; 0 means until it is cleared. Ends is the same as a moment.
	Lasts time.Duration
	Ends  time.Time
	// Optional says that it is no failure of the test if it never strikes.
	Optional bool

	// Steps are what KindSequence does, one after the other. Loop lets it begin
	// again after the last.
	Steps []Fault
	Loop  bool

	// Status is the HTTP status of KindStatus, KindHTML, KindRedirect and
	// KindInformational.
	Status int
	// Code is the code of the problem details of KindStatus; "" means the usual
	// one of the status.
	Code string
	// Header is added to the answer of KindStatus, KindHTML and KindRedirect,
	// and to the interim answers of KindInformational.
	Header http.Header
	// RetryDate adds a Retry-After to the answer of KindStatus, KindHTML and
	// KindRedirect, as an HTTP date so long after it on the carrier's clock. It
	// may be negative.
	RetryDate *time.Duration
	// Body is the body of KindStatus and KindHTML; "" means a fitting one. It is
	// the value of KindContentType, where "" means no Content-Type at all, and
	// what KindGarbage sends.
	Body string
	// Wait is how long KindDelay and KindDeliverLate wait, and KindDrip between
	// two pieces. It is the age of KindStaleSignature.
	Wait time.Duration
	// MaxWait makes KindDelay and KindDeliverLate wait for a time between Wait and MaxWait, all of
	// them equally likely; with Sigma it is the longest that it waits.
	MaxWait time.Duration
	// Sigma makes KindDelay and KindDeliverLate wait for a time whose logarithm is normally
	// distributed: Wait is the median, and Sigma the standard deviation of the
	// natural logarithm. 0.5 is usual for a network, 1 has a long tail.
	Sigma float64
	// Bytes is how much of the body KindStallBody, KindTruncate and
	// KindResetBody send, and KindDrip at a time. It is the size of the body of
	// KindOversize, and of the header of KindLargeHeader.
	Bytes int64
	// Framing is how the length of the body is told by KindTruncate, where ""
	// means by Content-Length, and by KindOversize, where "" means in chunks.
	Framing Framing
	// Count is how many interim answers KindInformational sends, and how often
	// KindRedeliver repeats; 0 means 1.
	Count int
}

// Kind is what a [Fault] does.
type Kind string

// The kinds. On HTTP/2 those that cut the connection cut it with all the
// requests on it, and those that are about framing come as close as it allows.
const (
	KindNone     Kind = "none"     // nothing: the request is left alone, by older rules too
	KindSequence Kind = "sequence" // the steps, one for each request

	KindStatus   Kind = "status"   // an answer of the given status
	KindHTML     Kind = "html"     // a page of HTML, as a proxy or a captive portal sends it
	KindRedirect Kind = "redirect" // a 3xx with a Location

	KindDelay     Kind = "delay"      // the answer comes late
	KindStall     Kind = "stall"      // no answer comes, and the connection stays
	KindStallBody Kind = "stall-body" // the headers and some bytes come, and no more
	KindDrip      Kind = "drip"       // the body comes in small pieces

	KindReset     Kind = "reset"      // the connection is reset (RST) in place of an answer
	KindClose     Kind = "close"      // the connection is closed (FIN) in place of an answer
	KindResetBody Kind = "reset-body" // the connection is reset within the body
	KindTruncate  Kind = "truncate"   // the body ends early, and the connection with it

	KindGarbage       Kind = "garbage"        // bytes that are no HTTP, and the end of the connection
	KindBadChunk      Kind = "bad-chunk"      // a chunk whose size is no number
	KindOverlong      Kind = "overlong"       // the body is longer than its Content-Length
	KindDuplicate     Kind = "duplicate"      // the bytes of the answer come twice
	KindInformational Kind = "informational"  // 1xx answers come before the answer
	KindLargeHeader   Kind = "large-header"   // the answer has a header of the given size
	KindContentType   Kind = "content-type"   // the Content-Type is wrong or missing
	KindBadGzip       Kind = "bad-gzip"       // the Content-Encoding says gzip, and the body is none
	KindNoContentBody Kind = "204-with-body"  // a 204 that is followed by the body
	KindEmpty         Kind = "empty"          // 200 with an empty body
	KindOversize      Kind = "oversize"       // the body is far too large
	KindMalformedJSON Kind = "malformed-json" // the JSON has a syntax error
	KindUnknownFields Kind = "unknown-fields" // the JSON has members that the spec does not have
	KindUnknownEnums  Kind = "unknown-enums"  // the statuses are words that the spec does not have
	KindNulls         Kind = "nulls"          // the values in the JSON are null
	KindZonelessTimes Kind = "zoneless-times" // the times come without their offset
	KindEndlessPages  Kind = "endless-pages"  // each page of a list is followed by another

	KindRefuse    Kind = "refuse"        // the connection is refused
	KindBlackhole Kind = "blackhole"     // the connection never comes about
	KindHandshake Kind = "tls-handshake" // the TLS handshake ends in an alert
)

// Phase is when a [Fault] strikes.
type Phase string

const (
	// PhaseBefore is before the request is looked at: nothing is done, nothing
	// is remembered, as if a gateway in front of the carrier had failed.
	PhaseBefore Phase = "before"
	// PhaseDuring is while the request is worked on: its idempotency key is
	// taken, and others that come with it meanwhile are told so. An answer that
	// the fault gives is the carrier's own, kept for the key or not as
	// [WithIdempotencyPolicy] says. A request that is replayed or refused is not
	// worked on; the fault then strikes after that.
	PhaseDuring Phase = "during"
	// PhaseAfter is after the request was processed: what it asked for is done,
	// and the answer is kept for its key, but does not come as it should.
	PhaseAfter Phase = "after"
)

// Framing is how an answer tells where its body ends.
type Framing string

const (
	ByLength Framing = "length"  // Content-Length
	ByChunks Framing = "chunked" // Transfer-Encoding: chunked
	ByClose  Framing = "close"   // the end of the connection: a cut cannot be told from the end
)

// target is what a fault strikes.
type target int

const (
	requests target = iota
	connections
	deliveries
)

// strikes says what the fault strikes; of a sequence, that is what its steps do.
func (f Fault) strikes() target {
	struck := kinds[f.Kind].target
	for _, step := range f.Steps {
		struck = max(struck, step.strikes())
	}
	return struck
}

// phase returns the phase that is in force; "" for no fault.
func (f Fault) phase() Phase {
	usual := kinds[f.Kind].phases
	if f.Phase != "" || len(usual) == 0 {
		return f.Phase
	}
	return usual[0]
}

// clone returns a copy that shares nothing with f.
func (f Fault) clone() Fault {
	f.Operations = slices.Clone(f.Operations)
	f.Keys = slices.Clone(f.Keys)
	f.References = slices.Clone(f.References)
	f.TrackingNumbers = slices.Clone(f.TrackingNumbers)
	f.Match = slices.Clone(f.Match)
	f.Header = f.Header.Clone()
	f.Probability = clonePointer(f.Probability)
	f.RetryDate = clonePointer(f.RetryDate)
	f.Steps = slices.Clone(f.Steps)
	for i, step := range f.Steps {
		f.Steps[i] = step.clone()
	}
	return f
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
