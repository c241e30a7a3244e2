package resilience_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// The text of an error, to the letter.
func TestErrorTexts(t *testing.T) {
	lost := errors.New("read tcp: connection reset by peer")
	tests := []struct {
		name   string
		safety string
		acts   []act
		want   string
	}{
		{"a status", "read", []act{{Status: 404}}, "getThing: 404 Not Found (1 attempt)"},
		{"a code", "read", []act{{Status: 404, Body: `{"code":"tracking_not_found"}`}}, "getThing: 404 Not Found (tracking_not_found) (1 attempt)"},
		{"a status without a name", "read", []act{{Status: 599}}, "getThing: status 599 (1 attempt)"},
		{"an id", "read", []act{{Status: 403, Header: http.Header{"X-Request-Id": {"r-1"}}}}, "getThing: 403 Forbidden (1 attempt, request r-1)"},
		{"two attempts", "read", []act{{Status: 503}, {Status: 500}, {Status: 404}}, "getThing: 404 Not Found (3 attempts)"},
		{"a wish", "read", []act{{Status: 429, Header: http.Header{"Retry-After": {"3600"}}}}, "getThing: 429 Too Many Requests; retry after 1h0m0s (1 attempt)"},
		{"a short wish", "unsafe", []act{{Status: 503, Header: http.Header{"Retry-After-Ms": {"1234"}}}}, "pokeThing: 503 Service Unavailable; outcome unknown, repeat with the same idempotency key or look it up; retry after 1.234s (1 attempt)"},
		{"a very short wish", "unsafe", []act{{Status: 400, Header: http.Header{"Retry-After-Ms": {"9"}}}}, "pokeThing: 400 Bad Request; retry after 9ms (1 attempt)"},
		{"no answer", "read", []act{{Trace: "got", Err: lost}}, "getThing: read tcp: connection reset by peer (3 attempts)"},
		{"no answer to a write", "keyed", []act{{Trace: "got", Err: lost}}, "makeThing: read tcp: connection reset by peer; outcome unknown, repeat with the same idempotency key or look it up (3 attempts)"},
		{"text in several lines", "read", []act{{Trace: "got", Err: errors.New("a\r\nb\t c\x7fd\x00")}}, "getThing: a b c d (3 attempts)"},
		{"a long text", "read", []act{{Trace: "got", Err: errors.New(strings.Repeat("x", 301))}}, "getThing: " + strings.Repeat("x", 300) + "… (3 attempts)"},
		{"just not too long a text", "read", []act{{Trace: "got", Err: errors.New(strings.Repeat("x", 300))}}, "getThing: " + strings.Repeat("x", 300) + " (3 attempts)"},
		{"another type", "read", []act{{Status: 200, Header: http.Header{"Content-Type": {"text/html; a=b"}}}}, "getThing: 200 OK: malformed response: media type text/html; a=b (1 attempt)"},
		{"a long type", "read", []act{{Status: 200, Header: http.Header{"Content-Type": {"text/" + strings.Repeat("x", 100)}}}}, "getThing: 200 OK: malformed response: media type text/" + strings.Repeat("x", 75) + " (1 attempt)"},
		{"no type", "read", []act{{Status: 200, Untyped: true}}, "getThing: 200 OK: malformed response: media type none (1 attempt)"},
		{"an undocumented 2xx", "read", []act{{Status: 202}}, "getThing: 202 Accepted: malformed response: the spec has no 202 for it (1 attempt)"},
		{"no JSON", "read", []act{{Status: 200, Body: `{"a":x}`}}, "getThing: 200 OK: malformed response: no valid JSON at byte 6 (1 attempt)"},
		{"JSON of another kind", "read", []act{{Status: 200, Body: ` [1]`}}, "getThing: 200 OK: malformed response: a JSON array where a map[string]interface {} belongs, at byte 2 (1 attempt)"},
		{"null", "read", []act{{Status: 200, Body: "null"}}, "getThing: 200 OK: malformed response: null where a result belongs (1 attempt)"},
		{"a cut answer", "read", []act{{Status: 200, Body: "{", BodyErr: errors.New("unexpected EOF")}}, "getThing: 200 OK: the answer was cut: unexpected EOF (3 attempts)"},
		{"not modified", "read", []act{{Status: 304}}, "getThing: 304 Not Modified (1 attempt)"},
		{"neither answer nor error", "read", []act{{NoResponse: true}}, "getThing: the transport returned neither an answer nor an error (3 attempts)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := callThing(t.Context(), onStage(t, playing(test.acts...), atOnce(resilience.RetryPolicy{})), opOf(test.safety))
			if err.Error() != test.want {
				t.Errorf("got\n%q, want\n%q", err, test.want)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
				if got := fmt.Sprintf(verb, err); got != test.want {
					t.Errorf("%s: %q", verb, got)
				}
			}
			if got := fmt.Sprintf("%q", err); got != fmt.Sprintf("%q", test.want) {
				t.Errorf("%%q: %s", got)
			}
		})
	}
}

