package resilience_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

const (
	clientID     = "client-1"
	clientSecret = "s3cret/of client+1"
)

// tokenCarrier is a carrier with a token endpoint, without a network. Its zero
// value gives tokens that live for an hour, and takes each until it is revoked.
type tokenCarrier struct {
	latency time.Duration                        // of the token endpoint
	slow    time.Duration                        // of the API
	answer  func(n int) (*http.Response, error)  // of the token endpoint; nil: a token
	api     func(r *http.Request) *http.Response // for a good token; nil: 200
	refuse  bool                                 // every token

	mu      sync.Mutex
	issued  int
	revoked int // tokens up to this one
	asked   []time.Time
	forms   []string
	basic   []string
	used    []string // tokens that came to the API
	bodies  []string
	keys    []string
}

func (c *tokenCarrier) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if r.URL.Path == "/oauth/token" {
		return c.token(r, string(body))
	}
	if err := pause(r, c.slow); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	c.used = append(c.used, token)
	c.bodies = append(c.bodies, string(body))
	c.keys = append(c.keys, r.Header.Get("Idempotency-Key"))
	n := 0
	if _, err := fmt.Sscanf(token, "token-%d-", &n); err != nil || n <= c.revoked || c.refuse {
		return newAnswer(401, `{"title":"no","code":"token_expired","detail":"you sent `+token+`"}`, "Www-Authenticate", `Bearer error="invalid_token"`), nil
	}
	if c.api != nil {
		return c.api(r), nil
	}
	return newAnswer(map[string]int{"GET": 200, "POST": 201}[r.Method], `{"token":"`+token+`"}`), nil
}

func (c *tokenCarrier) token(r *http.Request, form string) (*http.Response, error) {
	c.mu.Lock()
	c.asked = append(c.asked, time.Now())
	c.forms = append(c.forms, form)
	c.basic = append(c.basic, r.Header.Get("Authorization"))
	n := len(c.asked)
	c.mu.Unlock()
	if err := pause(r, c.latency); err != nil {
		return nil, err
	}
	if c.answer != nil {
		if resp, err := c.answer(n); resp != nil || err != nil {
			return resp, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issued++
	return newAnswer(200, fmt.Sprintf(`{"access_token":%q,"token_type":"bearer","expires_in":3600}`, tokenName(c.issued))), nil
}

func tokenName(n int) string { return fmt.Sprintf("token-%d-abcdefgh", n) }

func (c *tokenCarrier) revoke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked = c.issued
}

// counts are the requests to the token endpoint, and to the API.
func (c *tokenCarrier) counts() (tokens, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked), len(c.used)
}

var oauth = resilience.WithOAuth2(clientID, clientSecret, resilience.OAuth2Config{TokenURL: "/oauth/token"})

func TestTokenIsSharedAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: 200 * time.Millisecond}
		d := connect(t, c, oauth)
		start := time.Now()
		step := func(at, takes time.Duration, token, fetched int) {
			t.Helper()
			time.Sleep(at - time.Since(start))
			before := time.Now()
			v, err := track(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(before); v["token"] != tokenName(token) || took != takes {
				t.Errorf("at %s: %v was sent after %s, want token %d after %s", at, v["token"], took, token, takes)
			}
			time.Sleep(time.Second) // for what goes on behind
			if n, _ := c.counts(); n != fetched {
				t.Errorf("at %s: %d tokens were asked for, want %d", at, n, fetched)
			}
		}
		step(0, 200*time.Millisecond, 1, 1)
		step(10*time.Minute, 0, 1, 1)
		step(48*time.Minute-2*time.Second, 0, 1, 1)
		step(48*time.Minute, 0, 1, 2) // four fifths: the next is fetched, while this one is sent
		step(49*time.Minute, 0, 2, 2)
		step(96*time.Minute, 0, 2, 3)
		step(6*time.Hour, 200*time.Millisecond, 4, 4) // it ended long ago
	})
}

func TestTokenLife(t *testing.T) {
	for answer, lives := range map[string]time.Duration{ // 0: until it is refused
		`3600`: time.Hour, `"3600"`: time.Hour, `" 3599 "`: 3599 * time.Second, `14399.5`: 14399500 * time.Millisecond,
		`1e3`: 1000 * time.Second, `"1"`: time.Second, `0`: 0, `-1`: 0, `"0"`: 0, `null`: 0, `"soon"`: 0, `{}`: 0, `[3600]`: 0,
		`true`: 0, `1e400`: 0, `99999999999999`: 366 * 24 * time.Hour, ``: 0,
	} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life := `,"expires_in":` + answer
				if answer == "" {
					life = ""
				}
				c := &tokenCarrier{answer: func(n int) (*http.Response, error) {
					return newAnswer(200, fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer"%s}`, tokenName(n), life)), nil
				}}
				d := connect(t, c, oauth)
				fetched := func(want int) {
					t.Helper()
					if _, err := track(t.Context(), d); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if n, _ := c.counts(); n != want {
						t.Errorf("after %s: %d tokens, want %d", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), n, want)
					}
				}
				fetched(1)
				if lives == 0 {
					time.Sleep(400 * 24 * time.Hour)
					fetched(1)
					return
				}
				time.Sleep(lives/5*4 - time.Millisecond)
				fetched(1)
				time.Sleep(2 * time.Millisecond)
				fetched(2)
			})
		})
	}
}

