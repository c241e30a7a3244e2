package resilience

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// judge sorts what happened in an attempt: the class that the loop decides by,
// the outcome and the cause for the caller, and the verdict for the breaker.
func (a *attempt) judge(c *call) {
	switch {
	case a.stream != nil:
		a.replayed = replayed(a.header)
		a.succeed()
	case a.resp == nil:
		a.judgeSilence(c)
	default:
		a.judgeAnswer(c)
	}
	c.judged = a
	if a.status != 0 {
		c.answered = a
	}
	if a.status == http.StatusMisdirectedRequest {
		c.misdirected++
	}
	a.settled = c.op.keyed() && a.class == classFinal && a.problem != nil && // and no gateway's page
		a.status != http.StatusUnauthorized && a.status != http.StatusForbidden
	if a.twice.Load() && !a.settled && a.outcome != OutcomeDone {
		a.outcome = OutcomeUnknown // the answer is to the second sending, and says nothing of the first
	}
	c.outcome = settle(c.outcome, a.outcome, c.attempts == 1, a.settled)
	a.verdict = a.forBreaker(c)
	if !a.probe || a.verdict != verdictFailure || !c.waitsAtGate() {
		c.counted++
	}
	c.logAttempt(a)
}

func (a *attempt) as(cl class, cause error) {
	a.class, a.outcome, a.cause = cl, cl.outcome(), cause
}

// judgeSilence is for an attempt that got no answer.
func (a *attempt) judgeSilence(c *call) {
	sent := a.sent()
	switch {
	case a.left:
		a.as(classCanceled, contextError(c.Context))
		if !sent {
			a.outcome = OutcomeNotSent
		}
	case a.unauthorized != nil:
		a.judgeUnauthorized()
	case errors.Is(a.err, ErrBlocked):
		a.as(classRefused, a.err)
	case a.sendErr.Load() != nil:
		a.as(classStrange, fmt.Errorf("the request body could not be read: %w", *a.sendErr.Load()))
		if !sent {
			a.as(classRefused, a.cause)
		}
	case a.limit != nil && !sent:
		a.as(classNotSent, a.limit)
	case a.limit != nil:
		a.as(classUnknown, a.limit)
	case a.refusedLocally(c):
		a.as(classRefused, &invalidError{oneLine(a.err.Error(), 200)})
	case !sent && final(a.err), shakenOff(a.err):
		a.as(classRefused, explainTLS(a.err))
	case headerTooLarge(a.err):
		a.as(classStrange, &LimitError{"header", c.doer.headerLimit()})
	case invalidHTTP2(a.err):
		a.as(classStrange, fmt.Errorf("%w, or no valid HTTP/2", &LimitError{"header", c.doer.headerLimit()}))
	case neverOpened(a.err) && a.mutual.Load() != notAsked:
		a.as(classRefused, a.explainMutual())
	case !sent, neverOpened(a.err):
		a.as(classNotSent, a.explainMutual())
	default:
		a.as(classUnknown, a.explainMutual())
	}
}

// sent reports whether the request may have reached the carrier. With a
// transport that gives no evidence it may.
func (a *attempt) sent() bool { return a.sending && !a.notSent() }

// refusedLocally holds if net/http's transport turned the request down before
// it asked for a connection.
func (a *attempt) refusedLocally(c *call) bool {
	return c.doer.evident && a.neverAsked()
}

// final holds for failures to connect that another attempt would only repeat.
func final(err error) bool {
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &record) || errors.As(err, &alert) ||
		err.Error() == "http: server gave HTTP response to HTTPS client"
}

