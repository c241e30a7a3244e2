package resilience

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// run is the pipeline, from the outside in:
//
//	total deadline > retry and budget > breaker > attempt timeout > transport
//
// It makes the attempts of one call, and leaves what became of them in c.
// go-retryablehttp turns the loop. It is built per call, so that its hooks know
// the call, and each of its defaults is overridden: no logger, no limit of its
// own (the policy counts), no error of its own (c has them all), and nothing to
// drain, since every body is read inside its attempt.
func (c *call) run() {
	c.setDeadline(c.started) // deadline.go
	if c.Err() != nil {
		return // the caller has left already: nothing is dialled
	}
	c.looped.Request = (&http.Request{
		Method: c.method, URL: &c.url, Host: c.host, Header: noHeader,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(c)
	c.loop.HTTPClient = c.doer.client // no Timeout, no jar, redirects refused; its transport is roundTrip
	c.loop.RetryMax = math.MaxInt
	c.loop.CheckRetry = checkRetry // asks decide, in retry.go
	c.loop.Backoff = handedWait
	c.loop.ErrorHandler = keepBoth
	resp, err := c.loop.Do(&c.looped)
	if c.last == nil && err != nil && c.local == nil && c.Err() == nil {
		c.local = err
	}
	_ = resp // its body is in c.last already, or is http.NoBody
}

// roundTrip is one attempt: what http.Client has for a transport. It has no
// CloseIdleConnections, so that one call's failure cannot close the idle
// connections of all others.
type roundTrip struct{}

func (roundTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req.Context())
	a := c.nextAttempt()

	// 1. The breaker is asked, and told in any case: by default that the
	// attempt counts for nothing, so that not even a panic can wedge it.
	place, err := c.enter(a) // gate.go
	if err != nil {
		return nil, err
	}
	defer func() { place.end(a.verdict, a.retryAfter) }()

	// 2. The attempt's time limit begins, and covers everything that follows.
	a.begin(c) // attempt.go
	defer a.finish(c)

	// 3. The request is authorized and sent, with the same key and bytes as in every attempt.
	resp, err := a.send(c, a.request(req)) // auth.go

	// 4. The body is read here, bounded, or handed over if it is a stream.
	a.receive(c, resp, err)

	// 5. What happened is judged, once, for the caller, the loop and the breaker.
	a.judge(c) // judge.go
	return a.result()
}

var errAttemptFailed = errors.New("attempt failed")

// checkRetry is go-retryablehttp's question whether to go on. It never returns
// an error, since that would take the place of the real one.
func checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	c := callOf(ctx)
	if c.last != nil && c.last.refused {
		c.decision = decision{}
		return false, nil
	}
	if c.last == nil || c.last.decided {
		// net/http refused the request without asking the transport.
		c.local = err
		c.decision = decision{}
		return false, nil
	}
	c.last.decided = true
	now := time.Now()
	c.decision = c.decide(c.last, now)
	if c.decision.retry {
		if !c.decision.renewal {
			c.announceRetry(c.decision.wait)
		}
		c.loop.RetryWaitMin = c.decision.wait
	}
	return c.decision.retry, nil
}

// handedWait is go-retryablehttp's question how long to wait: as decided.
func handedWait(wait, _ time.Duration, _ int, _ *http.Response) time.Duration { return wait }

// keepBoth keeps go-retryablehttp from making an error of its own.
func keepBoth(resp *http.Response, err error, _ int) (*http.Response, error) {
	return resp, err
}

var _ retryablehttp.CheckRetry = checkRetry
