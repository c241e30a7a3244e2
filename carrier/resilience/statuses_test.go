package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// outcomes by the words that Outcome.String has for them.
func outcomeOf(t testing.TB, word string) resilience.Outcome {
	t.Helper()
	for _, o := range []resilience.Outcome{resilience.OutcomeUnknown, resilience.OutcomeNotSent, resilience.OutcomeRejected, resilience.OutcomeDone} {
		if o.String() == word {
			return o
		}
	}
	t.Fatalf("there is no outcome %q", word)
	return 0
}

// verdict is what a row says of a call. The zero value says nothing.
type verdictData struct {
	Outcome string   `json:"outcome"`
	Is      []string `json:"is"`
}

type statusCase struct {
	Name
	Status      int         `json:"status"`
	Code        string      `json:"code"` // of problem details
	Header      http.Header `json:"header"`
	ContentType string      `json:"contentType"` // "-": none
	Body        string      `json:"body"`
	verdictData
	Read    *verdictData `json:"read"` // where a read, or a keyed call, differs
	Keyed   *verdictData `json:"keyed"`
	Retry   []string     `json:"retry"`   // the safeties for which it is retried
	Once    bool         `json:"once"`    // retried once at most
	Do      string       `json:"do"`      // "answer": a 2xx that is none of the API's; "success": Do cannot tell it from one
	Success bool         `json:"success"` // a documented success
}

func (c statusCase) act() act {
	a := act{Status: c.Status, Header: c.Header.Clone(), Body: c.Body}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	if c.Code != "" {
		a.Body = fmt.Sprintf(`{"title":"no","code":%q}`, c.Code)
		a.Header.Set("Content-Type", "application/problem+json")
	}
	switch c.ContentType {
	case "":
	case "-":
		a.Untyped = true
	default:
		a.Header.Set("Content-Type", c.ContentType)
	}
	return a
}

// verdict is what an error of this row must say for a safety.
func (c statusCase) verdict(safety string) verdictData {
	v := c.verdictData
	for s, special := range map[string]*verdictData{"read": c.Read, "keyed": c.Keyed} {
		if s == safety && special != nil {
			v.Outcome = special.Outcome
			if special.Is != nil {
				v.Is = special.Is
			}
		}
	}
	if v.Outcome == "unknown" && safety != "read" {
		v.Is = append(slices.Clone(v.Is), "ErrOutcomeUnknown")
	}
	return v
}

// attempts is how many requests of at most three the row leads to.
func (c statusCase) attempts(safety string) int {
	switch {
	case !slices.Contains(c.Retry, safety):
		return 1
	case c.Once:
		return 2
	default:
		return 3
	}
}

// live plays acts over a real socket.
type live struct {
	*httptest.Server
	mu   sync.Mutex
	acts []act
	got  []seen
}

func liveServer(t testing.TB, http2 bool) *live {
	t.Helper()
	l := &live{}
	l.Server = httptest.NewUnstartedServer(l)
	if http2 {
		l.EnableHTTP2 = true
		l.StartTLS()
	} else {
		l.Start()
	}
	t.Cleanup(l.Close)
	return l
}

// play makes the server forget what it has seen, and play these.
func (l *live) play(acts ...act) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts, l.got = acts, nil
}

func (l *live) requests() []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

