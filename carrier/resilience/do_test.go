package resilience_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// closing is a body that counts how often it was closed, and how it was read.
type closing struct {
	io.Reader
	mu     sync.Mutex
	closed int
	late   bool // it was read after it was closed
	fail   error
}

func (b *closing) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = b.late || b.closed > 0
	if b.fail != nil {
		return 0, b.fail
	}
	return b.Reader.Read(p)
}

func (b *closing) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed++
	return nil
}

// bodies are the caller's own body and those that GetBody gave.
type bodies struct {
	text string
	all  []*closing
}

func (b *bodies) next() *closing {
	c := &closing{Reader: strings.NewReader(b.text)}
	b.all = append(b.all, c)
	return c
}

// check: each body was closed exactly once, and not read after that.
func (b *bodies) check(t *testing.T, want int) {
	t.Helper()
	if len(b.all) != want {
		t.Errorf("%d bodies were opened, want %d", len(b.all), want)
	}
	for i, c := range b.all {
		if c.closed != 1 || c.late {
			t.Errorf("body %d was closed %d times, and read afterwards: %v", i+1, c.closed, c.late)
		}
	}
}

// bodyRequest has a body that can be opened again, unless once.
func bodyRequest(ctx context.Context, op *resilience.Operation, text string, once bool) (*http.Request, *bodies) {
	b := &bodies{text: text}
	req, err := http.NewRequestWithContext(ctx, op.Method, origin+strings.ReplaceAll(op.Path, "{id}", "a1"), b.next())
	if err != nil {
		panic(err)
	}
	req.ContentLength = int64(len(text))
	if !once {
		req.GetBody = func() (io.ReadCloser, error) { return b.next(), nil }
	}
	return req, b
}