// An Error that somebody else made says what it can.
func TestErrorOfOthers(t *testing.T) {
	for want, e := range map[string]*resilience.Error{
		"failed (not sent)":                                      {},
		"x: failed (not sent)":                                   {Operation: "x"},
		"x: 404 Not Found (1 attempt)":                           {Operation: "x", StatusCode: 404, Attempts: 1},
		"x: status 999; retry after 11s (2 attempts, request r)": {Operation: "x", StatusCode: 999, Attempts: 2, RequestID: "r", RetryAfter: 11400 * time.Millisecond},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
	}
}

// log/slog gets the fields that are safe to keep, and no others.
func TestErrorInLogs(t *testing.T) {
	d := onStage(t, playing(act{Status: 409, Body: `{"code":"busy \n\u00e9","detail":"hush"}`, Header: http.Header{"X-Request-Id": {"r-1"}, "Retry-After": {"7"}, "X-Hush": {"hush"}}}), resilience.WithoutRetry())
	err := callThing(t.Context(), d, opOf("keyed"), resilience.WithIdempotencyKey("k-1"))
	want := map[string]any{
		"message":   "makeThing: 409 Conflict; retry after 7s (1 attempt, request r-1)",
		"operation": "makeThing", "outcome": "rejected", "attempts": 1.0, "status": 409.0, "code": "busy ", "request_id": "r-1", "idempotency_key": "k-1", "retry_after": 7e9,
	}
	if got := logged(t, err); !reflect.DeepEqual(got, want) {
		t.Errorf("logged\n%v, want\n%v", got, want)
	}
	want = map[string]any{"message": "x: invalid request: no (not sent)", "operation": "x", "outcome": "not sent", "attempts": 0.0}
	if got := logged(t, resilience.Refuse(&resilience.Operation{ID: "x"}, errors.New("no"))); !reflect.DeepEqual(got, want) {
		t.Errorf("logged\n%v, want\n%v", got, want)
	}
}

func logged(t *testing.T, err error) map[string]any {
	t.Helper()
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Error("x", "err", err)
	var line struct{ Err map[string]any }
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	return line.Err
}

// What an error is made of can be found in it, and nothing of the transport's
// contexts in the caller's place.
func TestErrorChain(t *testing.T) {
	fault := &faulty{}
	err := callThing(t.Context(), onStage(t, playing(act{Trace: "got", Err: fmt.Errorf("a: %w", fault)}), resilience.WithoutRetry()), opOf("read"))
	var found *faulty
	if !errors.Is(err, fault) || !errors.As(err, &found) || found != fault {
		t.Errorf("the transport's error is not in %v", err)
	}
	syntax := new(json.SyntaxError)
	err = callThing(t.Context(), onStage(t, playing(act{Status: 200, Body: "{"})), opOf("read"))
	if !errors.As(err, &syntax) {
		t.Errorf("the decoder's error is not in %v", err)
	}
	mine := errors.New("not what I want")
	err = onStage(t, playing(act{Status: 200, Body: "{}"})).Call(t.Context(), opOf("read"), requestOf(opOf("read")), func(*resilience.Response) error { return mine })
	isExactly(t, err, "ErrMalformedResponse")
	if !errors.Is(err, mine) || err.Error() != "getThing: 200 OK: malformed response: the body does not decode (1 attempt)" {
		t.Errorf("the caller's decoder said %v", err)
	}
}

type faulty struct{}

func (*faulty) Error() string { return "fault" }

// The error is the caller's: what is done to its fields stays there.
func TestErrorIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := onStage(t, playing(act{Status: 400, Wait: time.Second, Body: `{"code":"x","errors":[{"code":"y"}],"more":1}`, Header: http.Header{"X-A": {"a"}}}))
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- callThing(t.Context(), d, opOf("keyed"), resilience.WithIdempotencyKey("k")) }()
		}
		one, two := errorOf(t, <-errs), errorOf(t, <-errs)
		one.Header.Set("X-A", "changed")
		one.Body[0] = '!'
		one.Problem.Code = "changed"
		one.Problem.Errors[0].Code = "changed"
		one.Problem.Extensions["more"][0] = '2'
		one.Problem.Extensions["less"] = nil
		if two.Header.Get("X-A") != "a" || two.Body[0] != '{' || two.Problem.Code != "x" || two.Problem.Errors[0].Code != "y" || string(two.Problem.Extensions["more"]) != "1" || len(two.Problem.Extensions) != 2 {
			t.Errorf("the other one's error is %+v, %s, %+v", two.Header, two.Body, two.Problem)
		}
	})
}

