package mockcarrier

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a rule: which requests it is for, how often it strikes, and the one
// thing that then happens. Make one with a constructor, and narrow it down:
//
//	mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(2)
//	mockcarrier.ResetAfter().ForReference("order-1001").Times(1)
//	mockcarrier.Delay(5 * time.Second).Chance(0.1, 42)
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
	// empty list does not narrow.
	Operations, Keys, References, TrackingNumbers []string

	// After is how many of these requests are left alone at first.
	After int
	// First is how often it strikes at most; 0 means without limit.
	First int
	// Every is n: it strikes at each nth of these requests only.
	Every int
	// AllBut is n: it leaves each nth of these requests alone.
	AllBut int
	// Probability is how likely it strikes, 0 to 1, both exact; nil means that
	// it does. The decision depends on Seed and on the ordinal of the request
	// among those of the rule, and on nothing else.
	Probability *float64
	// Seed is for Probability; 0 means that of [WithSeed].
	Seed uint64
	// Optional says that it is no failure of the test if it never strikes.
	Optional bool

	// Status is the HTTP status of KindStatus, KindHTML, KindRedirect and
	// KindInformational.
	Status int
	// Header is added to the answer of KindStatus, KindHTML and KindRedirect,
	// and to the interim answers of KindInformational.
	Header http.Header
	// Body is the body of KindStatus and KindHTML; "" means a fitting one. It is
	// the value of KindContentType, where "" means no Content-Type at all.
	Body string
	// Wait is how long KindDelay waits, and KindDrip between two pieces.
	Wait time.Duration
	// Bytes is how much of the body KindStallBody, KindTruncate and
	// KindResetBody send, and KindDrip at a time. It is the size of the body of
	// KindOversize.
	Bytes int64
	// Framing is how the length of the body is told by KindTruncate, where ""
	// means by Content-Length, and by KindOversize, where "" means in chunks.
	Framing Framing
	// Count is how many interim answers KindInformational sends; 0 means 1.
	Count int
}

// Kind is what a [Fault] does.
type Kind string