// The caller's body is closed exactly once on every way out, and read again by
// GetBody only.
func TestDoBodies(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	broken, err := resilience.NewBreaker("b", resilience.BreakerPolicy{ConsecutiveFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = broken.Execute(t.Context(), func(context.Context) error { return errors.New("no") })
	var (
		busy = act{Status: 503}
		fine = act{Status: 200, Body: `{}`}
	)
	tests := []struct {
		name    string
		safety  string
		ctx     context.Context
		once    bool
		key     string
		acts    []act
		options []resilience.Option
		opened  int
		sent    int
		fails   bool
	}{
		{name: "success", safety: "idempotent", acts: []act{fine}, opened: 1, sent: 1},
		{name: "two retries", safety: "idempotent", acts: []act{busy, busy, fine}, opened: 3, sent: 3},
		{name: "retries that end", safety: "keyed", acts: []act{busy}, opened: 3, sent: 3},
		{name: "read once only", safety: "idempotent", once: true, acts: []act{busy}, opened: 1, sent: 1},
		{name: "read once only, and refused", safety: "unsafe", once: true, acts: []act{{Status: 429}}, opened: 1, sent: 1},
		{name: "read once only, and never sent", safety: "unsafe", once: true, acts: []act{{Trace: "asked", Err: errors.New("no")}}, opened: 1, sent: 1, fails: true},
		{name: "unsafe", safety: "unsafe", acts: []act{busy}, opened: 1, sent: 1},
		{name: "left unread by the transport", safety: "keyed", acts: []act{{Status: 429, LeaveBody: true}, fine}, opened: 2, sent: 2},
		{name: "a key of the caller's: one more to compare by", safety: "keyed", key: "k", acts: []act{busy, fine}, opened: 3, sent: 2},
		{name: "a key of the caller's, and a body to read once", safety: "keyed", key: "k", once: true, acts: []act{busy}, opened: 1, sent: 1},
		{name: "a wrong key", safety: "keyed", key: "\x01", acts: []act{fine}, opened: 1, sent: 0, fails: true},
		{name: "a key where none is taken", safety: "unsafe", key: "k", acts: []act{fine}, opened: 1, sent: 0, fails: true},
		{name: "the caller has left", safety: "keyed", ctx: gone, acts: []act{fine}, opened: 1, sent: 0, fails: true},
		{name: "refused by the breaker", safety: "keyed", acts: []act{fine}, options: []resilience.Option{resilience.WithSharedBreaker(broken)}, opened: 1, sent: 0, fails: true},
		{name: "neither answer nor error", safety: "idempotent", acts: []act{{NoResponse: true}}, opened: 3, sent: 3, fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			op, s := opOf(test.safety), playing(test.acts...)
			d := onStage(t, s, append([]resilience.Option{resilience.WithBaseURL(origin), resilience.WithOperations(op), atOnce(resilience.RetryPolicy{})}, test.options...)...)
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			req, b := bodyRequest(ctx, op, "the body", test.once)
			if test.key != "" {
				req.Header.Set("Idempotency-Key", test.key)
			}
			resp, err := d.Do(req)
			if (err != nil) != test.fails || (resp != nil) == test.fails {
				t.Errorf("got %v, %v", resp, err)
			}
			if resp != nil {
				_ = resp.Body.Close()
			}
			b.check(t, test.opened)
			got := s.requests()
			if len(got) != test.sent {
				t.Errorf("%d requests, want %d", len(got), test.sent)
			}
			for i, r := range got {
				if r.Body != "the body" && !(i == 0 && test.acts[0].LeaveBody) || r.Length != 8 {
					t.Errorf("request %d sent %q, of length %d", i+1, r.Body, r.Length)
				}
			}
		})
	}
}

// A closed client and a wrong request close the body as well.
func TestDoClosesTheBodyOfARefusedRequest(t *testing.T) {
	d := onStage(t, playing(act{Status: 200}))
	_ = d.Close()
	req, b := bodyRequest(t.Context(), opOf("unsafe"), "x", false)
	if _, err := d.Do(req); err == nil {
		t.Error("no error")
	}
	b.check(t, 1)
	req, b = bodyRequest(t.Context(), opOf("unsafe"), "x", false)
	req.URL.Scheme = "gopher"
	if _, err := d.Do(req); err == nil {
		t.Error("no error")
	}
	b.check(t, 1)
}

// What goes wrong while the caller's own body is read is no fault of the
// carrier's: not retried, no failure to the breaker, and on the error.
func TestDoBodyThatFails(t *testing.T) {
	fault := errors.New("disk on fire")
	op := opOf("idempotent")
	policy := resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1})
	base := "http://" + rawServer(t, serveRaw(ok("Content-Length: 2")+"{}", closes))
	for name, test := range map[string]struct {
		base    string
		options []resilience.Option
	}{
		"a socket":    {base, nil},
		"a transport": {origin, []resilience.Option{resilience.WithTransport(playing(act{Status: 200, Body: `{}`}))}},
	} {
		t.Run(name, func(t *testing.T) {
			d := doerFor(t, append(test.options, resilience.WithBaseURL(test.base), resilience.WithOperations(op), policy)...)
			body := &closing{fail: fault}
			req, err := http.NewRequestWithContext(t.Context(), op.Method, test.base+"/things/a1", body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = 100
			req.GetBody = func() (io.ReadCloser, error) { t.Error("read again"); return body, nil }
			_, err = d.Do(req)
			e := errorOf(t, err)
			if !errors.Is(err, fault) || e.Attempts != 1 || errors.Is(err, resilience.ErrUnavailable) || !strings.Contains(err.Error(), "the request body could not be read: ") {
				t.Errorf("got %v after %d attempts", err, e.Attempts)
			}
			if state := d.BreakerState(""); state != resilience.BreakerClosed {
				t.Errorf("the breaker is %v", state)
			}
			if body.closed != 1 {
				t.Errorf("the body was closed %d times", body.closed)
			}
		})
	}
}