// 500 calls at once need one token, and none waits longer than it takes.
func TestTokenStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: 200 * time.Millisecond, slow: 50 * time.Millisecond}
		d := connect(t, c, oauth)
		start := time.Now()
		all(t, 500, func() error { _, err := track(t.Context(), d); return err })
		if took := time.Since(start); took != 250*time.Millisecond {
			t.Errorf("took %s, want 250ms", took)
		}
		if tokens, calls := c.counts(); tokens != 1 || calls != 500 {
			t.Errorf("%d tokens for %d requests, want 1 for 500", tokens, calls)
		}

		// All of them are refused with a token that was good a moment ago.
		c.revoke()
		all(t, 500, func() error { _, err := track(t.Context(), d); return err })
		if tokens, calls := c.counts(); tokens != 2 || calls != 1500 {
			t.Errorf("%d tokens for %d requests, want 2 for 1500", tokens, calls)
		}

		// Its life is over.
		time.Sleep(2 * time.Hour)
		all(t, 500, func() error { _, err := track(t.Context(), d); return err })
		if tokens, calls := c.counts(); tokens != 3 || calls != 2000 {
			t.Errorf("%d tokens for %d requests, want 3 for 2000", tokens, calls)
		}
	})
}

// all makes n calls at once, and fails the test for any that fails.
func all(t *testing.T, n int, call func() error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		wg.Go(func() { errs <- call() })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A call that is refused with the current token is sent again with a new one:
// the same bytes and key, beside what retry policy and budget allow.
func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []resilience.Option
	}{
		{"defaults", nil},
		{"one attempt", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 1})}},
		{"no retry", []resilience.Option{resilience.WithoutRetry()}},
		{"no breaker", []resilience.Option{resilience.WithoutBreaker()}},
		{"an empty budget", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 0.001, Refill: -1})}},
		{"401 among the statuses", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Statuses: []int{401, 503}, MaxAttempts: 1})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retries := 0
				c := &tokenCarrier{}
				opts := append([]resilience.Option{oauth}, test.opts...)
				d := connect(t, c, opts...)
				if _, err := track(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				c.revoke()
				var info resilience.CallInfo
				if _, err := ship(t.Context(), d, `{"reference":"order-1"}`, resilience.WithIdempotencyKey("key-1"), resilience.WithCallInfo(&info)); err != nil {
					t.Fatal(err)
				}
				if info.Attempts != 2 || info.StatusCode != 201 || retries != 0 {
					t.Errorf("%d attempts, %d; want 2, 201", info.Attempts, info.StatusCode)
				}
				if got := strings.Join(c.used, " "); got != tokenName(1)+" "+tokenName(1)+" "+tokenName(2) {
					t.Errorf("sent %s", got)
				}
				if c.bodies[1] != c.bodies[2] || c.bodies[1] == "" || c.keys[1] != "key-1" || c.keys[2] != "key-1" {
					t.Errorf("bodies %q, keys %q", c.bodies[1:], c.keys[1:])
				}
				if d.BreakerState("shipments") != resilience.BreakerClosed {
					t.Error("the breaker is open")
				}
			})
		})
	}
}

// The renewal takes nothing from the retries: the attempts that the policy
// allows follow it.
func TestRenewalIsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, retries := 0, 0
		c := &tokenCarrier{api: func(*http.Request) *http.Response {
			if calls++; calls > 1 && calls < 4 {
				return newAnswer(503, `{}`)
			}
			return newAnswer(200, `{}`)
		}}
		d := connect(t, c, oauth, resilience.WithRetry(resilience.RetryPolicy{OnRetry: func(a resilience.Attempt, _ time.Duration) {
			retries++
			if a.StatusCode != 503 {
				t.Errorf("OnRetry is told of a %d", a.StatusCode)
			}
		}}))
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		c.revoke()
		var info resilience.CallInfo
		if _, err := track(t.Context(), d, resilience.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		if info.Attempts != 4 || retries != 2 {
			t.Errorf("%d attempts, %d retries; want 4, 2", info.Attempts, retries)
		}
	})
}