func (l *live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	a := l.acts[min(len(l.got), len(l.acts)-1)]
	l.got = append(l.got, seen{Method: r.Method, URL: r.URL.String(), Body: string(body), Header: r.Header.Clone(), Length: r.ContentLength})
	l.mu.Unlock()
	for name, values := range a.response(r).Header {
		w.Header()[name] = values
	}
	if a.Untyped {
		w.Header()["Content-Type"] = nil // and no guess of net/http's either
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

// transport is one that trusts the server, and speaks its protocol.
func (l *live) transport() http.RoundTripper { return l.Client().Transport }

var protocols = []string{"HTTP/1.1", "HTTP/2"}

// ways are those in which a call can be made. Each returns the status of the
// answer that Do gave back, and the error.
var ways = map[string]func(ctx context.Context, d *resilience.Doer, base string, op *resilience.Operation) (int, error){
	"Call": func(ctx context.Context, d *resilience.Doer, _ string, op *resilience.Operation) (int, error) {
		options, _ := ctx.Value(optionsKey{}).([]resilience.CallOption)
		_, err := resilience.CallJSON[map[string]any](ctx, d, op, requestFor(ctx, op), options...)
		return 0, err
	},
	"Do": func(ctx context.Context, d *resilience.Doer, base string, op *resilience.Operation) (int, error) {
		options, _ := ctx.Value(optionsKey{}).([]resilience.CallOption)
		resp, err := d.Do(httpRequestOf(resilience.WithCall(ctx, options...), base, op))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	},
}

type optionsKey struct{}

func withOptions(ctx context.Context, options ...resilience.CallOption) context.Context {
	return context.WithValue(ctx, optionsKey{}, options)
}

// Every status, for every safety, through Call and Do, over real sockets.
func TestStatuses(t *testing.T) {
	cases := casesOf[statusCase](t, "statuses.json")
	for _, protocol := range protocols {
		server := liveServer(t, protocol == "HTTP/2")
		for _, safety := range safeties {
			op := opOf(safety)
			plain := []resilience.Option{
				resilience.WithBaseURL(server.URL), resilience.WithOperations(op), resilience.WithTransport(server.transport()),
				resilience.WithoutBreaker(), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
				resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}),
			}
			doers := map[string]*resilience.Doer{
				"Call": doerFor(t, plain...), "Do": doerFor(t, plain...),
				"Do WithStatusErrors": doerFor(t, append(plain, resilience.WithStatusErrors())...),
			}
			for way, d := range doers {
				for _, c := range cases {
					t.Run(strings.Join([]string{protocol, safety, way, c.Name.Name}, "/"), func(t *testing.T) {
						server.play(c.act())
						var info resilience.CallInfo
						status, err := ways[strings.TrimSuffix(way, " WithStatusErrors")](
							withOptions(t.Context(), resilience.WithCallInfo(&info)), d, server.URL, op)

						if n := len(server.requests()); n != c.attempts(safety) || info.Attempts != n || info.Sends != n {
							t.Errorf("%d requests arrived (%d attempts, %d sends), want %d", n, info.Attempts, info.Sends, c.attempts(safety))
						}
						if info.StatusCode != c.Status || info.Operation != op.ID {
							t.Errorf("info says %d of %s", info.StatusCode, info.Operation)
						}
						if want := c.Name.Name == "200 replayed" || strings.HasPrefix(c.Name.Name, "500 replayed"); info.Replayed != want {
							t.Errorf("Replayed = %v, want %v", info.Replayed, want)
						}
						fails := !c.Success
						switch way {
						case "Do":
							fails = false
						case "Do WithStatusErrors":
							fails = c.Do != "success"
						}
						if !fails {
							if err != nil || way != "Call" && status != c.Status {
								t.Fatalf("got %d, %v; want the answer", status, err)
							}
							return
						}
						want := c.verdict(safety)
						isExactly(t, err, want.Is...)
						e := errorOf(t, err)
						if e.Outcome != outcomeOf(t, want.Outcome) || e.StatusCode != c.Status || e.Attempts != c.attempts(safety) || e.Operation != op.ID {
							t.Errorf("outcome %v of %d after %d attempts; want %s: %v", e.Outcome, e.StatusCode, e.Attempts, want.Outcome, err)
						}
						if (e.IdempotencyKey != "") != (safety == "keyed") || e.IdempotencyKey != info.IdempotencyKey {
							t.Errorf("key %q on the error, %q in info", e.IdempotencyKey, info.IdempotencyKey)
						}
						if c.Code != "" && (e.Problem == nil || e.Problem.Code != c.Code || !strings.Contains(err.Error(), c.Code)) {
							t.Errorf("the code %s is missing: %+v, %v", c.Code, e.Problem, err)
						}
						if strings.Contains(err.Error(), "outcome unknown") != errors.Is(err, resilience.ErrOutcomeUnknown) {
							t.Errorf("the text and ErrOutcomeUnknown differ: %v", err)
						}
					})
				}
			}
		}
	}
}