// The kinds. On HTTP/2 those that cut the connection cut it with all the
// requests on it, and those that are about framing come as close as it allows.
const (
	KindStatus        Kind = "status"         // an answer of the given status
	KindDelay         Kind = "delay"          // the answer comes late
	KindStall         Kind = "stall"          // no answer comes, and the connection stays
	KindStallBody     Kind = "stall-body"     // the headers and some bytes come, and no more
	KindDrip          Kind = "drip"           // the body comes in small pieces
	KindTruncate      Kind = "truncate"       // the body ends early, and the connection with it
	KindReset         Kind = "reset"          // the connection is reset (RST) in place of an answer
	KindResetBody     Kind = "reset-body"     // the connection is reset within the body
	KindClose         Kind = "close"          // the connection is closed (FIN) in place of an answer
	KindMalformedJSON Kind = "malformed-json" // the JSON has a syntax error
	KindHTML          Kind = "html"           // a page of HTML, as a proxy or a captive portal sends it
	KindContentType   Kind = "content-type"   // the Content-Type is wrong or missing
	KindEmpty         Kind = "empty"          // 200 with an empty body
	KindOversize      Kind = "oversize"       // the body is far too large
	KindUnknownFields Kind = "unknown-fields" // the JSON has members that the spec does not have
	KindUnknownEnums  Kind = "unknown-enums"  // the statuses are words that the spec does not have
	KindZonelessTimes Kind = "zoneless-times" // the times come without their offset
	KindDuplicate     Kind = "duplicate"      // the bytes of the answer come twice
	KindInformational Kind = "informational"  // 1xx answers come before the answer
	KindRedirect      Kind = "redirect"       // a 3xx with a Location
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

// Status answers with an HTTP status and problem details that fit it, without a
// Retry-After; see [Fault.RetryAfter] and [Fault.WithBody].
func Status(code int) Fault { return Fault{Kind: KindStatus, Status: code} }

// Delay answers d later. The request is worked on meanwhile: with
// [Fault.BeforeProcessing] it is not taken up before, with
// [Fault.AfterProcessing] it is done before.
func Delay(d time.Duration) Fault { return Fault{Kind: KindDelay, Wait: d} }

// Stall never answers and does nothing, until the client goes away or the
// server closes.
func Stall() Fault { return Fault{Kind: KindStall} }

// StallAfter does what was asked and never answers.
func StallAfter() Fault { return Fault{Kind: KindStall, Phase: PhaseAfter} }

// StallBody sends the headers and the first n bytes of the body, and no more.
func StallBody(n int64) Fault { return Fault{Kind: KindStallBody, Bytes: n} }

// Drip sends the body in pieces of n bytes, each after a wait.
func Drip(n int64, wait time.Duration) Fault { return Fault{Kind: KindDrip, Bytes: n, Wait: wait} }

// Truncate sends n bytes of the body, or all but the last if there are no more,
// and closes the connection.
func Truncate(n int64, framing Framing) Fault {
	return Fault{Kind: KindTruncate, Bytes: n, Framing: framing}
}

// ResetBefore resets the connection. Nothing was done.
func ResetBefore() Fault { return Fault{Kind: KindReset, Phase: PhaseBefore} }

// ResetAfter does what was asked, and resets the connection: a lost answer.
func ResetAfter() Fault { return Fault{Kind: KindReset, Phase: PhaseAfter} }

// ResetBody sends the headers and n bytes of the body, and resets the connection.
func ResetBody(n int64) Fault { return Fault{Kind: KindResetBody, Bytes: n} }

// CloseBefore closes the connection in good order. Nothing was done.
func CloseBefore() Fault { return Fault{Kind: KindClose, Phase: PhaseBefore} }

// CloseAfter does what was asked, and closes the connection: a lost answer.
func CloseAfter() Fault { return Fault{Kind: KindClose, Phase: PhaseAfter} }

// MalformedJSON spoils the syntax of the answer, whose length is right.
func MalformedJSON() Fault { return Fault{Kind: KindMalformedJSON} }

// HTML answers with a page and the given status, 200 and 502 being the usual ones.
func HTML(status int) Fault { return Fault{Kind: KindHTML, Status: status} }

// ContentType replaces the answer's media type; "" removes it.
func ContentType(mediaType string) Fault { return Fault{Kind: KindContentType, Body: mediaType} }

// EmptyOK does what was asked, and answers 200 with no byte of body.
func EmptyOK() Fault { return Fault{Kind: KindEmpty} }

// Oversize makes the body n bytes long: JSON stays valid, by one long member
// that is unknown; other documents get n bytes of padding in all. It is sent in
// chunks, and never held in memory.
func Oversize(n int64) Fault { return Fault{Kind: KindOversize, Bytes: n} }

// UnknownFields adds members that the spec does not have to each object.
func UnknownFields() Fault { return Fault{Kind: KindUnknownFields} }

// UnknownEnums replaces each status by a word that the spec does not have.
func UnknownEnums() Fault { return Fault{Kind: KindUnknownEnums} }

// ZonelessTimes removes the offset from each time.
func ZonelessTimes() Fault { return Fault{Kind: KindZonelessTimes} }

// Duplicate sends the bytes of the answer twice, and closes the connection.
func Duplicate() Fault { return Fault{Kind: KindDuplicate} }

// Informational sends count interim answers (100 to 199, without 101) before
// the answer, which stays as it is.
func Informational(status, count int) Fault {
	return Fault{Kind: KindInformational, Status: status, Count: count}
}

// Redirect answers with a 3xx that points at location.
func Redirect(status int, location string) Fault {
	return Fault{Kind: KindRedirect, Status: status, Header: http.Header{"Location": {location}}}
}

// On narrows the rule to operations, by operationId.
func (f Fault) On(operations ...string) Fault {
	f.Operations = slices.Concat(f.Operations, operations)
	return f
}

// ForKey narrows the rule to requests with one of these idempotency keys.
func (f Fault) ForKey(keys ...string) Fault {
	f.Keys = slices.Concat(f.Keys, keys)
	return f
}

// ForReference narrows the rule to requests about shipments with one of these
// references of the sender.
func (f Fault) ForReference(references ...string) Fault {
	f.References = slices.Concat(f.References, references)
	return f
}

// ForTracking narrows the rule to requests about one of these parcels.
func (f Fault) ForTracking(numbers ...string) Fault {
	f.TrackingNumbers = slices.Concat(f.TrackingNumbers, numbers)
	return f
}

// Skip leaves the first n requests alone.
func (f Fault) Skip(n int) Fault { f.After = n; return f }

// Times lets the rule strike n times, and then no more.
func (f Fault) Times(n int) Fault { f.First = n; return f }

// EveryNth lets the rule strike at each nth request only.
func (f Fault) EveryNth(n int) Fault { f.Every = n; return f }

// AllButEveryNth lets the rule strike at all but each nth request.
func (f Fault) AllButEveryNth(n int) Fault { f.AllBut = n; return f }

// Chance lets the rule strike with a probability from 0 to 1. The same seed
// gives the same decisions; 0 stands for the seed of [WithSeed].
func (f Fault) Chance(probability float64, seed uint64) Fault {
	f.Probability, f.Seed = &probability, seed
	return f
}

// MayNotFire says that it is no failure of the test if the rule never strikes.
func (f Fault) MayNotFire() Fault { f.Optional = true; return f }

// RetryAfter adds a Retry-After of whole seconds. For its other forms there is
// WithHeader.
func (f Fault) RetryAfter(seconds int) Fault {
	return f.WithHeader("Retry-After", fmt.Sprint(seconds))
}

// WithHeader adds a header to the answer that the fault gives.
func (f Fault) WithHeader(name, value string) Fault {
	h := f.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Add(name, value)
	f.Header = h
	return f
}

// WithBody replaces the body of the answer that the fault gives.
func (f Fault) WithBody(body string) Fault { f.Body = body; return f }

// BeforeProcessing sets [PhaseBefore].
func (f Fault) BeforeProcessing() Fault { f.Phase = PhaseBefore; return f }

// DuringProcessing sets [PhaseDuring].
func (f Fault) DuringProcessing() Fault { f.Phase = PhaseDuring; return f }

// AfterProcessing sets [PhaseAfter].
func (f Fault) AfterProcessing() Fault { f.Phase = PhaseAfter; return f }

// Validate says what is wrong with the rule, or returns nil.
func (f Fault) Validate() error {
	kind, ok := kinds[f.Kind]
	if !ok {
		return fmt.Errorf("mockcarrier: no fault is of kind %q", f.Kind)
	}
	var problems []string
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	complain(f.Phase != "" && !slices.Contains(kind.phases, f.Phase), "phase %q is none of %q", f.Phase, kind.phases)
	complain(f.After < 0 || f.First < 0 || f.Every < 0 || f.AllBut < 0 || f.Count < 0, "a count is negative")
	complain(f.AllBut == 1, "all but each request is none")
	complain(f.Probability != nil && !(*f.Probability >= 0 && *f.Probability <= 1), "the probability is not from 0 to 1")
	complain(f.Wait < 0, "the wait is negative")
	complain(f.Bytes < 0, "the number of bytes is negative")
	complain(f.Status != 0 && kind.least == 0, "it has no status")
	complain(kind.least != 0 && (f.Status < kind.least || f.Status > kind.most),
		"status %d is not from %d to %d", f.Status, kind.least, kind.most)
	complain(f.Kind == KindInformational && f.Status == http.StatusSwitchingProtocols, "101 ends HTTP")
	complain(f.Kind == KindDrip && f.Bytes == 0, "pieces of no bytes never end")
	complain(!slices.Contains([]Framing{"", ByLength, ByChunks, ByClose}, f.Framing), "framing %q is unknown", f.Framing)
	complain(f.Framing != "" && f.Kind != KindTruncate && f.Kind != KindOversize, "it has no framing")
	complain(f.Kind == KindOversize && f.Framing == ByClose, "it comes by length or in chunks")
	if len(problems) == 0 {
		return nil
	}
	return errors.New("mockcarrier: fault " + string(f.Kind) + ": " + strings.Join(problems, "; "))
}

// kinds has the phases in which each kind can strike, its usual one first, and
// the statuses that it takes.
var kinds = map[Kind]struct {
	phases      []Phase
	least, most int
}{
	KindStatus:        {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 200, most: 599},
	KindHTML:          {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 200, most: 599},
	KindRedirect:      {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 300, most: 399},
	KindDelay:         {phases: []Phase{PhaseDuring, PhaseBefore, PhaseAfter}},
	KindStall:         {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}},
	KindReset:         {phases: []Phase{PhaseBefore, PhaseAfter}},
	KindClose:         {phases: []Phase{PhaseBefore, PhaseAfter}},
	KindStallBody:     {phases: []Phase{PhaseAfter}},
	KindDrip:          {phases: []Phase{PhaseAfter}},
	KindTruncate:      {phases: []Phase{PhaseAfter}},
	KindResetBody:     {phases: []Phase{PhaseAfter}},
	KindMalformedJSON: {phases: []Phase{PhaseAfter}},
	KindContentType:   {phases: []Phase{PhaseAfter}},
	KindEmpty:         {phases: []Phase{PhaseAfter}},
	KindOversize:      {phases: []Phase{PhaseAfter}},
	KindUnknownFields: {phases: []Phase{PhaseAfter}},
	KindUnknownEnums:  {phases: []Phase{PhaseAfter}},
	KindZonelessTimes: {phases: []Phase{PhaseAfter}},
	KindDuplicate:     {phases: []Phase{PhaseAfter}},
	KindInformational: {phases: []Phase{PhaseAfter}, least: 100, most: 199},
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
	f.Header = f.Header.Clone()
	if f.Probability != nil {
		p := *f.Probability
		f.Probability = &p
	}
	return f
}

