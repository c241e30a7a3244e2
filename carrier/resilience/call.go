package resilience

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// call is one logical call on its way through the pipeline: all of its
// attempts, with one key and one set of bytes. It is the context of its
// requests, so that every layer below finds it, and it is never used again: a
// late hook of net/http must not write into the next call's.
type call struct {
	context.Context // the caller's

	doer     *Doer
	op       *operation
	config   callConfig
	settings settings

	// What is sent.
	url         url.URL
	method      string
	host        string      // of a request that came through Do
	header      http.Header // of the request; not changed
	contentType []string
	body        outgoing
	model       any           // what the body was encoded from
	unread      io.ReadCloser // the first body of a caller of Do, until an attempt takes it
	oneShot     bool          // the body cannot be read again: no retry
	key         string
	keyValues   []string
	streams     bool   // the answer is handed over unread
	ranged      bool   // a part of it is asked for
	ifRange     string // of a stream that goes on: what it was
	rangeFrom   int64  // and the first byte that is asked for

	// When it must end.
	started      time.Time
	total        time.Time     // end of our own total time limit; zero if none
	deadline     time.Time     // the sooner of total and the caller's; zero if none
	callerLimit  time.Duration // what the caller's deadline left at the start
	totalLimit   limitError
	attemptLimit limitError

	// What became of it.
	last        *attempt // the newest attempt, also if the breaker refused it
	judged      *attempt // the newest that was made
	answered    *attempt // the newest that got an answer
	attempts    int
	counted     int // attempts that count against MaxAttempts
	misdirected int
	sends       int
	firstSent   time.Time
	outcome     Outcome
	decision    decision
	local       error                 // net/http refused to send
	decode      func(*Response) error // or, for JSON:
	into        any                   // what the answer is decoded into
	adopted     *http.Request         // of a caller of Do, who gets the answer undecoded; not changed

	renewed bool          // it was sent again with another token
	signed  signedSecrets // what a signer set, for the redactor

	first  attempt // room for the first attempt: most calls need no other
	flight flight  // of its key, if it leads one
	loop   retryablehttp.Client
	looped retryablehttp.Request
}

type callKey struct{}

// Value hands the call itself to the layers below, and asks the caller's
// context for the rest.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// settings are what holds for one call, after call options, client options,
// the operation and the defaults have been asked, in this order.
type settings struct {
	timeout        time.Duration // 0: none
	attemptTimeout time.Duration
	idleTimeout    time.Duration
	maxBody        int64 // of a buffered answer
	maxStream      int64 // of a stream; 0: none
	retry          *retryPolicy
	breaker        *Breaker
	headers        []header
}

func (d *Doer) settings(op *operation, cc *callConfig) settings {
	s := settings{
		timeout:        limit(cc.timeout, d.config.timeout, op.Timeout, defaultTimeout),
		attemptTimeout: limit(cc.attemptTimeout, d.config.attemptTimeout, op.AttemptTimeout, defaultAttemptTimeout),
		idleTimeout:    limit(cc.idleTimeout, d.config.idleTimeout, 0, defaultIdleTimeout),
		maxBody:        limit(cc.maxBody, d.config.maxBody, op.MaxBody, defaultMaxResponse),
		maxStream:      limit(cc.maxBody, 0, op.MaxBody, -1),
		retry:          d.retry,
		headers:        cc.headers,
	}
	switch {
	case cc.noRetry:
		s.retry = nil
	case cc.retry != nil:
		s.retry = cc.retry
	}
	if !cc.noBreaker {
		s.breaker = d.breakerOf(op)
	}
	return s
}

// limit returns the first that says something; 0 means that there is no limit.
func limit[T int64 | time.Duration](candidates ...T) T {
	for _, v := range candidates {
		if v > 0 {
			return v
		}
		if v < 0 {
			return 0
		}
	}
	return 0
}

// decodeAnswer hands the whole body of a documented success to whoever made the
// call. What an attempt before may have left in a JSON result is wiped first.
func (c *call) decodeAnswer(status int, header http.Header, body []byte) error {
	switch {
	case c.decode != nil:
		if c.config.keySet { // others may get the same answer
			header, body = header.Clone(), bytes.Clone(body)
		}
		return c.decode(&Response{StatusCode: status, Header: header, Body: body})
	case c.into == nil:
		return nil
	}
	if c.attempts > 1 {
		reflect.ValueOf(c.into).Elem().SetZero()
	}
	return decodeJSON(body, c.into, c.doer.config.limits.jsonDepth())
}

// waitsAtGate reports whether the call waits for an open breaker.
func (c *call) waitsAtGate() bool {
	return c.settings.breaker != nil && c.settings.breaker.policy.WaitWhenOpen
}

// keyTTL is how long the carrier remembers a key.
func (op *operation) keyTTL() time.Duration {
	if op.KeyTTL > 0 {
		return op.KeyTTL
	}
	return defaultKeyTTL
}