// Statuses that the tables do not name follow the rule of their hundred.
func TestEveryStatusHasItsRule(t *testing.T) {
	named := map[int]bool{}
	for _, c := range casesOf[statusCase](t, "statuses.json") {
		named[c.Status] = true
	}
	for status := 300; status < 1000; status++ {
		if named[status] {
			continue
		}
		for _, safety := range safeties {
			s := playing(act{Status: status})
			err := callThing(t.Context(), onStage(t, s), opOf(safety))
			e := errorOf(t, err)
			var is []string
			want := resilience.OutcomeRejected
			if status < 400 && safety != "read" || status >= 500 {
				want = resilience.OutcomeUnknown
				if safety != "read" {
					is = append(is, "ErrOutcomeUnknown")
				}
			}
			if status >= 500 {
				is = append(is, "ErrUnavailable")
			}
			isExactly(t, err, is...)
			if e.Outcome != want || s.count() != 1 {
				t.Errorf("%d for %s: outcome %v after %d requests, want %v after 1", status, safety, e.Outcome, s.count(), want)
			}
		}
	}
}

// Kinds of documented success, and statuses by range.
func TestDocumentedSuccesses(t *testing.T) {
	tests := []struct {
		name    string
		success []resilience.Success
		act     act
		is      []string
		outcome resilience.Outcome
		accept  string
	}{
		{"none documented takes any 2xx", nil, act{Status: 299, Body: `{}`}, nil, 0, "application/json, application/problem+json"},
		{"an exact status before a range", []resilience.Success{{Status: 0, Kind: resilience.OtherAnswer}, {Status: 201, ContentTypes: []string{"application/json"}}}, act{Status: 201, Body: `{}`}, nil, 0, "application/json, application/problem+json"},
		{"a range", []resilience.Success{{Status: 201}, {ContentTypes: []string{"application/json"}}}, act{Status: 203, Body: `{}`}, nil, 0, "application/json, application/problem+json"},
		{"any type", []resilience.Success{{Status: 200, ContentTypes: []string{"*/*"}}}, act{Status: 200, Body: `{}`, Header: http.Header{"Content-Type": {"text/x"}}}, nil, 0, "*/*, application/problem+json"},
		{"any type, but none came", []resilience.Success{{Status: 200, ContentTypes: []string{"*/*"}}}, act{Status: 200, Body: `{}`, Untyped: true}, []string{"ErrMalformedResponse"}, resilience.OutcomeUnknown, "*/*, application/problem+json"},
		{"the second of two types", []resilience.Success{{Status: 200, ContentTypes: []string{"application/xml", "text/csv"}}}, act{Status: 200, Body: `{}`, Header: http.Header{"Content-Type": {"TEXT/CSV; x=y"}}}, nil, 0, "application/xml, text/csv, application/problem+json"},
		{"types of several statuses, once each", []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}, {Status: 201, ContentTypes: []string{"application/json", "text/csv"}}}, act{Status: 200, Body: `{}`}, nil, 0, "application/json, text/csv, application/problem+json"},
		{"not ready", []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}, {Status: 202, Kind: resilience.NotReadyAnswer}}, act{Status: 202}, []string{"ErrNotReady"}, resilience.OutcomeDone, "application/json, application/problem+json"},
		{"of another schema", []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}, {Status: 202, Kind: resilience.OtherAnswer}}, act{Status: 202, Body: `{"job":1}`}, []string{"ErrMalformedResponse"}, resilience.OutcomeDone, "application/json, application/problem+json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			op := &resilience.Operation{ID: "x", Method: "GET", Path: "/x", Success: test.success}
			s := playing(test.act)
			out, err := resilience.CallJSON[map[string]any](t.Context(), onStage(t, s), op, &resilience.Request{Path: "/x"})
			isExactly(t, err, test.is...)
			if got := s.requests()[0].Header.Get("Accept"); got != test.accept {
				t.Errorf("Accept: %s, want %s", got, test.accept)
			}
			if s.count() != 1 {
				t.Errorf("%d requests, want 1", s.count())
			}
			if test.is == nil {
				if err != nil || out == nil {
					t.Fatalf("got %v, %v", out, err)
				}
				return
			}
			if e := errorOf(t, err); e.Outcome != test.outcome || string(e.Body) != test.act.Body {
				t.Errorf("outcome %v, body %q; want %v, %q", e.Outcome, e.Body, test.outcome, test.act.Body)
			}
		})
	}
}