// String describes what the fault does, in a few words: "status 503, Retry-After: 1".
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	add := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, format, args...)
		}
	}
	add(f.Status != 0, " %d", f.Status)
	add(f.Count > 1, " ×%d", f.Count)
	add(f.Bytes != 0, " %d bytes", f.Bytes)
	add(f.Wait != 0, " %v", f.Wait)
	add(f.Framing != "", " by %s", f.Framing)
	add(f.Kind == KindContentType, " %q", f.Body)
	add(f.Phase != "", " %s processing", f.Phase)
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		fmt.Fprintf(&b, ", %s: %s", name, strings.Join(f.Header[name], ", "))
	}
	return b.String()
}

// scope describes which requests the fault is for: "createShipment, first 2".
func (f Fault) scope() string {
	var parts []string
	for _, list := range []struct {
		what   string
		values []string
	}{{"", f.Operations}, {"key ", f.Keys}, {"reference ", f.References}, {"parcel ", f.TrackingNumbers}} {
		if len(list.values) > 0 {
			parts = append(parts, list.what+strings.Join(list.values, "|"))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "all requests")
	}
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(f.After > 0, "after %d", f.After)
	add(f.First > 0, "first %d", f.First)
	add(f.Every > 0, "every %d", f.Every)
	add(f.AllBut > 0, "all but every %d", f.AllBut)
	if f.Probability != nil {
		add(true, "probability %g", *f.Probability)
		add(f.Seed != 0, "seed %d", f.Seed)
	}
	return strings.Join(parts, ", ")
}
