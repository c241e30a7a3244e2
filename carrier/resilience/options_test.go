package resilience_test

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type baseURLCase struct {
	Name
	URL     string `json:"url"`
	Request string `json:"request"` // where a call goes
	Error   string `json:"error"`   // a part of what it says
}

func TestBaseURLs(t *testing.T) {
	for _, c := range casesOf[baseURLCase](t, "base_urls.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			s := playing(act{Status: 200, Body: `{}`})
			d, err := resilience.New(resilience.WithBaseURL(c.URL), resilience.WithTransport(s))
			if c.Error != "" {
				isExactly(t, err, "ErrInvalidRequest")
				if d != nil || errorOf(t, err).Outcome != resilience.OutcomeNotSent || !strings.Contains(err.Error(), c.Error) || strings.Contains(err.Error(), "hush") {
					t.Errorf("got %v, %v; want an error with %q", d, err, c.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := callThing(t.Context(), d, opOf("read")); err != nil {
				t.Fatal(err)
			}
			if got := s.requests()[0].URL; got != c.Request {
				t.Errorf("the request went to %s, want %s", got, c.Request)
			}
		})
	}
}

// What New refuses, and what it says of it.
func TestBadOptions(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	op := opOf("read")
	tests := []struct {
		name    string
		options []resilience.Option
		says    string
	}{
		{"a nil option", []resilience.Option{resilience.WithUserAgent("x"), nil}, "an option is nil"},
		{"a nil operation", []resilience.Option{resilience.WithOperations(op, nil)}, "an operation needs"},
		{"an operation without ID", []resilience.Option{resilience.WithOperations(&resilience.Operation{Method: "GET", Path: "/x"})}, "an operation needs"},
		{"an operation without method", []resilience.Option{resilience.WithOperations(&resilience.Operation{ID: "x", Path: "/x"})}, "an operation needs"},
		{"an operation without a slash", []resilience.Option{resilience.WithOperations(&resilience.Operation{ID: "x", Method: "GET", Path: "x"})}, "an operation needs"},
		{"a credential without name", []resilience.Option{resilience.WithCredential("", "k")}, "name is not valid"},
		{"a credential with a bad name", []resilience.Option{resilience.WithCredential("X Key", "k")}, "name is not valid"},
		{"an empty credential", []resilience.Option{resilience.WithCredential("X-Api-Key", "")}, "credential is empty"},
		{"a credential with a new line", []resilience.Option{resilience.WithCredential("X-Api-Key", "k\r\nX-Evil: 1")}, "cannot carry"},
		{"a credential with a space at its end", []resilience.Option{resilience.WithCredential("X-Api-Key", "k ")}, "cannot carry"},
		{"a nil transport", []resilience.Option{resilience.WithTransport(nil)}, "RoundTripper is nil"},
		{"no connections", []resilience.Option{resilience.WithMaxConns(0)}, "at least 1, not 0"},
		{"negative connections", []resilience.Option{resilience.WithMaxConns(-1)}, "at least 1, not -1"},
		{"connections of another transport", []resilience.Option{resilience.WithMaxConns(5), resilience.WithTransport(http.DefaultTransport)}, "contradict"},
		{"the other way round", []resilience.Option{resilience.WithTransport(http.DefaultTransport), resilience.WithMaxConns(5)}, "contradict"},
		{"an empty user agent", []resilience.Option{resilience.WithUserAgent("")}, "WithUserAgent"},
		{"a user agent with a new line", []resilience.Option{resilience.WithUserAgent("a\nb")}, "WithUserAgent"},
		{"a nil logger", []resilience.Option{resilience.WithLogger(nil)}, "logger is nil"},
		{"a nil breaker", []resilience.Option{resilience.WithSharedBreaker(nil)}, "breaker is nil"},
		{"a budget that is no number", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: nan})}, "finite"},
		{"a ratio that is no number", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Ratio: nan})}, "finite"},
		{"a refill without end", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Refill: inf})}, "finite"},
		{"too many tokens", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 1000.5})}, "at most 1000"},
		{"too high a ratio", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Ratio: 1001})}, "at most 1000"},
		{"too high a refill", []resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Refill: 1001})}, "at most 1000"},
		{"a multiplier that is no number", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Multiplier: nan})}, "finite"},
		{"a multiplier without end", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Multiplier: inf})}, "finite"},
		{"a multiplier that shrinks", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Multiplier: 0.5})}, "at least 1"},
		{"a jitter that is none", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Jitter: resilience.NoJitter + 1})}, "Jitter"},
		{"a negative jitter", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Jitter: -1})}, "Jitter"},
		{"a status of success", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Statuses: []int{503, 299}})}, "between 300 and 599, not 299"},
		{"a status that is none", []resilience.Option{resilience.WithRetry(resilience.RetryPolicy{Statuses: []int{600}})}, "between 300 and 599, not 600"},
		{"a failure ratio that is no number", []resilience.Option{resilience.WithBreaker(resilience.BreakerPolicy{FailureRatio: nan})}, "finite"},
		{"a failure ratio over 1", []resilience.Option{resilience.WithBreaker(resilience.BreakerPolicy{FailureRatio: 1.5})}, "at most 1"},
		{"too many probes", []resilience.Option{resilience.WithBreaker(resilience.BreakerPolicy{HalfOpenCalls: 1<<20 + 1})}, "at most"},
		{"a failure status that is none", []resilience.Option{resilience.WithBreaker(resilience.BreakerPolicy{FailureStatuses: []int{200}})}, "between 300 and 599, not 200"},
		{"a header without name", []resilience.Option{resilience.WithHeader("", "v")}, "not a valid header name"},
		{"a header with a bad name", []resilience.Option{resilience.WithHeader("a:b", "v")}, "not a valid header name"},
		{"a header with a new line", []resilience.Option{resilience.WithHeader("X-A", "v\nw")}, "value for X-A is not valid"},
		{"a header with DEL", []resilience.Option{resilience.WithHeader("X-A", "v\x7f")}, "value for X-A is not valid"},
		{"the header of a credential", []resilience.Option{resilience.WithHeader("x-api-key", "v"), resilience.WithCredential("X-Api-Key", "k")}, "carries a credential"},
		{"the header of a credential, the other way round", []resilience.Option{resilience.WithCredential("x-api-key", "k"), resilience.WithHeader("X-Api-Key", "v")}, "carries a credential"},
		{"the header of an operation's key", []resilience.Option{resilience.WithHeader("x-once", "v"), resilience.WithOperations(&resilience.Operation{ID: "x", Method: "POST", Path: "/x", KeyHeader: "X-Once"})}, "carries the idempotency key"},
	}
	for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Trailer", "TE", "Expect", "Accept-Encoding", "Idempotency-Key", "x-idempotency-key", "Authorization", "Proxy-Authorization", "Cookie"} {
		tests = append(tests, struct {
			name    string
			options []resilience.Option
			says    string
		}{"the header " + name, []resilience.Option{resilience.WithHeader(name, "v")}, "cannot be set"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := resilience.New(test.options...)
			isExactly(t, err, "ErrInvalidRequest")
			e := errorOf(t, err)
			if d != nil || e.Operation != "New" || e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, %v; want an error with %q", d, err, test.says)
			}
			// Options of a call are refused by the call.
			for _, o := range test.options {
				if o, ok := o.(resilience.CallOption); ok && len(test.options) == 1 {
					s := playing(act{Status: 200, Body: `{}`})
					err := callThing(t.Context(), onStage(t, s), opOf("read"), o)
					isExactly(t, err, "ErrInvalidRequest")
					if s.count() != 0 || !strings.Contains(err.Error(), test.says) {
						t.Errorf("%d requests, %v; want an error with %q", s.count(), err, test.says)
					}
				}
			}
		})
	}
}