// judgeAnswer is for an attempt that got a status, with or without its body.
func (a *attempt) judgeAnswer(c *call) {
	a.replayed = replayed(a.header)
	success := c.success(a.status)
	if success == nil {
		a.readRetryAfter(c)
		a.judgeStatus(c)
		return
	}
	foreign := !success.accepts(a.header)
	switch {
	case a.left:
		a.as(classCanceled, contextError(c.Context))
		if !foreign {
			a.outcome = OutcomeDone
		}
	case foreign:
		a.judgeForeign(c)
	case a.bodyErr == errTooLarge:
		a.as(classUnreadable, &LimitError{"body", c.settings.maxBody})
	case a.limit != nil:
		a.as(classBodyLost, a.limit)
	case a.bodyErr != nil && isCorrupt(a.bodyErr):
		a.as(classUnreadable, fmt.Errorf("%w: the body does not unpack: %w", ErrMalformedResponse, a.bodyErr))
	case a.bodyErr != nil:
		a.as(classBodyLost, fmt.Errorf("the answer was cut: %w", newTransportError(a.bodyErr, c.redactor())))
	case success.Kind == NotReadyAnswer:
		a.readRetryAfter(c)
		a.as(classAnswered, ErrNotReady)
	case success.Kind == OtherAnswer:
		a.as(classAnswered, fmt.Errorf("%w: a documented %d, of another kind than the result", ErrMalformedResponse, a.status))
	case c.adopted != nil:
		a.succeed() // whoever called Do decodes it
	default:
		a.judgeResult(c)
	}
}

// isCorrupt says whether a body came, and is not what its Content-Encoding says.
// One that ends too soon is cut.
func isCorrupt(err error) bool {
	var flaw flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &flaw)
}

// judgeForeign is for a documented 2xx of another media type: hardly the API's.
func (a *attempt) judgeForeign(c *call) {
	contentType := c.redactor().text(a.header.Get("Content-Type"))
	if contentType == "" {
		contentType = "none"
	}
	a.as(classStrange, fmt.Errorf("%w: media type %s", ErrMalformedResponse, printable(contentType, 80)))
}

// readRetryAfter reads the carrier's wish, unless the policy says not to.
func (a *attempt) readRetryAfter(c *call) {
	if p := c.settings.retry; p == nil || p.MaxRetryAfter >= 0 {
		a.retryAfter, _ = retryAfter(a.header, time.Now())
	}
}

// judgeResult is for a documented 2xx whose body is whole, as far as it shows.
func (a *attempt) judgeResult(c *call) {
	err := c.decodeAnswer(a.status, a.header, a.body)
	switch {
	case err == nil:
		a.succeed()
	case closeDelimited(a.resp) && isJSON(a.header.Get("Content-Type")) && !json.Valid(a.body):
		a.as(classBodyLost, fmt.Errorf("the answer was cut: %w", io.ErrUnexpectedEOF))
	default:
		a.as(classUnreadable, unreadable(err))
	}
}

// unreadable is the cause where a body does not decode.
func unreadable(err error) error {
	if errors.Is(err, ErrResponseTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformedResponse, &decodeError{err})
}

// decodeError keeps a decoder's error for errors.As, and its text to what
// cannot quote the body.
type decodeError struct{ err error }

func (e *decodeError) Unwrap() error { return e.err }

func (e *decodeError) Error() string {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	switch {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("no valid JSON at byte %d", syntax.Offset)
	case errors.As(e.err, &kind):
		return fmt.Sprintf("a JSON %s where a %s belongs, at byte %d", kind.Value, kind.Type, kind.Offset)
	case errors.Is(e.err, errNull):
		return e.err.Error()
	default:
		return "the body does not decode"
	}
}

// accepts compares an answer's Content-Type with the documented media types. Where JSON
// is documented, application/json and any +json type but problem details will do.
// An answer that has no content by the spec may have any.
func (s *Success) accepts(h http.Header) bool {
	contentType := ""
	if v := h["Content-Type"]; len(v) > 0 {
		contentType = v[0]
	}
	if len(s.ContentTypes) == 0 || s.ContentTypes[0] == contentType {
		return true
	}
	got := mediaType(contentType)
	for _, want := range s.ContentTypes {
		want = mediaType(want)
		switch {
		case want == got, want == "*/*" && got != "":
			return true
		case isJSON(want) && isJSON(got) && !isProblem(got):
			return true
		}
	}
	return false
}

