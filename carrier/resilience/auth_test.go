package resilience_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

func TestAuthReasons(t *testing.T) {
	raw, err := os.ReadFile("testdata/auth_reasons.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Status    int
		Body      string
		Challenge []string
		Want      string
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range rows {
		resp := func(int, *http.Request) (*http.Response, error) {
			a := newAnswer(r.Status, r.Body)
			a.Header["Www-Authenticate"] = r.Challenge
			return a, nil
		}
		_, err := track(t.Context(), connect(t, &memoryCarrier{answer: resp}, resilience.WithoutRetry()))
		e := failureOf(t, err)
		if got := e.AuthReason().String(); got != r.Want {
			t.Errorf("%d %s %q: %s, want %s", r.Status, r.Body, r.Challenge, got, r.Want)
		}
		if got := errors.Is(err, resilience.ErrUnauthorized); got != (r.Status == 401) {
			t.Errorf("%d is ErrUnauthorized: %v", r.Status, got)
		}
		if got := errors.Is(err, resilience.ErrForbidden); got != (r.Status == 403) {
			t.Errorf("%d is ErrForbidden: %v", r.Status, got)
		}
		seen[r.Want]++
	}
	for _, reason := range []string{"missing", "expired", "wrong", "not entitled", "unknown"} {
		if seen[reason] == 0 {
			t.Errorf("no row is %s", reason)
		}
	}
}

func TestBasicAndBearer(t *testing.T) {
	for name, test := range map[string]struct {
		option resilience.Option
		want   string
	}{
		"basic":              {resilience.WithBasicAuth("ada", "pa:ss wörd"), "Basic YWRhOnBhOnNzIHfDtnJk"},
		"basic, a key alone": {resilience.WithBasicAuth("key-12345", ""), "Basic a2V5LTEyMzQ1Og=="},
		"bearer":             {resilience.WithBearerToken("abcdefgh"), "Bearer abcdefgh"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			rt := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
				got = append(got, r.Header.Get("Authorization"))
				return newAnswer(200, `{}`), nil
			}}
			d := connect(t, rt, test.option)
			if _, err := track(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequest("GET", "https://other.example/v1/x", nil)
			resp, err := d.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if len(got) != 2 || got[0] != test.want || got[1] != "" {
				t.Errorf("sent %q, want %q at home and nothing elsewhere", got, test.want)
			}
		})
	}
}

// signing is a scheme that signs method, path, body and a counter.
func signing(t *testing.T) func(*http.Request) error {
	n := 0
	return func(r *http.Request) error {
		n++
		body := []byte{}
		if r.GetBody != nil {
			rc, err := r.GetBody()
			if err != nil {
				return err
			}
			defer rc.Close()
			if body, err = io.ReadAll(rc); err != nil {
				return err
			}
		}
		for _, name := range []string{"Authorization", "X-Api-Key", "User-Agent", "Accept"} {
			if r.Header.Get(name) == "" {
				t.Errorf("the signer does not see %s", name)
			}
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s %d", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), body, n))
		r.Header.Set("X-Signature", hex.EncodeToString(sum[:]))
		q := r.URL.Query()
		q.Set("nonce", fmt.Sprint("nonce-", n))
		r.URL.RawQuery = q.Encode()
		return nil
	}
}

// Each attempt is signed anew, after everything else.
func TestSignerSignsEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type request struct{ signature, query, body, key string }
		var mu sync.Mutex
		var got []request
		rt := answering(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, request{r.Header.Get("X-Signature"), r.URL.RawQuery, string(body), r.Header.Get("Idempotency-Key")})
			if len(got) < 3 {
				return newAnswer(503, `{}`), nil
			}
			return newAnswer(201, `{}`), nil
		})
		d := connect(t, rt, resilience.WithSigner(signing(t)), resilience.WithCredential("X-Api-Key", "key-12345"),
			resilience.WithTokenSource(func(context.Context) (resilience.Token, error) { return resilience.Token{Value: "token-1"}, nil }))
		if _, err := ship(t.Context(), d, `{"reference":"order-1"}`, resilience.WithIdempotencyKey("k1")); err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 {
			t.Fatalf("%d requests, want 3", len(got))
		}
		for i, r := range got {
			sum := sha256.Sum256(fmt.Appendf(nil, `POST /v1/shipments k1 {"reference":"order-1"} %d`, i+1))
			if want := (request{hex.EncodeToString(sum[:]), fmt.Sprint("nonce=nonce-", i+1), `{"reference":"order-1"}`, "k1"}); r != want {
				t.Errorf("request %d is %+v, want %+v", i+1, r, want)
			}
		}
	})
}

func TestSignerOfBodiesThatAreNotSentTwice(t *testing.T) {
	signed := ""
	var repeatable bool
	rt := answering(func(r *http.Request) (*http.Response, error) {
		repeatable = r.GetBody != nil
		body, _ := io.ReadAll(r.Body)
		if string(body) != "a notice" {
			t.Errorf("sent %q", body)
		}
		return newAnswer(200, `{}`), nil
	})
	d := connect(t, rt, resilience.WithSigner(func(r *http.Request) error {
		if r.GetBody == nil {
			signed = "nothing"
			return nil
		}
		rc, err := r.GetBody()
		if err != nil {
			return err
		}
		b, _ := io.ReadAll(rc)
		signed = string(b)
		return rc.Close()
	}))
	err := d.Call(t.Context(), unsafeOp, &resilience.Request{Path: "/notices", Body: []byte("a notice")}, nil)
	if err != nil || signed != "a notice" || repeatable {
		t.Errorf("signed %q, %v; net/http could send it again: %v", signed, err, repeatable)
	}
	for name, body := range map[string]io.Reader{"a notice": strings.NewReader("a notice"), "nothing": io.NopCloser(strings.NewReader("a notice"))} {
		req, _ := http.NewRequest("POST", memoryURL+"/notices", body)
		resp, err := d.Do(req)
		if err != nil || signed != name || repeatable {
			t.Fatalf("Do: signed %q, %v; net/http could send it again: %v", signed, err, repeatable)
		}
		_ = resp.Body.Close()
		if req.Header.Get("X-Signature") != "" {
			t.Error("the caller's request was changed")
		}
	}
}