// If the new token is refused as well, it is not its age: the 401 is returned,
// and nothing is renewed for a while, however many calls there are.
func TestTokensThatNeverDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{refuse: true, latency: 50 * time.Millisecond}
		d := connect(t, c, oauth)
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrUnauthorized)
		e := failureOf(t, err)
		if e.Attempts != 2 || e.Outcome != resilience.OutcomeRejected || e.AuthReason() != resilience.AuthExpired {
			t.Errorf("%d attempts, %v, %v", e.Attempts, e.Outcome, e.AuthReason())
		}
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				_, err := track(t.Context(), d)
				is(t, err, resilience.ErrUnauthorized)
			})
		}
		wg.Wait()
		if tokens, calls := c.counts(); tokens != 2 || calls != 502 {
			t.Errorf("%d tokens for %d requests, want 2 for 502", tokens, calls)
		}
		time.Sleep(31 * time.Second)
		c.mu.Lock()
		c.refuse, c.revoked = false, c.issued
		c.mu.Unlock()
		if _, err := track(t.Context(), d); err != nil {
			t.Errorf("after a while: %v", err)
		}
	})
}

func TestNoRenewalWhereABodyCannotBeSentAgain(t *testing.T) {
	c := &tokenCarrier{refuse: true}
	d := connect(t, c, oauth)
	req, _ := http.NewRequest("POST", memoryURL+"/shipments", io.NopCloser(strings.NewReader(`{}`)))
	resp, err := d.Do(req)
	if err != nil || resp.StatusCode != 401 {
		t.Fatalf("got %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if _, calls := c.counts(); calls != 1 {
		t.Errorf("%d requests, want 1", calls)
	}
}

func TestRenewalOfOtherWaysIn(t *testing.T) {
	for name, call := range map[string]func(*resilience.Doer) error{
		"Do": func(d *resilience.Doer) error {
			req, _ := http.NewRequest("GET", memoryURL+"/tracking/BK1001TR", nil)
			resp, err := d.Do(req)
			if err == nil {
				err = resp.Body.Close()
				if resp.StatusCode != 200 {
					return fmt.Errorf("status %d", resp.StatusCode)
				}
			}
			if req.Header.Get("Authorization") != "" {
				return errors.New("the caller's request was changed")
			}
			return err
		},
		"stream": func(d *resilience.Doer) error {
			s, err := label(context.Background(), d)
			if err == nil {
				err = s.Close()
			}
			return err
		},
		"link": func(d *resilience.Doer) error {
			s, err := d.Fetch(context.Background(), "/v1/x")
			if err == nil {
				err = s.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &tokenCarrier{api: func(*http.Request) *http.Response { return newAnswer(200, `x`, "Content-Type", "application/pdf") }}
			d := connect(t, c, oauth)
			for range 2 {
				if err := call(d); err != nil {
					t.Fatal(err)
				}
				c.revoke()
			}
			if tokens, calls := c.counts(); tokens != 2 || calls != 3 {
				t.Errorf("%d tokens for %d requests, want 2 for 3", tokens, calls)
			}
		})
	}
}

// What the token endpoint says is told apart, and the call was not sent.
func TestTokenEndpointFailures(t *testing.T) {
	type row struct {
		Name       string
		Status     int
		Body       string
		RetryAfter string
		Is, IsNot  []string
		Code       string
		Reason     string
		Asked      int // how often within the call
	}
	raw, err := os.ReadFile("testdata/oauth_failures.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	sentinels := map[string]error{
		"unauthorized": resilience.ErrUnauthorized, "forbidden": resilience.ErrForbidden, "rate limited": resilience.ErrRateLimited,
		"unavailable": resilience.ErrUnavailable, "timeout": resilience.ErrTimeout, "invalid request": resilience.ErrInvalidRequest,
		"malformed": resilience.ErrMalformedResponse,
	}
	for _, r := range rows {
		t.Run(r.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &tokenCarrier{answer: func(int) (*http.Response, error) {
					return newAnswer(r.Status, strings.ReplaceAll(r.Body, "SECRET", clientSecret), "Retry-After", r.RetryAfter, "Location", "/elsewhere"), nil
				}}
				d := connect(t, c, oauth)
				_, err := ship(t.Context(), d, `{}`)
				e := failureOf(t, err)
				var token *resilience.TokenError
				if !errors.As(err, &token) {
					t.Fatalf("no TokenError: %v", err)
				}
				for name, sentinel := range sentinels {
					want := false
					for _, s := range r.Is {
						want = want || s == name
					}
					if got := errors.Is(err, sentinel); got != want {
						t.Errorf("%v: is %s: %v, want %v", err, name, got, want)
					}
				}
				isNot(t, err, resilience.ErrOutcomeUnknown, resilience.ErrNotFound, context.DeadlineExceeded, context.Canceled)
				if e.Outcome != resilience.OutcomeNotSent || e.StatusCode != 0 {
					t.Errorf("%v, status %d; want not sent, 0", e.Outcome, e.StatusCode)
				}
				var redirect *resilience.RedirectError
				if got := errors.As(err, &redirect); got != (r.Status/100 == 3) {
					t.Errorf("%v: a redirect: %v", err, got)
				}
				if token.StatusCode != r.Status || token.Code != r.Code || e.AuthReason().String() != r.Reason {
					t.Errorf("status %d, code %q, %v; want %d, %q, %s", token.StatusCode, token.Code, e.AuthReason(), r.Status, r.Code, r.Reason)
				}
				if tokens, calls := c.counts(); tokens != r.Asked || calls != 0 {
					t.Errorf("%d token requests and %d calls, want %d and 0", tokens, calls, r.Asked)
				}
				for _, text := range []string{err.Error(), token.Error(), token.Description, fmt.Sprintf("%+v %#v", token, token)} {
					if strings.Contains(text, clientSecret) || strings.ContainsAny(text, "\r\n") {
						t.Errorf("%q shows the secret, or has several lines", text)
					}
				}
				if d.BreakerState("shipments") != resilience.BreakerClosed {
					t.Error("the token endpoint's failure was held against the API")
				}
			})
		})
	}
}