// What is odd, and no error.
func TestOddOptions(t *testing.T) {
	for name, options := range map[string][]resilience.Option{
		"none": nil,
		"zero policies": {resilience.WithRetry(resilience.RetryPolicy{}), resilience.WithRetryBudget(resilience.BudgetPolicy{}),
			resilience.WithBreaker(resilience.BreakerPolicy{})},
		"negative policies": {resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: -1, BaseDelay: -1, MaxDelay: -1, MaxRetryAfter: -1, Multiplier: -1}),
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1, Ratio: -1, Refill: -1}),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: -1, FailureRatio: -1, MinimumCalls: -1, Window: -1, OpenFor: -1, HalfOpenCalls: -1})},
		"limits of policies": {resilience.WithRetry(resilience.RetryPolicy{Multiplier: 1, Statuses: []int{300, 599}, Jitter: resilience.NoJitter}),
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 1000, Ratio: 1000, Refill: 1000}),
			resilience.WithBreaker(resilience.BreakerPolicy{FailureRatio: 1, HalfOpenCalls: 1 << 20, FailureStatuses: []int{300, 599}})},
		"an attempt longer than the total": {resilience.WithTimeout(time.Second), resilience.WithAttemptTimeout(time.Hour)},
		"no limits":                        {resilience.WithTimeout(-1), resilience.WithAttemptTimeout(-1), resilience.WithIdleTimeout(-1), resilience.WithMaxResponseBytes(-1)},
		"one connection":                   {resilience.WithMaxConns(1)},
		"off and on again":                 {resilience.WithoutBreaker(), resilience.WithBreaker(resilience.BreakerPolicy{}), resilience.WithoutRetry(), resilience.WithRetry(resilience.RetryPolicy{})},
		"the same operation twice":         {resilience.WithOperations(opOf("read")), resilience.WithOperations(opOf("read"))},
		"an empty header":                  {resilience.WithHeader("X-A", "")},
		"a tab in a header":                {resilience.WithHeader("X-A", "a\tb")},
		"every character of a token":       {resilience.WithHeader("!#$%&'*+-.^_`|~09azAZ", "v")},
		"a logger that discards":           {resilience.WithLogger(slog.New(slog.DiscardHandler))},
	} {
		t.Run(name, func(t *testing.T) {
			s := playing(act{Status: 200, Body: `{}`})
			if name != "one connection" {
				options = append(options, resilience.WithTransport(s))
			}
			d := doerFor(t, append(options, resilience.WithBaseURL(origin))...)
			if name == "one connection" {
				return
			}
			if err := callThing(t.Context(), d, opOf("read")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Calls that are refused before anything is sent.
func TestRefusedCalls(t *testing.T) {
	s := playing(act{Status: 200, Body: `{}`})
	d, nowhere, shut := onStage(t, s), doerFor(t, resilience.WithTransport(s)), onStage(t, s)
	if err := shut.Close(); err != nil {
		t.Fatal(err)
	}
	if err := shut.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	op, req := opOf("read"), requestOf(opOf("read"))
	ctx := t.Context()
	var none context.Context
	tests := []struct {
		name string
		call func() error
		op   string
		says string
	}{
		{"nil context", func() error { return d.Call(none, op, req, nil) }, "getThing", "context is nil"},
		{"nil operation", func() error { return d.Call(ctx, nil, req, nil) }, "", "operation is nil"},
		{"nil request", func() error { return d.Call(ctx, op, nil, nil) }, "getThing", "request is nil"},
		{"no base URL", func() error { return nowhere.Call(ctx, op, req, nil) }, "getThing", "needs a base URL"},
		{"a path without a slash", func() error { return d.Call(ctx, op, &resilience.Request{Path: "things"}, nil) }, "getThing", "must begin with a slash"},
		{"an empty path", func() error { return d.Call(ctx, op, &resilience.Request{}, nil) }, "getThing", "must begin with a slash"},
		{"a wrong escape", func() error { return d.Call(ctx, op, &resilience.Request{Path: "/things/%zz"}, nil) }, "getThing", "not escaped correctly"},
		{"closed", func() error { return shut.Call(ctx, op, req, nil) }, "getThing", "client is closed"},
		{"closed, Do", func() error { _, err := shut.Do(httpRequestOf(ctx, origin, op)); return err }, "GET (unknown)", "client is closed"},
		{"a nil option", func() error { return d.Call(ctx, op, req, nil, resilience.WithTimeout(1), nil) }, "getThing", "an option is nil"},
		{"a nil CallInfo", func() error { return d.Call(ctx, op, req, nil, resilience.WithCallInfo(nil)) }, "getThing", "CallInfo is nil"},
		{"CallJSON, nil request", func() error {
			_, err := resilience.CallJSON[int](ctx, d, op, nil)
			return err
		}, "getThing", "request is nil"},
		{"CallBytes, nil request", func() error {
			_, err := resilience.CallBytes(ctx, d, op, nil)
			return err
		}, "getThing", "request is nil"},
		{"CallStream, nil request", func() error {
			_, err := resilience.CallStream(ctx, d, op, nil)
			return err
		}, "getThing", "request is nil"},
		{"Do, nil request", func() error { _, err := d.Do(nil); return err }, "", "request is nil"},
		{"Do, no URL", func() error { _, err := d.Do(&http.Request{Method: "GET"}); return err }, "GET", "must be absolute"},
		{"Do, relative URL", func() error {
			r, _ := http.NewRequest("GET", "/things", nil)
			_, err := d.Do(r)
			return err
		}, "GET", "must be absolute"},
		{"Do, another scheme", func() error {
			r, _ := http.NewRequest("GET", "ftp://h/things", nil)
			_, err := d.Do(r)
			return err
		}, "GET", "must be absolute"},
		{"Do, RequestURI", func() error {
			r := httpRequestOf(ctx, origin, op)
			r.RequestURI = "/"
			_, err := d.Do(r)
			return err
		}, "GET", "RequestURI"},
		{"Do, a method that is none", func() error {
			r := httpRequestOf(ctx, origin, op)
			r.Method = "GET /evil HTTP/1.1"
			_, err := d.Do(r)
			return err
		}, "", "method is not valid"},
		{"Do, a query with a space", func() error {
			r := httpRequestOf(ctx, origin, op)
			r.URL.RawQuery = "a=b HTTP/1.1"
			_, err := d.Do(r)
			return err
		}, "GET", "query"},
		{"a query with a space", func() error { return d.Call(ctx, op, &resilience.Request{Path: "/things/a", Query: "a b"}, nil) }, "getThing", "query"},
		{"a query with a new line", func() error { return d.Call(ctx, op, &resilience.Request{Path: "/things/a", Query: "a\nb"}, nil) }, "getThing", "query"},
		{"a query with DEL", func() error { return d.Call(ctx, op, &resilience.Request{Path: "/things/a", Query: "a\x7fb"}, nil) }, "getThing", "query"},
		{"a key in the request's header, where none is taken", func() error {
			return d.Call(ctx, op, &resilience.Request{Path: "/things/a", Header: http.Header{"Idempotency-Key": {"k"}}}, nil)
		}, "getThing", "takes no idempotency key"},
		{"a header of the call that is owned", func() error { return d.Call(ctx, op, req, nil, resilience.WithHeader("Host", "x")) }, "getThing", "cannot be set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call()
			isExactly(t, err, "ErrInvalidRequest")
			e := errorOf(t, err)
			if e.Operation != test.op || e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || !strings.Contains(err.Error(), test.says) || !strings.HasSuffix(err.Error(), "(not sent)") {
				t.Errorf("got %q of %q, want an error of %q with %q", err, e.Operation, test.op, test.says)
			}
		})
	}
	if s.count() != 0 {
		t.Errorf("%d requests went out", s.count())
	}
}

// A call's header cannot be that of a credential or of a key in the table.
func TestHeadersOfTheCall(t *testing.T) {
	keyed := opOf("keyed")
	keyed.KeyHeader = "X-Once"
	s := playing(act{Status: 200, Body: `{}`})
	d := onStage(t, s, resilience.WithCredential("X-Api-Key", "k"), resilience.WithOperations(keyed))
	for _, name := range []string{"X-Api-Key", "x-once"} {
		isExactly(t, callThing(t.Context(), d, opOf("read"), resilience.WithHeader(name, "v")), "ErrInvalidRequest")
	}
	if s.count() != 0 {
		t.Errorf("%d requests went out", s.count())
	}
}

// The rank of headers: the pipeline's < the request's < the client's < the
// call's < credentials and key.
func TestRankOfHeaders(t *testing.T) {
	op := opOf("keyed")
	s := playing(act{Status: 200, Body: `{}`})
	d := onStage(t, s, resilience.WithUserAgent("agent/1"), resilience.WithCredential("X-Api-Key", "k1"), resilience.WithCredential("x-api-key", "k2"),
		resilience.WithHeader("x-client", "first"), resilience.WithHeader("X-Client", "client"), resilience.WithHeader("X-Both", "client"), resilience.WithHeader("X-All", "client"))
	req := requestOf(op)
	req.Header = http.Header{"X-Request": {"request", "twice"}, "X-All": {"request"}, "Accept": {"text/x"}, "X-Api-Key": {"mine"}, "Idempotency-Key": {"mine"}, "Content-Type": {"application/x"}}
	before := req.Header.Clone()
	err := d.Call(t.Context(), op, req, nil, resilience.WithHeader("X-Both", "call"), resilience.WithHeader("X-All", "call"), resilience.WithHeader("X-Call", "call"), resilience.WithIdempotencyKey("key"))
	if err != nil {
		t.Fatal(err)
	}
	got := s.requests()[0].Header
	want := http.Header{
		"Accept": {"text/x"}, "User-Agent": {"agent/1"}, "Content-Type": {"application/x"}, "X-Request": {"request", "twice"},
		"X-Client": {"client"}, "X-Both": {"call"}, "X-All": {"call"}, "X-Call": {"call"}, "X-Api-Key": {"k2"}, "Idempotency-Key": {"key"},
	}
	if !equalHeaders(got, want) {
		t.Errorf("sent\n%v, want\n%v", got, want)
	}
	if !equalHeaders(req.Header, before) {
		t.Errorf("the request's header was changed: %v", req.Header)
	}
}

// What the options were given is copied: a change afterwards changes nothing.
func TestOptionsCopy(t *testing.T) {
	statuses := []int{503}
	failures := []int{503}
	ops := []*resilience.Operation{opOf("read")}
	retry := resilience.WithRetry(resilience.RetryPolicy{Statuses: statuses, BaseDelay: -1})
	breaker := resilience.WithBreaker(resilience.BreakerPolicy{FailureStatuses: failures, ConsecutiveFailures: 1})
	operations := resilience.WithOperations(ops...)
	s := playing(act{Status: 503})
	d := doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(s), retry, breaker, operations)
	statuses[0], failures[0], ops[0] = 404, 404, nil
	var info resilience.CallInfo
	resp, err := d.Do(httpRequestOf(resilience.WithCall(t.Context(), resilience.WithCallInfo(&info), resilience.WithoutBreaker()), origin, opOf("read")))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if s.count() != 3 || info.Operation != "getThing" {
		t.Errorf("%d requests of %s, want 3 of getThing", s.count(), info.Operation)
	}
	if err := callThing(t.Context(), d, opOf("read"), resilience.WithoutRetry()); err == nil || d.BreakerState("") != resilience.BreakerOpen {
		t.Errorf("the breaker is %v", d.BreakerState(""))
	}
}

// One option can serve many clients, and many calls at once.
func TestOptionsAreReusable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := []resilience.Option{resilience.WithHeader("X-A", "a"), resilience.WithHeader("X-B", "b"), resilience.WithCredential("X-Api-Key", "k"), resilience.WithOperations(opOf("read"))}
		call := []resilience.CallOption{resilience.WithHeader("X-C", "c"), resilience.WithHeader("X-D", "d"), resilience.WithTimeout(time.Second)}
		s := playing(act{Status: 200, Body: `{}`})
		done := make(chan error)
		for range 8 {
			go func() { done <- callThing(t.Context(), onStage(t, s, shared...), opOf("read"), call...) }()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, r := range s.requests() {
			for name, want := range map[string]string{"X-A": "a", "X-B": "b", "X-C": "c", "X-D": "d", "X-Api-Key": "k"} {
				if got := r.Header[name]; !slices.Equal(got, []string{want}) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
	})
}

// The size of an answer: default 8 MiB < operation < client < call.
func TestMaxResponseBytes(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name             string
		op, client, call int64
		want             int64 // 0: no limit
	}{
		{"default", 0, 0, 0, 8 * mib},
		{"operation", 100, 0, 0, 100},
		{"client", 0, 200, 0, 200},
		{"client over operation", 100, 200, 0, 200},
		{"call over both", 100, 200, 300, 300},
		{"client off", 100, -1, 0, 0},
		{"call off", 100, 200, -1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := opOf("idempotent")
			op.MaxBody = test.op
			size := test.want
			if size == 0 {
				size = 8 * mib // and one more
			}
			for _, length := range []bool{true, false} {
				for over := range int64(2) {
					if test.want == 0 && (length || over == 0) {
						continue // once is enough of so many bytes
					}
					body := strings.Repeat("x", int(size+over))
					s := playing(act{Status: 200, Body: body, CloseDelimited: !length})
					d := onStage(t, s, resilience.WithMaxResponseBytes(test.client))
					out, err := resilience.CallBytes(t.Context(), d, op, requestOf(op), resilience.WithMaxResponseBytes(test.call))
					if over == 0 || test.want == 0 {
						if err != nil || string(out.Body) != body {
							t.Errorf("%d bytes: %v", len(body), err)
						}
						continue
					}
					isExactly(t, err, "ErrResponseTooLarge")
					e := errorOf(t, err)
					if e.Outcome != resilience.OutcomeDone || s.count() != 1 || string(e.Body) != body[:min(len(body)-1, 4<<10)] {
						t.Errorf("%d bytes: outcome %v after %d requests, %d bytes kept", len(body), e.Outcome, s.count(), len(e.Body))
					}
				}
			}
		})
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		resilience.FullJitter.String(): "full", resilience.EqualJitter.String(): "equal", resilience.NoJitter.String(): "none",
		resilience.OutcomeUnknown.String(): "unknown", resilience.OutcomeNotSent.String(): "not sent", resilience.OutcomeRejected.String(): "rejected", resilience.OutcomeDone.String(): "done",
		resilience.SafetyByMethod.String(): "by method", resilience.SafetyRead.String(): "read", resilience.SafetyIdempotent.String(): "idempotent", resilience.SafetyKeyed.String(): "keyed", resilience.SafetyUnsafe.String(): "unsafe",
		resilience.BreakerClosed.String(): "closed", resilience.BreakerHalfOpen.String(): "half-open", resilience.BreakerOpen.String(): "open",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