func TestSignerThatFails(t *testing.T) {
	sick := errors.New("the key store does not answer")
	for name, sign := range map[string]func(*http.Request) error{
		"an error":            func(*http.Request) error { return sick },
		"another host":        func(r *http.Request) error { r.URL.Host = "evil.example"; return nil },
		"another scheme":      func(r *http.Request) error { r.URL.Scheme = "http"; return nil },
		"another Host header": func(r *http.Request) error { r.Host = "evil.example"; return nil },
		"another method":      func(r *http.Request) error { r.Method = "DELETE"; return nil },
		"no URL":              func(r *http.Request) error { r.URL = nil; return nil },
		"another key":         func(r *http.Request) error { r.Header.Set("Idempotency-Key", "mine"); return nil },
		"no key":              func(r *http.Request) error { r.Header.Del("Idempotency-Key"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rt := always(201, `{}`)
			d := connect(t, rt, resilience.WithSigner(sign), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
			for range 3 {
				_, err := ship(t.Context(), d, `{}`)
				e := failureOf(t, err)
				if e.Outcome != resilience.OutcomeNotSent || e.Attempts != 1 || errors.Is(err, sick) != (name == "an error") {
					t.Errorf("%v, %d attempts: %v", e.Outcome, e.Attempts, err)
				}
				isNot(t, err, resilience.ErrCircuitOpen, resilience.ErrUnavailable, resilience.ErrOutcomeUnknown)
			}
			if n := rt.requests(); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
	t.Run("a key where none belongs", func(t *testing.T) {
		rt := always(200, `{}`)
		d := connect(t, rt, resilience.WithSigner(func(r *http.Request) error { r.Header.Set("Idempotency-Key", "mine"); return nil }))
		err := d.Call(t.Context(), unsafeOp, &resilience.Request{Path: "/notices"}, nil)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || rt.requests() != 0 {
			t.Errorf("%v, %d requests", e.Outcome, rt.requests())
		}
	})
}

// What a signer sets is secret, but not so short that every text would be.
func TestSignedValuesAreRedacted(t *testing.T) {
	rt := answering(func(r *http.Request) (*http.Response, error) {
		return newAnswer(400, `{"title":"step 1 of 1","detail":"`+r.Header.Get("X-Signature")+` `+r.URL.Query().Get("sig")+`"}`, "X-Signature", "xyz"), nil
	})
	d := connect(t, rt, resilience.WithSigner(func(r *http.Request) error {
		r.Header.Set("X-Signature", "HMAC 0a1b2c3d4e5f")
		r.Header.Set("X-Step", "1")
		r.URL.RawQuery = "sig=query-signature"
		return nil
	}))
	_, err := track(t.Context(), d)
	e := failureOf(t, err)
	if e.Problem.Title != "step 1 of 1" || e.Problem.Detail != "[REDACTED] [REDACTED]" || e.Header.Get("X-Signature") != "" {
		t.Errorf("%+v, %v", e.Problem, e.Header)
	}
}

// The time that signing takes is the attempt's.
func TestSignerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, always(201, `{}`), resilience.WithoutRetry(), resilience.WithSigner(func(r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		}))
		start := time.Now()
		_, err := ship(t.Context(), d, `{}`, resilience.WithAttemptTimeout(2*time.Second))
		is(t, err, resilience.ErrTimeout)
		isNot(t, err, context.DeadlineExceeded)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || time.Since(start) != 2*time.Second || e.Timeout != 2*time.Second {
			t.Errorf("%v after %s", e.Outcome, time.Since(start))
		}
	})
}

// What is signed is secret from eight characters on, in whatever header it stands.
func TestShortestSignatureThatIsRedacted(t *testing.T) {
	for signature, shown := range map[string]string{"0a1b2c3": "0a1b2c3", "0a1b2c3d": "[REDACTED]", "v1 0a1b2c3": "[REDACTED]", "v1 0a1b2c3d": "[REDACTED]"} {
		rt := answering(func(r *http.Request) (*http.Response, error) {
			return newAnswer(400, `{"title":"you sent `+r.Header.Get("X-Signature")+`"}`), nil
		})
		opts := []resilience.Option{resilience.WithSigner(func(r *http.Request) error {
			r.Header.Set("X-Signature", signature)
			return nil
		})}
		for i := range 9 { // headers that the signer leaves as they are
			opts = append(opts, resilience.WithHeader(fmt.Sprint("X-Plain-", i), "a plain value"))
		}
		d := connect(t, rt, opts...)
		for range 5 {
			_, err := track(t.Context(), d)
			if got, want := failureOf(t, err).Problem.Title, "you sent "+shown; got != want {
				t.Errorf("%s: got %q, want %q", signature, got, want)
			}
		}
	}
}
