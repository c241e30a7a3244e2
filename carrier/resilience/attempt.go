package resilience

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// attempt is one attempt, and the context of its request.
type attempt struct {
	context.Context // bounds the attempt
	cancel          context.CancelFunc
	cancelStream    context.CancelCauseFunc
	disarm          func() bool // lifts the time limit of a stream at its headers
	evidence

	number  int
	begun   time.Time
	elapsed time.Duration
	limit   *limitError // of ours, that ran out
	left    bool        // the caller had left, or run out of time, when it ended
	gate    *Breaker    // that let it through, or refused it
	probe   bool        // of an open breaker
	freed   bool        // let out by a successful probe
	decided bool
	refused bool // by the breaker: it did not begin

	token        *accessToken // that it was sent with; nil without tokens
	unauthorized error        // why it got no token or signature, and was not sent
	sending      bool         // it was handed to the transport

	resp    *http.Response
	status  int
	header  http.Header
	body    []byte
	bodyErr error // why the body is not whole
	err     error // why there is no answer, or no result
	sendErr atomic.Pointer[error]
	cause   error // for the error's text and chain

	class      class
	outcome    Outcome
	verdict    verdict
	problem    *Problem
	retryAfter time.Duration
	inProgress bool
	keyReused  bool
	settled    bool // the verdict of the layer that knows the key
	replayed   bool
	stream     *streamBody
	out        http.Response // what goes up the layers
}

// Value hands the evidence to our own transport.
func (a *attempt) Value(key any) any {
	if key == (evidenceKey{}) {
		return &a.evidence
	}
	return a.Context.Value(key)
}

func (c *call) nextAttempt() *attempt {
	a := &c.first
	if c.last != nil {
		a = new(attempt)
	}
	c.attempts++
	a.number = c.attempts
	a.Context = c
	c.last = a
	return a
}

// enter asks the breaker for a place, and waits for one where its policy says so.
func (c *call) enter(a *attempt) (admission, error) {
	b := c.settings.breaker
	if b == nil {
		return admission{}, nil
	}
	a.gate = b
	var until time.Time
	if !c.deadline.IsZero() {
		// Leave room for an attempt: better the last real answer now than no answer in time.
		now := time.Now()
		until = c.deadline.Add(-c.reserve(c.deadline.Sub(now)))
	}
	place, err := b.enter(c, until, c.settings.attemptTimeout)
	if err != nil {
		c.attempts-- // refused: no attempt was begun
		a.refuse(err)
		return admission{}, err
	}
	a.probe, a.freed = place.probe, place.freed
	return place, nil
}

// begin starts the attempt's clock.
func (a *attempt) begin(c *call) {
	a.begun = time.Now()
	if c.firstSent.IsZero() {
		c.firstSent = a.begun
	}
	if c.streams {
		a.Context, a.cancelStream, a.disarm = c.streamContext(a.begun)
	} else {
		a.Context, a.cancel = c.attemptContext(a.begun)
	}
}

// finish ends the attempt's clock, unless a stream lives on.
func (a *attempt) finish(c *call) {
	a.elapsed = time.Since(a.begun)
	c.sends += int(a.got.Load())
	if a.cancel != nil {
		a.cancel()
	}
	if a.cancelStream != nil && a.stream == nil {
		a.disarm()
		a.cancelStream(context.Canceled)
	}
}

// request is what goes to the transport. Headers are set here, on a map of the
// attempt's own, and neither the caller's request nor another attempt's is touched.
func (a *attempt) request(outer *http.Request) *http.Request {
	c := callOf(outer.Context())
	if c.op.safety == SafetyUnsafe {
		a.stop = a.abort
	}
	a.hooked = c.doer.evident
	r := outer.WithContext(a.watch(a))
	r.Header = c.attemptHeader(a)
	if c.adopted != nil {
		r.Trailer, r.TransferEncoding, r.Close = c.adopted.Trailer, c.adopted.TransferEncoding, c.adopted.Close
	}
	if c.body.open != nil {
		body, err := c.body.open()
		if err != nil {
			a.sendErr.Store(&err)
			r.Body = failedBody{err}
		} else {
			r.Body = body
		}
		if c.adopted != nil {
			r.Body = sentBody{r.Body, a}
		}
		r.ContentLength = c.body.length
		// With GetBody, net/http may send a request again by itself. Where a
		// repeat is not safe it must not: the loop decides, on evidence.
		if c.op.safety != SafetyUnsafe && !c.oneShot {
			r.GetBody = c.body.open
		}
	} else if c.op.safety == SafetyUnsafe && usuallyBodiless(c.method) {
		r.Body = emptyBody{}
	}
	return r
}