func (a *attempt) succeed() { a.as(classSuccess, nil) }

// judgeStatus is for every answer that is no documented success.
func (a *attempt) judgeStatus(c *call) {
	cl := classifyStatus(a.status, c.op.safety)
	r, base := c.redactor(), c.url
	base.RawQuery = "" // of a link it may be a secret, and "#kind" is relative to all of the URL
	a.problem = parseProblem(a.header.Get("Content-Type"), a.body, &base, r)
	if a.status >= 200 && a.status < 300 {
		a.as(cl, fmt.Errorf("%w: the spec has no %d for it", ErrMalformedResponse, a.status))
		return
	}
	a.as(cl, nil)
	if a.status < 400 && a.status != http.StatusNotModified {
		a.cause = redirected(&c.url, r.text(a.header.Get("Location")))
	}
	code := ""
	if a.problem != nil {
		code = a.problem.Code
	}
	switch {
	case a.status == http.StatusConflict && c.op.keyed() && hasCode(c.op.InProgressCodes, "idempotency_in_progress", code):
		a.inProgress = true
		a.class, a.outcome = classUnknown, OutcomeUnknown
	case a.status == http.StatusUnprocessableEntity && hasCode(c.op.KeyReusedCodes, "idempotency_key_reused", code):
		a.keyReused = true
	case a.status >= 500 && a.replayed:
		a.class = classStrange // the carrier would replay it again
	}
}

func hasCode(codes []string, byDefault, code string) bool {
	if len(codes) == 0 {
		return code == byDefault
	}
	return slices.Contains(codes, code)
}

// throttles reports whether the failure takes a token from the retry budget:
// whether it is of a kind that could be retried.
func (a *attempt) throttles() bool {
	switch a.class {
	case classNotSent, classRejected, classUnknown, classBodyLost:
		return true
	}
	return false
}

// forBreaker is the verdict on the carrier, as far as the attempt allows one.
func (a *attempt) forBreaker(c *call) verdict {
	switch a.class {
	case classSuccess:
		return verdictSuccess
	case classCanceled:
		if a.hung(c) {
			return verdictFailure
		}
		return verdictExcluded
	case classBodyLost:
		return verdictFailure
	case classUnreadable:
		if errors.Is(a.cause, ErrResponseTooLarge) {
			return verdictSuccess
		}
		return verdictFailure
	}
	if a.status == 0 {
		switch {
		case !a.sending, errors.Is(a.cause, ErrBlocked), a.sendErr.Load() != nil, errors.Is(a.cause, ErrInvalidRequest):
			return verdictExcluded
		case errors.Is(a.cause, ErrResponseTooLarge):
			return verdictSuccess
		case a.limit != nil && a.queued(c):
			return verdictExcluded
		}
		return verdictFailure
	}
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusTooManyRequests:
		return verdictExcluded
	case a.status < 300 && a.class == classStrange:
		return verdictFailure
	case a.gate != nil && slices.Contains(a.gate.policy.FailureStatuses, a.status):
		return verdictFailure
	default:
		return verdictSuccess
	}
}

// hung holds if the caller's deadline ended an attempt that had already run for
// so long that it says something about the carrier: a hung carrier must open
// the breaker even for impatient callers.
func (a *attempt) hung(c *call) bool {
	if _, ok := c.Context.Deadline(); !ok || c.Context.Err() != context.DeadlineExceeded {
		return false
	}
	if !a.sending || a.queued(c) {
		return false
	}
	slow := time.Second
	if t := c.settings.attemptTimeout; t > 0 {
		slow = min(slow, t/2)
	}
	return a.elapsed > slow
}

// queued holds if all that the attempt came to was a wait for a place in our
// own full connection pool, which is not the carrier's fault.
func (a *attempt) queued(c *call) bool {
	return a.notConnected() && c.doer.own != nil && !a.dialed.Load()
}