// A 202 of a document that is still being made says when to ask again.
func TestNotReadySaysWhen(t *testing.T) {
	op := &resilience.Operation{ID: "x", Method: "GET", Path: "/x", Success: []resilience.Success{{Status: 202, Kind: resilience.NotReadyAnswer}}}
	d := onStage(t, playing(act{Status: 202, Header: http.Header{"Retry-After": {"3"}}}))
	e := errorOf(t, d.Call(t.Context(), op, &resilience.Request{Path: "/x"}, nil))
	if e.RetryAfter.Seconds() != 3 || e.StatusCode != 202 {
		t.Errorf("RetryAfter = %v of %d, want 3s of 202", e.RetryAfter, e.StatusCode)
	}
}

// Other carriers have other words for "in progress" and "key reused".
func TestCodesOfTheOperation(t *testing.T) {
	op := opOf("keyed")
	op.InProgressCodes, op.KeyReusedCodes = []string{"busy", "wait"}, []string{"mismatch"}
	for _, test := range []struct {
		status int
		code   string
		is     []string
		sent   int
	}{
		{409, "wait", []string{"ErrConflict", "ErrInProgress", "ErrOutcomeUnknown"}, 3},
		{409, "idempotency_in_progress", []string{"ErrConflict"}, 1},
		{422, "mismatch", []string{"ErrKeyReused"}, 1},
		{422, "idempotency_key_reused", []string{"ErrInvalidRequest"}, 1},
	} {
		s := playing(act{Status: test.status, Body: fmt.Sprintf(`{"code":%q}`, test.code)})
		err := callThing(t.Context(), onStage(t, s, resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1})), op)
		isExactly(t, err, test.is...)
		if s.count() != test.sent {
			t.Errorf("%d %s: %d requests, want %d", test.status, test.code, s.count(), test.sent)
		}
	}
}

// A 2xx that the spec does not have for the operation is no success, and a 3xx
// on a write may have acted: neither is asked for again.
func TestStatusesThatTheSpecDoesNotHave(t *testing.T) {
	for status, test := range map[int]struct {
		malformed bool
		text      string
		breaker   resilience.BreakerState
	}{
		200: {true, "the spec has no 200 for it", resilience.BreakerOpen},
		202: {true, "the spec has no 202 for it", resilience.BreakerOpen},
		299: {true, "the spec has no 299 for it", resilience.BreakerOpen},
		300: {false, "redirect without a valid target", resilience.BreakerClosed},
		399: {false, "redirect without a valid target", resilience.BreakerClosed},
	} {
		d := connect(t, always(status, `{}`), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
		_, err := ship(t.Context(), d, `{}`)
		is(t, err, resilience.ErrOutcomeUnknown)
		if e := failureOf(t, err); errors.Is(err, resilience.ErrMalformedResponse) != test.malformed || e.Attempts != 1 || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%d: %v after %d attempts, want %q after one", status, err, e.Attempts, test.text)
		}
		if got := d.BreakerState("shipments"); got != test.breaker {
			t.Errorf("%d: the breaker is %v, want %v", status, got, test.breaker)
		}
	}
}
