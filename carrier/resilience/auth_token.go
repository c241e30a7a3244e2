package resilience

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Token is an access token. It is never printed.
type Token struct {
	// Value is the token itself.
	Value string
	// Type is the word before it in Authorization; "" means "Bearer".
	Type string
	// Expires is when it ends; zero means unknown: it is used until it is refused.
	Expires time.Time
}

// Format writes "resilience.Token" for every verb.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "resilience.Token") }

// LogValue shows no more than Format.
func (t Token) LogValue() slog.Value { return slog.StringValue("resilience.Token") }

// MarshalJSON shows no more than Format.
func (t Token) MarshalJSON() ([]byte, error) { return []byte(`"resilience.Token"`), nil }

const (
	defaultTokenTimeout = 10 * time.Second
	refusedTokenWait    = 30 * time.Second // after the token endpoint refused the client
	firstTokenWait      = time.Second      // after it failed; doubled up to the one above
	longestTokenWait    = 10 * time.Minute // of a Retry-After from it
	renewalHold         = 30 * time.Second // no forced renewal after a new token was refused as well
)

// WithTokenSource sends "Authorization: Bearer" with a token from fetch, to the
// origin of the base URL and to no other: for grants and vaults that
// [WithOAuth2] does not know. fetch is called
//
//   - once at a time, however many calls wait for the token, each under its own
//     context; fetch's own context ends after 10 s;
//   - when four fifths of the token's life are over, while the calls go on with
//     the old token;
//   - when an answer is 401 although the token was the current one. The call is
//     then sent once more, beside what the retry policy allows. If the new token
//     is refused as well, the 401 is returned, and none is forced for 30 s.
//
// An error of fetch is remembered for 1 s, or up to 30 s if it comes again; or
// for as long as RetryAfter of a [TokenError] says. Calls that need a token
// fail with it in the meantime, not sent. fetch need not be safe for concurrent
// use, must obey its context, and must not send through this client, which would
// wait for the token.
func WithTokenSource(fetch func(context.Context) (Token, error)) Option {
	return clientOption(func(c *config) error {
		if fetch == nil {
			return invalid("WithTokenSource: the function is nil")
		}
		c.tokenSource, c.oauth2 = fetch, nil
		return nil
	})
}

// tokens holds the current token, and gets the next one: by one goroutine at a
// time, which ends with the token endpoint's answer, its time limit, or the
// client's end. No lock is held over it.
type tokens struct {
	fetch    func(context.Context) (Token, error)
	timeout  time.Duration
	redactor redactor // learns every token that comes

	mu        sync.Mutex
	current   *accessToken // nil: none
	failure   *TokenError  // of the last fetch; nil if it succeeded
	retryAt   time.Time    // when to ask again after a failure
	failures  int          // in a row
	holdUntil time.Time    // end of renewalHold
	fetching  *fetching    // nil: nothing is on its way
	closed    bool
}

// accessToken is a token as it is sent.
type accessToken struct {
	header []string
	renew  time.Time // when to look for the next; zero: when it is refused
	end    time.Time // when it is no longer sent; zero: when it is refused
}

// fetching is a token on its way.
type fetching struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
}

func (t *accessToken) usable(now time.Time) bool {
	return t != nil && (t.end.IsZero() || now.Before(t.end))
}

func (t *accessToken) due(now time.Time) bool {
	return !t.usable(now) || !t.renew.IsZero() && !now.Before(t.renew)
}

// get returns a token that can be sent, and waits for it if need be.
func (t *tokens) get(ctx context.Context) (*accessToken, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		now := time.Now()
		usable := t.current.usable(now)
		if t.current.due(now) && t.fetching == nil && !now.Before(t.retryAt) && (!t.closed || !usable) {
			t.start()
		}
		if usable {
			return t.current, nil
		}
		f := t.fetching
		if f == nil {
			return nil, t.failure.remembered(t.retryAt.Sub(now))
		}
		f.waiting++
		t.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		t.mu.Lock()
		f.waiting--
		if t.closed && f.waiting == 0 {
			f.cancel()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// start sends for a token. It is called with mu held.
func (t *tokens) start() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), t.timeout, &limitError{"token", t.timeout})
	t.fetching = &fetching{done: make(chan struct{}), cancel: cancel}
	go t.run(ctx, t.fetching)
}

// run fetches a token. Whatever the source does, those who wait hear of it.
func (t *tokens) run(ctx context.Context, f *fetching) {
	begun := time.Now()
	var token Token
	err := errors.New("the token source did not return")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the token source panicked: %v", p)
		}
		if limit := ownLimit(ctx); err != nil && limit != nil {
			err = limit
		}
		f.cancel()
		t.finish(f, token, err, begun)
	}()
	token, err = t.fetch(ctx)
}

// finish keeps the token, or the failure.
func (t *tokens) finish(f *fetching, token Token, err error, begun time.Time) {
	now := time.Now()
	next, problem := newAccessToken(token, begun, now)
	if err == nil {
		err = problem
	}
	if token.Value != "" {
		t.redactor.live.add(token.Value) // before anybody sends it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(f.done)
	t.fetching = nil
	if err == nil {
		t.current, t.failure, t.failures, t.retryAt = next, nil, 0, time.Time{}
		return
	}
	t.failures++
	t.failure = asTokenError(err, t.redactor)
	wait := refusedTokenWait
	if t.failure.mayPass() {
		wait = min(firstTokenWait<<min(t.failures-1, 10), refusedTokenWait)
	}
	t.retryAt = now.Add(max(wait, min(t.failure.RetryAfter, longestTokenWait)))
}

// newAccessToken works out how long a token that was asked for at begun is good for.
func newAccessToken(token Token, begun, now time.Time) (*accessToken, error) {
	scheme := token.Type
	if scheme == "" {
		scheme = "Bearer"
	}
	if token.Value == "" || !validHeaderName(scheme) || !validHeaderValue(token.Value) {
		return nil, errors.New("the token is empty, or no header can carry it")
	}
	t := &accessToken{header: []string{scheme + " " + token.Value}}
	if token.Expires.IsZero() {
		return t, nil
	}
	life := token.Expires.Sub(begun)
	t.renew = begun.Add(life / 5 * 4)
	t.end = token.Expires.Add(-min(life/10, 10*time.Second)) // it has to arrive before it ends
	if !t.usable(now) {
		return nil, errors.New("the token had expired when it came")
	}
	return t, nil
}

// refused is told of a 401. It reports whether another token may help: there
// is one already, or one will be fetched.
func (t *tokens) refused(used *accessToken, again bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	switch {
	case again:
		t.holdUntil = now.Add(renewalHold) // a new one did not help: it is not the token's age
		return false
	case t.current != used:
		return true
	case now.Before(t.holdUntil), t.closed:
		return false
	}
	t.current = nil
	return true
}

// close ends what is on its way, unless calls under way wait for it.
func (t *tokens) close() {
	t.mu.Lock()
	t.closed = true
	f := t.fetching
	if f == nil || f.waiting > 0 {
		t.mu.Unlock()
		return
	}
	f.cancel()
	t.mu.Unlock()
	<-f.done
}

// renews reports whether an attempt that was refused with its token is made
// once more with another: beside the retry policy, once in a call.
func (c *call) renews(a *attempt, now time.Time) bool {
	if a.token == nil || a.status != http.StatusUnauthorized {
		return false
	}
	if !c.doer.tokens.refused(a.token, c.renewed) || c.renewed || c.oneShot || c.Err() != nil || !c.fits(0, now) {
		return false
	}
	c.renewed = true
	c.counted--
	return true
}