// What is logged, and at which level.
func TestLogger(t *testing.T) {
	for level, want := range map[slog.Level][]string{
		slog.LevelDebug: {
			`level=DEBUG msg="attempt failed" operation=getThing attempt=1 reason="503 Service Unavailable (busy)" status=503 elapsed=1s outcome=unknown`,
			`level=WARN msg=retrying operation=getThing attempt=1 reason="503 Service Unavailable (busy)" status=503 wait=100ms`,
			`level=DEBUG msg="attempt failed" operation=getThing attempt=2 reason="no route" elapsed=0s outcome="not sent"`,
			`level=WARN msg="circuit breaker changed" group=things from=closed to=open`,
		},
		slog.LevelWarn: {
			`level=WARN msg=retrying operation=getThing attempt=1 reason="503 Service Unavailable (busy)" status=503 wait=100ms`,
			`level=WARN msg="circuit breaker changed" group=things from=closed to=open`,
		},
		slog.LevelError: nil,
	} {
		t.Run(level.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}}))
				var changes []string
				op := opOf("read")
				op.Group = "things"
				d := doerFor(t, resilience.WithBaseURL(origin), resilience.WithLogger(logger),
					resilience.WithTransport(playing(act{Status: 503, Wait: time.Second, Body: `{"code":"busy","detail":"hush"}`, Header: http.Header{"X-Hush": {"hush"}}}, act{Trace: "asked", Err: errors.New("no route")})),
					resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 2, Jitter: resilience.NoJitter}),
					resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 2, OnStateChange: func(group string, from, to resilience.BreakerState) {
						changes = append(changes, fmt.Sprint(group, " ", from, " ", to))
					}}))
				if err := d.Call(t.Context(), op, &resilience.Request{Path: "/things/a1", Query: "q=hush"}, nil); err == nil {
					t.Error("no error")
				}
				var got []string
				for line := range strings.Lines(b.String()) {
					got = append(got, strings.TrimSpace(line))
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if !slices.Equal(changes, []string{"things closed open"}) {
					t.Errorf("OnStateChange was told %v", changes)
				}
			})
		})
	}
}

// The ways to call, and what each returns.
func TestWaysToCall(t *testing.T) {
	op := opOf("read")
	answer := act{Status: 200, Body: `{"a":1}`, Header: http.Header{"X-A": {"a"}}}
	d := onStage(t, playing(answer))
	if err := d.Call(t.Context(), op, requestOf(op), nil); err != nil {
		t.Errorf("Call without decode: %v", err)
	}
	var got *resilience.Response
	if err := d.Call(t.Context(), op, requestOf(op), func(r *resilience.Response) error { got = r; return nil }); err != nil || got.StatusCode != 200 || string(got.Body) != `{"a":1}` || got.Header.Get("X-A") != "a" {
		t.Errorf("Call: %+v, %v", got, err)
	}
	if out, err := resilience.CallJSON[struct{ A int }](t.Context(), d, op, requestOf(op)); err != nil || out.A != 1 {
		t.Errorf("CallJSON: %+v, %v", out, err)
	}
	if out, err := resilience.CallBytes(t.Context(), d, op, requestOf(op)); err != nil || out.StatusCode != 200 || string(out.Body) != `{"a":1}` || out.Header.Get("X-A") != "a" {
		t.Errorf("CallBytes: %+v, %v", out, err)
	}
	d = onStage(t, playing(act{Status: 404}))
	if out, err := resilience.CallJSON[int](t.Context(), d, op, requestOf(op)); out != nil || !errors.Is(err, resilience.ErrNotFound) {
		t.Errorf("CallJSON: %v, %v", out, err)
	}
	if out, err := resilience.CallBytes(t.Context(), d, op, requestOf(op)); out != nil || !errors.Is(err, resilience.ErrNotFound) {
		t.Errorf("CallBytes: %v, %v", out, err)
	}
	if out, err := resilience.CallStream(t.Context(), d, op, requestOf(op)); out != nil || !errors.Is(err, resilience.ErrNotFound) {
		t.Errorf("CallStream: %v, %v", out, err)
	}
}