// GetBody that fails ends the retries, with the answer that came before.
func TestDoGetBodyFails(t *testing.T) {
	fault := errors.New("no second copy")
	op, s := opOf("idempotent"), playing(act{Status: 503})
	d := onStage(t, s, resilience.WithBaseURL(origin), resilience.WithOperations(op), atOnce(resilience.RetryPolicy{}))
	req, b := bodyRequest(t.Context(), op, "x", false)
	req.GetBody = func() (io.ReadCloser, error) { return nil, fault }
	_, err := d.Do(req)
	e := errorOf(t, err)
	if !errors.Is(err, fault) || e.StatusCode != 503 || e.Outcome != resilience.OutcomeUnknown || e.Attempts != 2 {
		t.Errorf("outcome %v of %d after %d attempts: %v", e.Outcome, e.StatusCode, e.Attempts, err)
	}
	b.check(t, 1)

	// Nobody there, and no second copy: nothing was sent.
	d = doerFor(t, resilience.WithBaseURL("http://127.0.0.1:1"), resilience.WithOperations(op), atOnce(resilience.RetryPolicy{}))
	req, b = bodyRequest(t.Context(), op, "x", false)
	req.URL.Scheme, req.URL.Host = "http", "127.0.0.1:1"
	req.GetBody = func() (io.ReadCloser, error) { return nil, fault }
	_, err = d.Do(req)
	isExactly(t, err)
	if e := errorOf(t, err); !errors.Is(err, fault) || e.Outcome != resilience.OutcomeNotSent || e.Attempts != 2 {
		t.Errorf("outcome %v after %d attempts: %v", e.Outcome, e.Attempts, err)
	}
	b.check(t, 1)

	// With a key of the caller's it is asked before anything is sent.
	op, s = opOf("keyed"), playing(act{Status: 503})
	d = onStage(t, s, resilience.WithBaseURL(origin), resilience.WithOperations(op))
	req, b = bodyRequest(t.Context(), op, "x", false)
	req.GetBody = func() (io.ReadCloser, error) { return nil, fault }
	req.Header.Set("Idempotency-Key", "k")
	_, err = d.Do(req)
	isExactly(t, err, "ErrInvalidRequest")
	if s.count() != 0 {
		t.Errorf("%d requests went out", s.count())
	}
	b.check(t, 1)
	req, b = bodyRequest(t.Context(), op, "x", false)
	req.GetBody = func() (io.ReadCloser, error) { return &closing{fail: fault}, nil }
	req.Header.Set("Idempotency-Key", "k")
	_, err = d.Do(req)
	isExactly(t, err, "ErrInvalidRequest")
	b.check(t, 1)
}

// The same key twice, without a body, or with one of no bytes, is one request.
func TestDoSharesCallsWithoutABody(t *testing.T) {
	for name, body := range map[string]io.Reader{"none": nil, "NoBody": http.NoBody, "no bytes": strings.NewReader("")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op := opOf("keyed")
				s := playing(act{Status: 200, Body: `{}`, Wait: time.Second})
				d := onStage(t, s, resilience.WithBaseURL(origin), resilience.WithOperations(op))
				errs := make(chan error)
				for range 3 {
					go func() {
						req, err := http.NewRequestWithContext(t.Context(), "POST", origin+"/things", body)
						if err == nil {
							req.Header.Set("Idempotency-Key", "k")
							_, err = d.Do(req)
						}
						errs <- err
					}()
				}
				for range 3 {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
				if s.count() != 1 {
					t.Errorf("%d requests", s.count())
				}
			})
		})
	}
}