// A refusal is remembered, so that a wrong secret does not knock at the token
// endpoint with each call.
func TestTokenFailureIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{answer: func(n int) (*http.Response, error) {
			if n < 3 {
				return newAnswer(401, `{"error":"invalid_client"}`), nil
			}
			return nil, nil
		}}
		d := connect(t, c, oauth)
		for at, want := range []int{1, 1, 1, 2, 2, 2, 3} {
			_, err := track(t.Context(), d)
			if n, _ := c.counts(); n != want {
				t.Errorf("after %d s: asked %d times, want %d", at*10, n, want)
			}
			if want < 3 {
				is(t, err, resilience.ErrUnauthorized)
				if e := failureOf(t, err); e.RetryAfter != time.Duration(30-at%3*10)*time.Second {
					t.Errorf("after %d s: retry after %s", at*10, e.RetryAfter)
				}
			} else if err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestTokenFailureThatPasses(t *testing.T) {
	for name, failure := range map[string]func() (*http.Response, error){
		"503":             func() (*http.Response, error) { return newAnswer(503, `{}`), nil },
		"503 with a wish": func() (*http.Response, error) { return newAnswer(503, `{}`, "Retry-After", "3"), nil },
		"429":             func() (*http.Response, error) { return newAnswer(429, `{}`), nil },
		"HTML with 200":   func() (*http.Response, error) { return newAnswer(200, `<html>`, "Content-Type", "text/html"), nil },
		"no answer":       func() (*http.Response, error) { return nil, errors.New("connection reset by peer") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &tokenCarrier{answer: func(n int) (*http.Response, error) {
					if n == 1 {
						return failure()
					}
					return nil, nil
				}}
				d := connect(t, c, oauth)
				start := time.Now()
				if _, err := ship(t.Context(), d, `{}`); err != nil {
					t.Fatal(err)
				}
				least := time.Second
				if strings.Contains(name, "wish") {
					least = 3 * time.Second
				}
				if took := time.Since(start); took < least || took > 2*least {
					t.Errorf("took %s, want about %s", took, least)
				}
			})
		})
	}
}

// While the old token is good, a failed renewal is nobody's business.
func TestFailedRenewalIsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{answer: func(n int) (*http.Response, error) {
			if n > 1 && n < 5 {
				return newAnswer(500, `{}`), nil
			}
			return nil, nil
		}}
		d := connect(t, c, oauth)
		for range 70 {
			if _, err := track(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if n, _ := c.counts(); n != 5 {
			t.Errorf("%d tokens were asked for, want 5", n)
		}
	})
}

func TestTokenEndpointHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: time.Hour}
		d := connect(t, c, resilience.WithOAuth2(clientID, clientSecret, resilience.OAuth2Config{TokenURL: "/oauth/token", Timeout: 3 * time.Second}),
			resilience.WithoutRetry())
		start := time.Now()
		_, err := ship(t.Context(), d, `{}`)
		is(t, err, resilience.ErrTimeout)
		isNot(t, err, resilience.ErrUnavailable, context.DeadlineExceeded, resilience.ErrOutcomeUnknown)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %s", e.Outcome, time.Since(start))
		}

		// The attempt's time limit holds as well.
		time.Sleep(time.Minute)
		_, err = track(t.Context(), d, resilience.WithAttemptTimeout(time.Second))
		is(t, err, resilience.ErrTimeout)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Timeout != time.Second {
			t.Errorf("%v, %s", e.Outcome, e.Timeout)
		}
	})
}