// CallInfo is filled whether the call failed or not.
func TestCallInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := playing(act{Status: 503, Wait: time.Second}, act{Status: 200, Wait: time.Second, Body: `{}`, Header: http.Header{"X-Request-Id": {"r-2"}, "Set-Cookie": {"a=b"}, "Idempotency-Replayed": {"true"}}})
		info := resilience.CallInfo{Operation: "stale", Header: http.Header{"Old": {"1"}}}
		if err := callThing(t.Context(), onStage(t, s), opOf("keyed"), resilience.WithCallInfo(&info), resilience.WithIdempotencyKey("k")); err != nil {
			t.Fatal(err)
		}
		want := resilience.CallInfo{
			Operation: "makeThing", Attempts: 2, Sends: 0, StatusCode: 200, RequestID: "r-2", IdempotencyKey: "k", Replayed: true, Elapsed: 2100 * time.Millisecond,
			Header: http.Header{"X-Request-Id": {"r-2"}, "Idempotency-Replayed": {"true"}, "Content-Type": {"application/json"}},
		}
		if !reflect.DeepEqual(info, want) {
			t.Errorf("got\n%+v, want\n%+v", info, want)
		}
		d := onStage(t, playing(act{Trace: "asked", Err: errors.New("no")}), resilience.WithoutRetry())
		if err := callThing(t.Context(), d, opOf("read"), resilience.WithCallInfo(&info)); err == nil {
			t.Fatal("no error")
		}
		if want := (resilience.CallInfo{Operation: "getThing", Attempts: 1}); !reflect.DeepEqual(info, want) {
			t.Errorf("got\n%+v, want\n%+v", info, want)
		}
		// A call that is refused leaves nothing of the one before.
		for _, option := range []resilience.CallOption{resilience.WithIdempotencyKey("k"), resilience.WithHeader("Host", "x")} {
			info.Attempts, info.StatusCode = 7, 200
			isExactly(t, callThing(t.Context(), d, opOf("read"), resilience.WithCallInfo(&info), option), "ErrInvalidRequest")
			if want := (resilience.CallInfo{Operation: "getThing"}); !reflect.DeepEqual(info, want) {
				t.Errorf("refused: got\n%+v, want\n%+v", info, want)
			}
		}
	})
}

// A transport that returns an answer and an error gets its body closed, and one
// without a body is one of no bytes.
func TestOddTransports(t *testing.T) {
	body := &closing{Reader: strings.NewReader("x")}
	both := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := act{Status: 200}.response(r)
		resp.Body = body
		return resp, errors.New("both")
	})
	err := callThing(t.Context(), doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(both), resilience.WithoutRetry()), opOf("read"))
	if e := errorOf(t, err); body.closed != 1 || e.StatusCode != 0 || err.Error() != "getThing: both (1 attempt)" {
		t.Errorf("%v; the body was closed %d times", err, body.closed)
	}
	bare := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 404}, nil
	})
	d := doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(bare))
	isExactly(t, callThing(t.Context(), d, opOf("read")), "ErrNotFound")
	resp, err := d.Do(httpRequestOf(t.Context(), origin, opOf("read")))
	if err != nil || resp.StatusCode != 404 || resp.Body == nil {
		t.Errorf("%v, %v", resp, err)
	}
}

// Whatever the caller's context carries, the transport finds it in its request's.
func TestContextValuesArrive(t *testing.T) {
	type key struct{}
	var got any
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Context().Value(key{})
		return act{Status: 200, Body: `{}`}.response(r), nil
	})
	if err := callThing(context.WithValue(t.Context(), key{}, "mine"), doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(rt)), opOf("read")); err != nil || got != "mine" {
		t.Errorf("%v, %v", got, err)
	}
}

// A text has durations that are fit for people.
func TestDurationsInTexts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond:          "1.234ms",
		10 * time.Millisecond:            "10ms",
		12345678 * time.Nanosecond:       "12ms",
		1234567 * time.Microsecond:       "1.235s",
		9999600 * time.Microsecond:       "10s",
		12600 * time.Millisecond:         "13s",
		time.Hour + 400*time.Millisecond: "1h0m0s",
	} {
		err := &resilience.Error{Operation: "getThing", StatusCode: 429, RetryAfter: d, Attempts: 1}
		if got := err.Error(); got != "getThing: 429 Too Many Requests; retry after "+want+" (1 attempt)" {
			t.Errorf("%v: %q, want %s", d, got, want)
		}
	}
}