// The request is the caller's: nothing of it is changed, and it can be used again.
func TestDoLeavesTheRequestAlone(t *testing.T) {
	op, s := opOf("keyed"), playing(act{Status: 503}, act{Status: 200, Body: `{}`})
	d := onStage(t, s, resilience.WithBaseURL(origin), resilience.WithOperations(op), atOnce(resilience.RetryPolicy{}), resilience.WithHeader("X-A", "a"), resilience.WithCredential("X-Api-Key", "k"))
	values := []string{"b", "c"}
	req, err := http.NewRequestWithContext(t.Context(), "POST", origin+"/things?x=1", bytes.NewReader([]byte("body")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["X-B"] = values[:1]
	req.Header.Set("Accept", "text/x")
	req.Host = "other.example"
	before, header, body := *req, req.Header.Clone(), req.Body
	for range 2 {
		resp, err := d.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Request != req {
			t.Error("the answer's request is not the caller's")
		}
		req.Body = io.NopCloser(strings.NewReader("body"))
	}
	req.Body = body
	if !equalHeaders(req.Header, header) || req.URL != before.URL || req.Method != before.Method || req.Host != before.Host || req.Body != before.Body ||
		req.ContentLength != before.ContentLength || req.Context() != t.Context() || values[1] != "c" {
		t.Errorf("the request was changed: %+v", req)
	}
	for _, r := range s.requests() {
		if r.URL != origin+"/things?x=1" || r.Body != "body" || r.Header.Get("Accept") != "text/x" || r.Header.Get("X-A") != "a" || r.Header.Get("X-B") != "b" || r.Header.Get("X-Api-Key") != "k" {
			t.Errorf("sent %+v", r)
		}
	}
}

// Do has http.Client's manners: any status is an answer, and its body is there.
func TestDoAnswers(t *testing.T) {
	for _, status := range []int{200, 201, 204, 299, 301, 304, 400, 404, 409, 429, 500, 503, 599} {
		for _, errs := range []bool{false, true} {
			t.Run(fmt.Sprint(status, errs), func(t *testing.T) {
				op := opOf("read")
				op.Success = nil
				s := playing(act{Status: status, Body: `{"n":1}`, Header: http.Header{"X-Request-Id": {"r1"}}})
				options := []resilience.Option{resilience.WithOperations(op), atOnce(resilience.RetryPolicy{})}
				if errs {
					options = append(options, resilience.WithStatusErrors())
				}
				resp, err := onStage(t, s, options...).Do(httpRequestOf(t.Context(), origin+"/v1", op))
				if errs && status >= 300 {
					if e := errorOf(t, err); resp != nil || e.StatusCode != status || e.RequestID != "r1" || string(e.Body) != `{"n":1}` {
						t.Errorf("got %v, %v", resp, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.Body.Close() != nil || string(body) != `{"n":1}` || resp.StatusCode != status || resp.ContentLength != 7 || resp.Header.Get("X-Request-Id") != "r1" {
					t.Errorf("%d %q, length %d, %v, %v", resp.StatusCode, body, resp.ContentLength, resp.Header, err)
				}
			})
		}
	}
}

// An answer to HEAD keeps the length that the body would have.
func TestDoHead(t *testing.T) {
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := act{Status: 200}.response(r)
		resp.ContentLength = 12345
		return resp, nil
	})
	resp, err := doerFor(t, resilience.WithTransport(rt)).Do(httpRequestOf(t.Context(), origin, &resilience.Operation{Method: "HEAD", Path: "/x"}))
	if err != nil || resp.ContentLength != 12345 {
		t.Errorf("got %+v, %v", resp, err)
	}
	if b, err := io.ReadAll(resp.Body); err != nil || len(b) != 0 {
		t.Errorf("the body has %q, %v", b, err)
	}
}

// An error answer of any size that a result may have is handed over in full.
func TestDoBigErrorAnswer(t *testing.T) {
	body := strings.Repeat("x", 300<<10)
	d := onStage(t, playing(act{Status: 404, Body: body, Header: http.Header{"Content-Type": {"text/plain"}}}))
	resp, err := d.Do(httpRequestOf(t.Context(), origin, opOf("read")))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != body {
		t.Errorf("got %d bytes of %d", len(b), len(body))
	}
	d = onStage(t, playing(act{Status: 404, Body: body}), resilience.WithMaxResponseBytes(1000))
	_, err = d.Do(httpRequestOf(t.Context(), origin, opOf("read")))
	isExactly(t, err, "ErrNotFound")
	if e := errorOf(t, err); len(e.Body) != 1000 {
		t.Errorf("%d bytes were kept", len(e.Body))
	}
}

// The answer is the caller's own: its header and body are nobody else's.
func TestDoAnswersAreCopies(t *testing.T) {
	kept := act{Status: 200, Body: `{}`, Header: http.Header{"X-A": {"a"}}}.response(&http.Request{})
	shared := kept.Header
	rt := roundTripper(func(*http.Request) (*http.Response, error) {
		resp := *kept
		resp.Body = io.NopCloser(strings.NewReader(`{}`))
		return &resp, nil
	})
	var info resilience.CallInfo
	d := doerFor(t, resilience.WithTransport(rt))
	resp, err := d.Do(httpRequestOf(resilience.WithCall(t.Context(), resilience.WithCallInfo(&info)), origin, opOf("read")))
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Set("X-A", "changed")
	info.Header.Set("X-A", "changed as well")
	if shared.Get("X-A") != "a" {
		t.Errorf("the transport's header was changed: %v", shared)
	}
}

// Options for Do come with the context, those further out first.
func TestWithCall(t *testing.T) {
	s := playing(act{Status: 503})
	d := onStage(t, s, atOnce(resilience.RetryPolicy{}))
	outer := resilience.WithCall(t.Context(), resilience.WithHeader("X-A", "outer"), resilience.WithHeader("X-B", "outer"), resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 2, BaseDelay: -1}))
	inner := resilience.WithCall(outer, resilience.WithHeader("X-B", "inner"))
	sibling := resilience.WithCall(outer, resilience.WithHeader("X-B", "sibling"))
	for _, test := range []struct {
		ctx  context.Context
		a, b string
		sent int
	}{{t.Context(), "", "", 3}, {outer, "outer", "outer", 2}, {inner, "outer", "inner", 2}, {sibling, "outer", "sibling", 2}} {
		before := s.count()
		if _, err := d.Do(httpRequestOf(test.ctx, origin, opOf("read"))); err != nil {
			t.Fatal(err)
		}
		got := s.requests()[before:]
		if len(got) != test.sent || got[0].Header.Get("X-A") != test.a || got[0].Header.Get("X-B") != test.b {
			t.Errorf("%d requests with %v, want %d with %q and %q", len(got), got[0].Header, test.sent, test.a, test.b)
		}
	}
	_, err := d.Do(httpRequestOf(resilience.WithCall(t.Context(), nil), origin, opOf("read")))
	isExactly(t, err, "ErrInvalidRequest")
}

// A request that matches no operation is judged by its verb, as if it had no
// key, unless the caller set one.
func TestDoUnknownOperations(t *testing.T) {
	for _, test := range []struct {
		method, header string
		sent           int
		unknown        bool
	}{
		{"GET", "", 3, false}, {"HEAD", "", 3, false}, {"OPTIONS", "", 3, false},
		{"PUT", "", 3, true}, {"DELETE", "", 3, true},
		{"POST", "", 1, true}, {"PATCH", "", 1, true}, {"BREW", "", 1, true},
		{"POST", "Idempotency-Key", 3, true}, {"PATCH", "X-Idempotency-Key", 3, true},
		{"", "", 3, false},
	} {
		t.Run(test.method+test.header, func(t *testing.T) {
			s := playing(act{Status: 503})
			d := doerFor(t, resilience.WithTransport(s), resilience.WithStatusErrors(), atOnce(resilience.RetryPolicy{}), resilience.WithoutBreaker())
			req, err := http.NewRequestWithContext(t.Context(), test.method, origin+"/anything", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			req.Method = test.method
			if test.header != "" {
				req.Header.Set(test.header, "k1")
			}
			_, err = d.Do(req)
			e := errorOf(t, err)
			method := test.method
			if method == "" {
				method = "GET"
			}
			if e.Operation != method+" (unknown)" || s.count() != test.sent || errors.Is(err, resilience.ErrOutcomeUnknown) != test.unknown {
				t.Errorf("%d requests of %s, want %d: %v", s.count(), e.Operation, test.sent, err)
			}
			if want := map[bool]string{true: "k1"}[test.header != ""]; e.IdempotencyKey != want {
				t.Errorf("key %q, want %q", e.IdempotencyKey, want)
			}
			for _, r := range s.requests() {
				if test.header != "" && r.Header.Get(test.header) != "k1" || r.Method != method {
					t.Errorf("sent %s %v", r.Method, r.Header)
				}
			}
		})
	}
}

// HTTPClient gives what sends through the Doer, for code that wants one.
func TestHTTPClient(t *testing.T) {
	server := liveServer(t, false)
	op := opOf("read")
	d := doerFor(t, resilience.WithBaseURL(server.URL), resilience.WithOperations(op), atOnce(resilience.RetryPolicy{}))
	hc := d.HTTPClient()

	server.play(act{Status: 503}, act{Status: 200, Body: `{"n":1}`})
	resp, err := hc.Get(server.URL + "/things/a1")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != `{"n":1}` || resp.Body.Close() != nil || len(server.requests()) != 2 {
		t.Errorf("got %q, %v after %d requests", b, err, len(server.requests()))
	}

	server.play(act{Status: 302, Header: http.Header{"Location": {"/elsewhere"}}})
	resp, err = hc.Get(server.URL + "/things/a1")
	if err != nil || resp.StatusCode != 302 || len(server.requests()) != 1 {
		t.Errorf("a redirect: %v, %v after %d requests", resp, err, len(server.requests()))
	}

	server.play(act{Status: 503})
	resp, err = hc.Post(server.URL+"/things/a1/poke", "text/plain", strings.NewReader("x"))
	if err != nil || resp.StatusCode != 503 || len(server.requests()) != 1 {
		t.Errorf("a POST: %v, %v after %d requests", resp, err, len(server.requests()))
	}

	server.Close()
	_, err = hc.Get(server.URL + "/things/a1")
	if e := errorOf(t, err); e.Attempts != 3 {
		t.Errorf("nobody there: %v", err)
	}
}

// Credentials go to the origin of the base URL, and nowhere else.
func TestCredentialsStayAtTheOrigin(t *testing.T) {
	for _, test := range []struct {
		base, url string
		want      bool
	}{
		{"https://api.carrier.example/v1", "https://api.carrier.example/v1/x", true},
		{"https://api.carrier.example/v1", "https://api.carrier.example/v2/x", true},
		{"https://api.carrier.example/v1", "https://api.carrier.example:443/x", true},
		{"https://api.carrier.example:443/v1", "https://api.carrier.example/x", true},
		{"http://api.carrier.example/v1", "http://api.carrier.example:80/x", true},
		{"https://api.carrier.example/v1", "https://API.Carrier.Example/x", true},
		{"https://api.carrier.example/v1", "https://api.carrier.example./x", true},
		{"https://api.carrier.example/v1", "HTTPS://api.carrier.example/x", true},
		{"https://api.carrier.example/v1", "http://api.carrier.example/x", false},
		{"https://api.carrier.example/v1", "https://api.carrier.example:8443/x", false},
		{"https://api.carrier.example/v1", "https://carrier.example/x", false},
		{"https://api.carrier.example/v1", "https://api.carrier.example.evil/x", false},
		{"https://api.carrier.example/v1", "https://evil/?api.carrier.example", false},
		{"http://api.carrier.example/v1", "http://api.carrier.example:443/x", false},
		{"", "https://anywhere.example/x", true},
	} {
		s := playing(act{Status: 200, Body: `{}`})
		options := []resilience.Option{resilience.WithTransport(s), resilience.WithCredential("X-Api-Key", "k")}
		if test.base != "" {
			options = append(options, resilience.WithBaseURL(test.base))
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", test.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doerFor(t, options...).Do(req); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[0].Header.Get("X-Api-Key") == "k"; got != test.want {
			t.Errorf("base %s, request to %s: the key was sent: %v, want %v", test.base, test.url, got, test.want)
		}
	}
}

// A time limit of the call bounds the wait for one that has its key in flight.
func TestDoWaitsForItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := opOf("keyed")
		s := playing(act{Status: 200, Body: `{"n":1}`, Wait: 5 * time.Second})
		d := onStage(t, s, resilience.WithBaseURL(origin), resilience.WithOperations(op))
		send := func(ctx context.Context, body string) (string, error) {
			info := resilience.CallInfo{Attempts: 7, RequestID: "stale"}
			req, _ := http.NewRequestWithContext(resilience.WithCall(ctx, resilience.WithCallInfo(&info)), "POST", origin+"/things", strings.NewReader(body))
			req.Header.Set("Idempotency-Key", "k")
			resp, err := d.Do(req)
			if info.IdempotencyKey != "k" || info.RequestID != "" || err == nil && info.Attempts != 1 || err != nil && info.Attempts != 0 {
				t.Errorf("info is %+v, with %v", info, err)
			}
			if err != nil {
				return "", err
			}
			b, err := io.ReadAll(resp.Body)
			return string(b), err
		}
		first := make(chan error, 1)
		go func() {
			got, err := send(t.Context(), "same")
			if got != `{"n":1}` {
				t.Errorf("the first got %q", got)
			}
			first <- err
		}()
		synctest.Wait()
		_, err := send(t.Context(), "other")
		isExactly(t, err, "ErrKeyReused")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = send(ctx, "same")
		isExactly(t, err, "ErrTimeout", "DeadlineExceeded", "ErrOutcomeUnknown")
		if got, err := send(t.Context(), "same"); err != nil || got != `{"n":1}` {
			t.Errorf("the one that waited got %q, %v", got, err)
		}
		if err := <-first; err != nil || s.count() != 1 {
			t.Errorf("the first: %v; %d requests", err, s.count())
		}
	})
}