// A caller who leaves takes nobody along.
func TestCallerLeavesWhileTokenIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: 2 * time.Second}
		d := connect(t, c, oauth)
		gone := errors.New("the user closed the page")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := make(chan error)
		go func() { _, err := ship(ctx, d, `{}`); first <- err }()
		synctest.Wait()
		second := make(chan error)
		go func() { _, err := ship(t.Context(), d, `{}`); second <- err }()
		time.Sleep(time.Second)
		cancel(gone)
		err := <-first
		is(t, err, context.Canceled, gone)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent {
			t.Errorf("%v, want not sent", e.Outcome)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
		if tokens, calls := c.counts(); tokens != 1 || calls != 1 {
			t.Errorf("%d tokens, %d calls, want 1 and 1", tokens, calls)
		}

		c.revoke()
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		_, err = ship(ctx, d, `{}`)
		is(t, err, context.DeadlineExceeded, resilience.ErrTimeout)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeRejected { // the first attempt was, by a 401
			t.Errorf("%v, want rejected", e.Outcome)
		}
	})
}

func TestCloseEndsTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: 5 * time.Second}
		d := connect(t, c, oauth)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := track(ctx, d)
		is(t, err, context.DeadlineExceeded)
		start := time.Now()
		_ = d.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{latency: 5 * time.Second}
		d := connect(t, c, oauth)
		done := make(chan error)
		go func() { _, err := track(t.Context(), d); done <- err }()
		synctest.Wait()
		_ = d.Close()
		if err := <-done; err != nil {
			t.Errorf("a call under way: %v", err)
		}
		if tokens, _ := c.counts(); tokens != 1 {
			t.Errorf("%d tokens were asked for, want 1", tokens)
		}
	})
}

func TestTokenRequest(t *testing.T) {
	for _, test := range []struct {
		name   string
		config resilience.OAuth2Config
		form   string
		basic  bool
	}{
		{"defaults", resilience.OAuth2Config{}, "grant_type=client_credentials", true},
		{"scopes", resilience.OAuth2Config{Scopes: []string{"ship", "track"}}, "grant_type=client_credentials&scope=ship+track", true},
		{"parameters", resilience.OAuth2Config{Parameters: url.Values{"audience": {"a b"}}}, "audience=a+b&grant_type=client_credentials", true},
		{"secret in the body", resilience.OAuth2Config{SecretInBody: true}, "client_id=client-1&client_secret=s3cret%2Fof+client%2B1&grant_type=client_credentials", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &tokenCarrier{}
			test.config.TokenURL = "https://api.carrier.example/oauth/token"
			option := resilience.WithOAuth2(clientID, clientSecret, test.config)
			for range 2 { // an option may be used twice
				d := connect(t, c, option)
				if _, err := track(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			basic := ""
			if test.basic {
				basic = "Basic " + base64.StdEncoding.EncodeToString([]byte("client-1:s3cret%2Fof+client%2B1"))
			}
			for i := range c.forms {
				if c.forms[i] != test.form || c.basic[i] != basic {
					t.Errorf("got %q, %q; want %q, %q", c.forms[i], c.basic[i], test.form, basic)
				}
			}
		})
	}
}

func TestOAuth2OptionsAreChecked(t *testing.T) {
	good := resilience.OAuth2Config{TokenURL: "/oauth/token"}
	base := resilience.WithBaseURL(memoryURL)
	source := resilience.WithTokenSource(func(context.Context) (resilience.Token, error) { return resilience.Token{}, nil })
	for name, opts := range map[string][]resilience.Option{
		"no id":                   {base, resilience.WithOAuth2("", "s", good)},
		"no secret":               {base, resilience.WithOAuth2("c", "", good)},
		"no URL":                  {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{})},
		"no base for a relative":  {resilience.WithOAuth2("c", "s", good)},
		"plain http, no base":     {resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "http://api.carrier.example/oauth/token"})},
		"plain http":              {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "http://api.carrier.example/oauth/token"})},
		"user info":               {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "https://c:s@api.carrier.example/oauth/token"})},
		"a fragment":              {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "/oauth/token#x"})},
		"another scheme":          {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "ftp://api.carrier.example/oauth/token"})},
		"nonsense":                {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "https://[::bad"})},
		"a reserved parameter":    {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "/t", Parameters: url.Values{"grant_type": {"password"}}})},
		"a negative timeout":      {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "/t", Timeout: -1})},
		"no token source":         {base, resilience.WithTokenSource(nil)},
		"no signer":               {base, resilience.WithSigner(nil)},
		"tokens and basic":        {base, resilience.WithOAuth2("c", "s", good), resilience.WithBasicAuth("u", "p")},
		"tokens and bearer":       {base, source, resilience.WithBearerToken("t")},
		"a bearer token of space": {base, resilience.WithBearerToken(" ")},
		"an empty bearer token":   {base, resilience.WithBearerToken("")},
		"a colon in the user":     {base, resilience.WithBasicAuth("u:v", "p")},
		"no user and password":    {base, resilience.WithBasicAuth("", "")},
		"a line break":            {base, resilience.WithBasicAuth("u", "p\r\n")},
		"behind the guard":        {base, resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: "https://169.254.169.254/t"}), resilience.WithEgressGuard(resilience.EgressPolicy{})},
	} {
		_, err := resilience.New(opts...)
		if is(t, err, resilience.ErrInvalidRequest); err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "c:s") {
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
}

