package resilience

import "net/http"

// Outcome says whether the carrier acted.
type Outcome int

const (
	// OutcomeUnknown is the zero value: the carrier may have acted.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent: nothing of the request reached the carrier.
	OutcomeNotSent
	// OutcomeRejected: the carrier said that it did not act.
	OutcomeRejected
	// OutcomeDone: the carrier acted. Its answer may be lost or unreadable.
	OutcomeDone
)

// String returns "unknown", "not sent", "rejected" or "done".
func (o Outcome) String() string {
	switch o {
	case OutcomeNotSent:
		return "not sent"
	case OutcomeRejected:
		return "rejected"
	case OutcomeDone:
		return "done"
	default:
		return "unknown"
	}
}

// class sorts the results of attempts by what may follow from them. It is the
// first column of the table of what is safe to repeat.
type class int8

const (
	classSuccess    class = iota
	classNotSent          // provably not sent: dial, DNS, TLS cut, no connection got
	classRefused          // not sent and final: breaker, guard, encoding, certificate, NXDOMAIN
	classRejected         // 408, 421, 425, 429: not processed, and worth another try
	classUnknown          // may have acted, and a repeat may tell: 5xx, reset, timeout, 409 in progress
	classStrange          // may have acted, and a repeat will not tell: 3xx on a write, a foreign 2xx, a replayed failure
	classBodyLost         // documented 2xx whose body was cut or stalled
	classUnreadable       // documented 2xx, whole, that does not decode or is too large
	classAnswered         // 202 not ready, 304: an answer, and no result
	classFinal            // refused for good: other 4xx, 501, 505
	classCanceled         // the caller left; the outcome is told by what had been sent
)

// outcome of a class. A canceled attempt's depends on the evidence, and is not
// asked here.
func (c class) outcome() Outcome {
	switch c {
	case classNotSent, classRefused:
		return OutcomeNotSent
	case classRejected, classFinal:
		return OutcomeRejected
	case classSuccess, classBodyLost, classUnreadable, classAnswered:
		return OutcomeDone
	default:
		return OutcomeUnknown
	}
}

// repeatable reports whether an attempt of this class may be followed by
// another one, given what repeating the operation can do.
func (c class) repeatable(s Safety) bool {
	switch c {
	case classNotSent, classRejected, classFinal:
		return true // the carrier did not act: a repeat is harmless, and policy decides
	case classUnknown, classBodyLost:
		return s != SafetyUnsafe
	default:
		return false
	}
}

// classifyStatus sorts the statuses that are no documented success.
func classifyStatus(status int, s Safety) class {
	switch {
	case status == http.StatusNotModified:
		return classAnswered
	case status >= 300 && status < 400:
		if s == SafetyRead {
			return classFinal
		}
		return classStrange
	case status == http.StatusRequestTimeout, status == http.StatusMisdirectedRequest,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return classRejected
	case status >= 400 && status < 500,
		status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		return classFinal
	case status >= 500:
		return classUnknown
	default: // a 2xx that the spec does not have
		return classStrange
	}
}

// settle folds an attempt's outcome into the call's. What an earlier attempt
// may have done is not undone by a later one that did not get through: only a
// success, or a verdict of the layer that knows the key, settles what was
// unknown; and what was done stays done.
func settle(before, last Outcome, first, verdict bool) Outcome {
	switch {
	case first, last == OutcomeDone:
		return last
	case before == OutcomeDone:
		return OutcomeDone
	case verdict:
		return last
	case before == OutcomeUnknown, last == OutcomeUnknown:
		return OutcomeUnknown
	case before == OutcomeRejected:
		return OutcomeRejected
	default:
		return last
	}
}