// leavingBody lets the caller leave at its end.
type leavingBody struct {
	io.Reader
	leave func()
}

func (b leavingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.leave()
	}
	return n, err
}

func (leavingBody) Close() error { return nil }

// An answer that was whole before its caller left is an answer.
func TestDoAnswerAsTheCallerLeaves(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		ctx, leave := context.WithCancel(t.Context())
		rt := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp := act{Status: status}.response(r)
			resp.Body, resp.ContentLength = leavingBody{strings.NewReader("{}"), leave}, -1
			return resp, nil
		})
		d := doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(rt), resilience.WithoutRetry())
		resp, err := d.Do(httpRequestOf(ctx, origin, opOf("read")))
		if err != nil || resp.StatusCode != status || ctx.Err() == nil {
			t.Errorf("%d: got %v, %v", status, resp, err)
		}
	}
}

// Requests that have no key are each sent, also those that are the same.
func TestDoWithoutAKeyIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[string]int{}
		d := doerFor(t, resilience.WithBaseURL(memoryURL), allOps, resilience.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent[r.Method+" "+r.URL.Path]++
			mu.Unlock()
			return newAnswer(200, `{}`), pause(r, time.Second)
		})))
		var wg sync.WaitGroup
		for _, path := range []string{"/tracking/a", "/tracking/a", "/tracking/b"} {
			for _, method := range []string{"GET", "POST"} {
				wg.Go(func() {
					req, _ := http.NewRequestWithContext(t.Context(), method, memoryURL+path, nil)
					resp, err := d.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
				})
			}
		}
		wg.Wait()
		want := map[string]int{"GET /v1/tracking/a": 2, "GET /v1/tracking/b": 1, "POST /v1/tracking/a": 2, "POST /v1/tracking/b": 1}
		if !maps.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
}

// The key in a header may be a structured-field string.
func TestDoQuotedKeys(t *testing.T) {
	for header, want := range map[string]string{
		`k1`: `k1`, `"k1"`: `k1`, `"k\"1\\"`: `k"1\`, `"`: `"`, `"k1`: `"k1`, `k1"`: `k1"`, `""`: ``,
	} {
		s := playing(act{Status: 201, Body: `{}`})
		d := onStage(t, s)
		req := httpRequestOf(t.Context(), origin, opOf("keyed"))
		req.Header.Set("Idempotency-Key", header)
		resp, err := d.Do(req)
		if want == "" {
			isExactly(t, err, "ErrInvalidRequest")
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", header, err)
			continue
		}
		_ = resp.Body.Close()
		if got := s.requests()[0].Header.Get("Idempotency-Key"); got != want {
			t.Errorf("%s is sent as %s, want %s", header, got, want)
		}
	}
}