// A source of the user's may do whatever it likes; the calls hear of it.
func TestTokenSources(t *testing.T) {
	for name, test := range map[string]struct {
		fetch func(context.Context) (resilience.Token, error)
		text  string // of the error
	}{
		"an error":     {func(context.Context) (resilience.Token, error) { return resilience.Token{}, errors.New("vault sealed") }, "no access token: vault sealed"},
		"a panic":      {func(context.Context) (resilience.Token, error) { panic("oh no") }, "no access token: the token source panicked: oh no"},
		"nothing":      {func(context.Context) (resilience.Token, error) { return resilience.Token{}, nil }, "no access token: the token is empty, or no header can carry it"},
		"a line break": {func(context.Context) (resilience.Token, error) { return resilience.Token{Value: "a\nb"}, nil }, "no access token: the token is empty, or no header can carry it"},
		"an ended token": {func(context.Context) (resilience.Token, error) {
			return resilience.Token{Value: "abcdefgh", Expires: time.Now()}, nil
		}, "no access token: the token had expired when it came"},
		"no end": {func(ctx context.Context) (resilience.Token, error) {
			<-ctx.Done()
			return resilience.Token{}, ctx.Err()
		}, "no access token: token time limit of 10s ran out"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &tokenCarrier{}
				d := connect(t, c, resilience.WithTokenSource(test.fetch), resilience.WithoutRetry(), resilience.WithAttemptTimeout(20*time.Second))
				_, err := track(t.Context(), d)
				e := failureOf(t, err)
				if e.Outcome != resilience.OutcomeNotSent || !strings.Contains(err.Error(), test.text) {
					t.Errorf("%v: %v, want %q", e.Outcome, err, test.text)
				}
				isNot(t, err, context.DeadlineExceeded, context.Canceled)
				if _, calls := c.counts(); calls != 0 {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
	t.Run("another type", func(t *testing.T) {
		rt := always(200, `{}`)
		var got string
		inner := rt.answer
		rt.answer = func(n int, r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Authorization")
			return inner(n, r)
		}
		d := connect(t, rt, resilience.WithTokenSource(func(context.Context) (resilience.Token, error) {
			return resilience.Token{Value: "abc", Type: "ShippoToken"}, nil
		}))
		if _, err := track(t.Context(), d); err != nil || got != "ShippoToken abc" {
			t.Errorf("sent %q, %v", got, err)
		}
	})
}

// The token goes to the origin of the base URL alone.
func TestTokenStaysAtTheOrigin(t *testing.T) {
	c := &tokenCarrier{refuse: true}
	d := connect(t, c, oauth)
	req, _ := http.NewRequest("GET", "https://other.example/v1/x", nil)
	resp, err := d.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if tokens, calls := c.counts(); tokens != 0 || calls != 1 || c.used[0] != "" {
		t.Errorf("%d tokens, %q sent", tokens, c.used)
	}
}

// A token costs a call no allocation.
func TestTokenAllocatesNothing(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	rt := answering(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: jsonHeader, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader([]byte(`{}`))), ContentLength: 2}, nil
	})
	measure := func(auth resilience.Option) float64 {
		d := connect(t, rt, auth)
		ctx := t.Context()
		return testing.AllocsPerRun(300, func() {
			if _, err := track(ctx, d); err != nil {
				t.Fatal(err)
			}
		})
	}
	key := measure(resilience.WithCredential("X-Api-Key", "secret"))
	token := measure(resilience.WithTokenSource(func(context.Context) (resilience.Token, error) {
		return resilience.Token{Value: "abc", Expires: time.Now().Add(time.Hour)}, nil
	}))
	if token > key {
		t.Errorf("%.0f allocations with a token, %.0f with a key", token, key)
	}
}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

// An answer of the token endpoint that is not whole is no token, and worth another try.
func TestTokenAnswerWithoutItsBody(t *testing.T) {
	for name, spoil := range map[string]func(*http.Response){
		"cut": func(r *http.Response) {
			r.Body = cutBody{strings.NewReader(`{"access_token":"to`), io.ErrUnexpectedEOF}
		},
		"no body": func(r *http.Response) { r.Body = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &tokenCarrier{answer: func(int) (*http.Response, error) {
					a := newAnswer(200, `{}`)
					spoil(a)
					a.ContentLength = -1
					return a, nil
				}}
				_, err := ship(t.Context(), connect(t, c, oauth), `{}`)
				var token *resilience.TokenError
				if e := failureOf(t, err); !errors.As(err, &token) || e.Outcome != resilience.OutcomeNotSent {
					t.Errorf("%v, %v; want a TokenError, not sent", e.Outcome, err)
				}
				if tokens, calls := c.counts(); tokens != 3 || calls != 0 {
					t.Errorf("%d token requests and %d calls, want 3 and 0", tokens, calls)
				}
			})
		})
	}
}