// abort ends the attempt's context, for the hooks.
func (a *attempt) abort() {
	if a.cancelStream != nil {
		a.cancelStream(errSentTwice)
	} else {
		a.cancel()
	}
}

var errSentTwice = errors.New("the request broke off, and is not sent a second time")

type failedBody struct{ err error }

func (b failedBody) Read([]byte) (int, error) { return 0, b.err }
func (b failedBody) Close() error             { return nil }

// attemptHeader builds the header of one attempt. The order is the rank: the
// call's options, the client's, the request's own, the pipeline's.
func (c *call) attemptHeader(a *attempt) http.Header {
	d := c.doer
	h := make(http.Header, 8)
	h["Accept"] = c.op.accept
	h["User-Agent"] = d.userAgent
	if c.contentType != nil {
		h["Content-Type"] = c.contentType
	}
	for name, values := range c.header {
		h[name] = values[:len(values):len(values)]
	}
	trusted := d.trusts(&c.url)
	if trusted {
		for _, x := range d.config.headers {
			h[x.name] = x.values
		}
	}
	for _, x := range c.settings.headers {
		h[x.name] = x.values
	}
	if trusted {
		for _, x := range d.config.credentials {
			h[x.name] = x.values
		}
	}
	if c.keyValues != nil {
		h[c.op.keyHeader] = c.keyValues
	}
	if c.ifRange != "" {
		h["Range"] = []string{"bytes=" + strconv.FormatInt(c.rangeFrom, 10) + "-"}
		h["If-Range"] = []string{c.ifRange}
	}
	c.ranged = h["Range"] != nil
	if d.config.announceTimers {
		if at, ok := a.Deadline(); ok {
			h["X-Request-Timeout-Ms"] = []string{strconv.FormatInt(max(time.Until(at).Milliseconds(), 1), 10)}
		}
	}
	return h
}

// receive takes the transport's answer, and reads its body where it is not a
// stream to be handed over.
func (a *attempt) receive(c *call, resp *http.Response, err error) {
	if err == nil && resp == nil {
		err = errors.New("the transport returned neither an answer nor an error")
	}
	if err != nil {
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		if a.stopped.Load() {
			err = errSentTwice
		}
		a.err = newTransportError(stripURL(err), c.redactor())
		a.noteEnd(c)
		return
	}
	a.resp, a.status, a.header = resp, resp.StatusCode, resp.Header
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	success := c.success(a.status)
	result := c.streams && success != nil && success.Kind == ResultAnswer && success.accepts(a.header)
	if result && a.disarm() {
		a.stream = newStreamBody(c, a)
		return
	}
	switch {
	case result:
		<-a.Done() // the time limit was sooner by a hair
		a.bodyErr = context.Cause(a.Context)
	case resp.Body == http.NoBody, c.method == http.MethodHead:
	default:
		a.body, a.bodyErr = readBody(resp.Body, resp.ContentLength, c.bodyLimit(success))
	}
	a.noteEnd(c)
	_ = resp.Body.Close()
}

// bodyLimit is how much of a body is read.
func (c *call) bodyLimit(success *Success) int64 {
	switch {
	case success == nil && (c.adopted == nil || c.doer.config.statusErrors):
		return maxErrorBody // no more than an Error needs
	case c.settings.maxBody > 0:
		return c.settings.maxBody
	default:
		return math.MaxInt64 - 1
	}
}

// success is the operation's, and 206 for a part that was asked for.
func (c *call) success(status int) *Success {
	switch {
	case c.streams && status == http.StatusPartialContent && c.ranged:
		return &anySuccess
	case c.ifRange != "":
		return nil // the whole again: the thing has changed, or ranges are not served
	}
	return c.op.success(status)
}

// noteEnd keeps whose time had run out when the attempt ended: a moment later
// the context would tell another story. An answer that is whole was in time.
func (a *attempt) noteEnd(c *call) {
	a.elapsed = time.Since(a.begun)
	switch {
	case a.err == nil && a.bodyErr == nil:
	case c.Context.Err() != nil:
		a.left = true
	default:
		a.limit = ownLimit(a.Context)
	}
}

// result is what the layers above see of the attempt: they ask the call for
// everything else.
func (a *attempt) result() (*http.Response, error) {
	if a.status == 0 {
		return nil, errAttemptFailed
	}
	a.out.StatusCode = a.status
	a.out.Header = noHeader
	a.out.Body = http.NoBody
	return &a.out, nil
}

// noHeader is read by net/http, and never written.
var noHeader = http.Header{}

// refuse is the end of an attempt that did not begin.
func (a *attempt) refuse(err error) { a.refused, a.err = true, err }
