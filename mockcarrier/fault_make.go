package mockcarrier

import (
	"net/http"
	"slices"
	"time"
)

// Status answers with an HTTP status and problem details that fit it, without a
// Retry-After; see [Fault.RetryAfter], [Fault.WithCode] and [Fault.WithBody].
func Status(code int) Fault { return Fault{Kind: KindStatus, Status: code} }

// ExpiredToken answers 401, as to a bearer token that has expired in the middle
// of a session.
func ExpiredToken() Fault {
	return Status(http.StatusUnauthorized).WithCode(codeTokenExpired).WithHeader("WWW-Authenticate", expiredChallenge)
}

// Delay answers d later. The request is worked on meanwhile: with
// [Fault.BeforeProcessing] it is not taken up before, with
// [Fault.AfterProcessing] it is done before. See [Fault.UpTo] and [Fault.Spread]
// for delays that vary.
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

// Garbage does what was asked, sends bytes that are no HTTP, and closes the
// connection.
func Garbage() Fault { return Fault{Kind: KindGarbage} }

// BadChunk sends the body in chunks, the first of which says a size that is no
// number, and closes the connection.
func BadChunk() Fault { return Fault{Kind: KindBadChunk} }

// Overlong says a Content-Length that is too small by half, sends the whole
// body, and closes the connection.
func Overlong() Fault { return Fault{Kind: KindOverlong} }

// LargeHeader adds a header of n bytes.
func LargeHeader(n int64) Fault { return Fault{Kind: KindLargeHeader, Bytes: n} }

// MalformedJSON spoils the syntax of the answer, whose length is right.
func MalformedJSON() Fault { return Fault{Kind: KindMalformedJSON} }

// HTML answers with a page and the given status, 200 and 502 being the usual ones.
func HTML(status int) Fault { return Fault{Kind: KindHTML, Status: status} }

// ContentType replaces the answer's media type; "" removes it.
func ContentType(mediaType string) Fault { return Fault{Kind: KindContentType, Body: mediaType} }

// BadGzip says that the answer is compressed, which it is not.
func BadGzip() Fault { return Fault{Kind: KindBadGzip} }

// EmptyOK does what was asked, and answers 200 with no byte of body.
func EmptyOK() Fault { return Fault{Kind: KindEmpty} }

// NoContentWithBody does what was asked, answers 204, which has no body, and
// sends the body all the same.
func NoContentWithBody() Fault { return Fault{Kind: KindNoContentBody} }

// Oversize makes the body n bytes long: JSON stays valid, by one long member
// that is unknown; other documents get n bytes of padding in all. It is sent in
// chunks, and never held in memory.
func Oversize(n int64) Fault { return Fault{Kind: KindOversize, Bytes: n} }

// UnknownFields adds members that the spec does not have to each object.
func UnknownFields() Fault { return Fault{Kind: KindUnknownFields} }

// UnknownEnums replaces each status by a word that the spec does not have.
func UnknownEnums() Fault { return Fault{Kind: KindUnknownEnums} }

// Nulls replaces each text, number and truth value by null.
func Nulls() Fault { return Fault{Kind: KindNulls} }

// ZonelessTimes removes the offset from each time.
func ZonelessTimes() Fault { return Fault{Kind: KindZonelessTimes} }

// EndlessPages gives each page of a list a nextCursor, the last and the empty
// ones too, which then lead to themselves.
func EndlessPages() Fault { return Fault{Kind: KindEndlessPages} }

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

// RedirectLoop answers with a 3xx that points at the address that was asked for.
func RedirectLoop(status int) Fault { return Fault{Kind: KindRedirect, Status: status} }

// None leaves requests alone. As the newest rule it shields them from older
// ones and from what they bring about by themselves; in a [Sequence] it is the
// request that goes well.
func None() Fault { return Fault{Kind: KindNone} }

// Sequence does one thing after the other, one for each request:
//
//	Sequence(Status(503).Times(2), ResetAfter(), None())
//
// is two 503s, a lost answer and an answer. It then ends, unless there is
// [Fault.Loop] or a number of [Fault.Times]. Steps have Times, but are not
// narrowed down otherwise; the whole is.
func Sequence(steps ...Fault) Fault { return Fault{Kind: KindSequence, Steps: slices.Clone(steps)} }

// RefuseConnection refuses connections: dials by [Server.Client],
// [Server.Transport] and [Server.DialContext] fail with ECONNREFUSED. A
// connection that comes to the port in another way is accepted and reset at
// once, which is as near as a process can come.
//
// Rules of this kind, and of those of [Blackhole] and [FailHandshake], count
// connections. An idle connection that is used again is none, so that a client
// may have to be new. They need a [Server], or a listener that
// [Carrier.Listener] has made.
func RefuseConnection() Fault { return Fault{Kind: KindRefuse} }

// Blackhole lets connections never come about, as behind a firewall that drops
// packets: dials by [Server.Client], [Server.Transport] and [Server.DialContext]
// last until the dialler gives up. A connection that comes to the port in
// another way is accepted, and nothing is read from it. See [RefuseConnection]
// for what it counts.
func Blackhole() Fault { return Fault{Kind: KindBlackhole} }

// FailHandshake answers the client's first bytes with a fatal TLS alert,
// handshake_failure. See [RefuseConnection] for what it counts. It is for
// [WithTLS]; without, the client reads an alert that it cannot know.
func FailHandshake() Fault { return Fault{Kind: KindHandshake} }