// aging is a source of tokens that live for 100 s: due after 80, and not sent
// in the last 10.
func aging(asked *int) resilience.Option {
	return resilience.WithTokenSource(func(context.Context) (resilience.Token, error) {
		*asked++
		return resilience.Token{Value: tokenName(*asked), Expires: time.Now().Add(100 * time.Second)}, nil
	})
}

// A token is sent until it is so old that it might end on its way.
func TestTokenIsNotSentAtTheEndOfItsLife(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		used  string
		asked int
	}{
		{79 * time.Second, tokenName(1), 1},
		{81 * time.Second, tokenName(1), 2}, // and the next is on its way
		{89 * time.Second, tokenName(1), 2},
		{91 * time.Second, tokenName(2), 2},
		{99 * time.Second, tokenName(2), 2},
		{101 * time.Second, tokenName(2), 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, asked := &tokenCarrier{}, 0
			d := connect(t, c, aging(&asked))
			for range 2 {
				if _, err := track(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.after)
			}
			synctest.Wait()
			if c.used[1] != test.used || asked != test.asked {
				t.Errorf("after %v: sent %s, and %d tokens were asked for; want %s, %d", test.after, c.used[1], asked, test.used, test.asked)
			}
		})
	}
}

// A closed client gets a token only for a call under way that cannot do without.
func TestTokenOfAClosedClient(t *testing.T) {
	for _, test := range []struct {
		wait  string // between the attempts, in seconds
		asked int
	}{{"85", 1}, {"95", 2}} {
		synctest.Test(t, func(t *testing.T) {
			asked, calls := 0, 0
			c := &tokenCarrier{api: func(*http.Request) *http.Response {
				if calls++; calls == 1 {
					return newAnswer(503, ``, "Retry-After", test.wait)
				}
				return newAnswer(200, `{}`)
			}}
			d := connect(t, c, aging(&asked), resilience.WithTimeout(time.Hour), resilience.WithRetry(resilience.RetryPolicy{MaxRetryAfter: time.Hour}))
			time.AfterFunc(time.Second, func() { _ = d.Close() })
			if _, err := track(t.Context(), d); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if asked != test.asked {
				t.Errorf("after %s s: %d tokens were asked for, want %d", test.wait, asked, test.asked)
			}
		})
	}
}

// The fetch outlives a caller who leaves, for the sake of the next. On a closed
// client it ends with the last one who waits for it.
func TestFetchOfATokenThatNobodyWaitsFor(t *testing.T) {
	t.Run("open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &tokenCarrier{latency: 2 * time.Second}
			d := connect(t, c, oauth)
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			_, err := track(ctx, d)
			is(t, err, context.DeadlineExceeded)
			time.Sleep(2 * time.Second)
			if _, err := track(t.Context(), d); err != nil {
				t.Error(err)
			}
			if tokens, _ := c.counts(); tokens != 1 {
				t.Errorf("%d tokens were asked for, want 1", tokens)
			}
		})
	})
	t.Run("closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var ended []time.Duration
			d := connect(t, &tokenCarrier{}, resilience.WithoutRetry(), resilience.WithTokenSource(func(ctx context.Context) (resilience.Token, error) {
				<-ctx.Done()
				ended = append(ended, time.Since(begun))
				return resilience.Token{}, ctx.Err()
			}))
			var wg sync.WaitGroup
			for i := range 3 { // they leave after 2 s, 3 s and 4 s
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i+2)*time.Second)
				defer leave()
				wg.Go(func() {
					_, err := track(ctx, d)
					is(t, err, context.DeadlineExceeded)
				})
			}
			time.Sleep(time.Second)
			_ = d.Close()
			wg.Wait()
			synctest.Wait()
			if len(ended) != 1 || ended[0] != 4*time.Second {
				t.Errorf("the fetch ended after %v, want once, after 4s", ended)
			}
		})
	})
}

// With no time for another attempt the 401 is the answer.
func TestNoRenewalWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenCarrier{slow: 970 * time.Millisecond}
		d := connect(t, c, oauth, resilience.WithTimeout(time.Second))
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		c.revoke()
		begun := time.Now()
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrUnauthorized)
		isNot(t, err, resilience.ErrTimeout)
		if e := failureOf(t, err); e.Attempts != 1 || time.Since(begun) != 970*time.Millisecond {
			t.Errorf("%d attempts in %v", e.Attempts, time.Since(begun))
		}
	})
}

func TestTokenErrorTexts(t *testing.T) {
	for _, test := range []struct {
		err  resilience.TokenError
		want string
	}{
		{resilience.TokenError{}, "no access token"},
		{resilience.TokenError{StatusCode: 200}, "no access token"},
		{resilience.TokenError{StatusCode: 503}, "no access token: 503 Service Unavailable"},
		{resilience.TokenError{StatusCode: 401, Code: "invalid_client"}, "no access token: 401 Unauthorized (invalid_client)"},
		{resilience.TokenError{Code: "odd\ncode"}, "no access token (oddcode)"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// What a token endpoint's status and code mean.
func TestTokenErrorSentinels(t *testing.T) {
	all := map[string]error{
		"unauthorized": resilience.ErrUnauthorized, "forbidden": resilience.ErrForbidden, "rate limited": resilience.ErrRateLimited,
		"unavailable": resilience.ErrUnavailable, "timeout": resilience.ErrTimeout, "invalid": resilience.ErrInvalidRequest,
		"not found": resilience.ErrNotFound,
	}
	for _, test := range []struct {
		status int
		code   string
		is     string
	}{
		{0, "", "unavailable"}, {200, "", "unavailable"}, {299, "", "unavailable"}, {300, "", ""}, {399, "", ""},
		{400, "", "invalid"}, {400, "invalid_client", "unauthorized"}, {400, "invalid_scope", "forbidden"},
		{401, "", "unauthorized"}, {401, "unauthorized_client", "forbidden"}, {401, "invalid_grant", "unauthorized"},
		{403, "", "forbidden"}, {403, "access_denied", "forbidden"}, {403, "invalid_grant", "forbidden unauthorized"},
		{404, "invalid_client", ""}, {408, "", "timeout"}, {429, "", "rate limited"}, {429, "access_denied", "rate limited"},
		{500, "invalid_client", "unavailable"}, {503, "", "unavailable"}, {504, "", "timeout unavailable"},
	} {
		err := &resilience.TokenError{StatusCode: test.status, Code: test.code}
		var is []string
		for name, sentinel := range all {
			if errors.Is(err, sentinel) {
				is = append(is, name)
			}
		}
		slices.Sort(is)
		if got := strings.Join(is, " "); got != test.is {
			t.Errorf("%d %s: is %q, want %q", test.status, test.code, got, test.is)
		}
	}
}

// A token endpoint that cannot be reached is asked again, unless it never will be.
func TestTokenEndpointOutOfReach(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		asked int
	}{
		"reset":        {errors.New("connection reset by peer"), 3},
		"no such host": {&net.DNSError{Err: "no such host", IsNotFound: true}, 1},
		"not trusted":  {x509.UnknownAuthorityError{}, 1},
		"blocked":      {fmt.Errorf("dial: %w", resilience.ErrBlocked), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &tokenCarrier{answer: func(int) (*http.Response, error) { return nil, test.err }}
				_, err := track(t.Context(), connect(t, c, oauth))
				if got, blocked := errors.Is(err, resilience.ErrBlocked), errors.Is(test.err, resilience.ErrBlocked); got != blocked {
					t.Errorf("%v: blocked %v, want %v", err, got, blocked)
				}
				if tokens, calls := c.counts(); tokens != test.asked || calls != 0 {
					t.Errorf("%d token requests and %d calls, want %d and 0", tokens, calls, test.asked)
				}
			})
		})
	}
}

// A token URL is absolute, or relative to the base URL.
func TestTokenURL(t *testing.T) {
	for _, test := range []struct{ base, url, want string }{
		{"https://api.carrier.example/v1", "oauth/token", "https://api.carrier.example/v1/oauth/token"},
		{"https://api.carrier.example/v1", "/oauth/token", "https://api.carrier.example/oauth/token"},
		{"https://api.carrier.example/v1", "https://login.carrier.example/t?x=y", "https://login.carrier.example/t?x=y"},
		{"http://127.0.0.1:8080", "/t", "http://127.0.0.1:8080/t"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8081/t", "http://127.0.0.1:8081/t"},
	} {
		asked := ""
		rt := answering(func(r *http.Request) (*http.Response, error) {
			if asked == "" {
				asked = r.URL.String()
				return newAnswer(200, `{"access_token":"abcdefgh"}`), nil
			}
			return newAnswer(200, `{}`), nil
		})
		d := connectTo(t, test.base, resilience.WithTransport(rt), resilience.WithOAuth2("c", "s", resilience.OAuth2Config{TokenURL: test.url}))
		if _, err := track(t.Context(), d); err != nil || asked != test.want {
			t.Errorf("%s below %s: %s was asked, %v; want %s", test.url, test.base, asked, err, test.want)
		}
	}
}
