package resilience_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// at once is a policy without waits.
func atOnce(p resilience.RetryPolicy) resilience.Option {
	p.BaseDelay = -1
	return resilience.WithRetry(p)
}

func TestMaxAttempts(t *testing.T) {
	for _, test := range []struct{ max, want int }{{0, 3}, {1, 1}, {2, 2}, {7, 7}} {
		s := playing(act{Status: 503})
		e := errorOf(t, callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{MaxAttempts: test.max})), opOf("read")))
		if e.Attempts != test.want || s.count() != test.want {
			t.Errorf("MaxAttempts %d: %d attempts, %d requests, want %d", test.max, e.Attempts, s.count(), test.want)
		}
	}
	// Negative: as many as time allows.
	synctest.Test(t, func(t *testing.T) {
		s := playing(act{Status: 503, Wait: 100 * time.Millisecond})
		e := errorOf(t, callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{MaxAttempts: -1}), resilience.WithTimeout(10*time.Second)), opOf("read")))
		if e.Attempts != 100 && e.Attempts != 99 {
			t.Errorf("%d attempts of 100 ms in 10 s", e.Attempts)
		}
	})
}

func TestRetryOptions(t *testing.T) {
	tests := []struct {
		name   string
		client []resilience.Option
		call   []resilience.CallOption
		want   int
	}{
		{"default", nil, nil, 3},
		{"off for the client", []resilience.Option{resilience.WithoutRetry()}, nil, 1},
		{"off for the call", nil, []resilience.CallOption{resilience.WithoutRetry()}, 1},
		{"off for the client, on for the call", []resilience.Option{resilience.WithoutRetry()},
			[]resilience.CallOption{resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 2, BaseDelay: -1})}, 2},
		{"the call's replaces the client's", nil, []resilience.CallOption{resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 4, BaseDelay: -1})}, 4},
		{"off, then on", []resilience.Option{resilience.WithoutRetry(), atOnce(resilience.RetryPolicy{})}, nil, 3},
		{"on, then off", nil, []resilience.CallOption{resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}), resilience.WithoutRetry()}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := playing(act{Status: 503})
			d := onStage(t, s, append([]resilience.Option{atOnce(resilience.RetryPolicy{})}, test.client...)...)
			_ = callThing(t.Context(), d, opOf("read"), test.call...)
			if s.count() != test.want {
				t.Errorf("%d requests, want %d", s.count(), test.want)
			}
		})
	}
}

// What is retried is Statuses, or Retryable in its place, of what is safe to repeat.
func TestWhatIsRetried(t *testing.T) {
	yes, no := func(resilience.Attempt) bool { return true }, func(resilience.Attempt) bool { return false }
	cut := act{Status: 200, Body: "{", BodyErr: errors.New("cut")}
	lost := act{Trace: "got", Err: errors.New("reset")}
	busy := act{Status: 409, Body: `{"code":"idempotency_in_progress"}`}
	tests := []struct {
		name   string
		policy resilience.RetryPolicy
		safety string
		act    act
		want   int
	}{
		{"a status that is listed", resilience.RetryPolicy{Statuses: []int{404}}, "read", act{Status: 404}, 3},
		{"a status that is not listed", resilience.RetryPolicy{Statuses: []int{404}}, "read", act{Status: 503}, 1},
		{"no statuses", resilience.RetryPolicy{Statuses: []int{}}, "read", act{Status: 503}, 1},
		{"no statuses, a lost answer", resilience.RetryPolicy{Statuses: []int{}}, "read", lost, 3},
		{"no statuses, a cut answer", resilience.RetryPolicy{Statuses: []int{}}, "read", cut, 3},
		{"no statuses, in progress", resilience.RetryPolicy{Statuses: []int{}}, "keyed", busy, 3},
		{"listed, but not safe", resilience.RetryPolicy{Statuses: []int{503}}, "unsafe", act{Status: 503}, 1},
		{"listed, refused for good: harmless", resilience.RetryPolicy{Statuses: []int{404}}, "unsafe", act{Status: 404}, 3},
		{"listed redirect of a write", resilience.RetryPolicy{Statuses: []int{302}}, "keyed", act{Status: 302}, 1},
		{"525 on demand", resilience.RetryPolicy{Statuses: []int{525}}, "read", act{Status: 525}, 3},
		{"Retryable says no", resilience.RetryPolicy{Retryable: no}, "read", act{Status: 503}, 1},
		{"Retryable says no to a lost answer", resilience.RetryPolicy{Retryable: no}, "read", lost, 1},
		{"Retryable says no to in progress", resilience.RetryPolicy{Retryable: no}, "keyed", busy, 1},
		{"Retryable says yes", resilience.RetryPolicy{Retryable: yes, Statuses: []int{}}, "read", act{Status: 404}, 3},
		{"Retryable is not asked for what is not safe", resilience.RetryPolicy{Retryable: func(resilience.Attempt) bool { panic("asked") }}, "unsafe", act{Status: 503}, 1},
		{"Retryable is not asked for an unreadable answer", resilience.RetryPolicy{Retryable: func(resilience.Attempt) bool { panic("asked") }}, "read", act{Status: 200, Body: "{"}, 1},
		{"421 once at most, whatever Retryable says", resilience.RetryPolicy{Retryable: yes, MaxAttempts: 9}, "read", act{Status: 421}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := playing(test.act)
			err := callThing(t.Context(), onStage(t, s, atOnce(test.policy)), opOf(test.safety))
			if e := errorOf(t, err); s.count() != test.want || e.Attempts != test.want {
				t.Errorf("%d requests, %d attempts, want %d", s.count(), e.Attempts, test.want)
			}
		})
	}
}

// 421 counts for the call, not in a row.
func TestMisdirectedTwice(t *testing.T) {
	s := playing(act{Status: 421}, act{Status: 503}, act{Status: 421}, act{Status: 200, Body: `{}`})
	e := errorOf(t, callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{MaxAttempts: 9})), opOf("read")))
	if e.Attempts != 3 || e.StatusCode != 421 {
		t.Errorf("%d attempts, then %d; want 3, and the second 421", e.Attempts, e.StatusCode)
	}
}

// What the hooks see of an attempt.
func TestAttemptOfHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acts := []act{
			{Status: 503, Header: http.Header{"X-Request-Id": {"r1"}}, Body: `{"code":"busy"}`, Wait: 2 * time.Second},
			{Trace: "asked", Err: errors.New("no route"), Wait: time.Second},
			{Status: 200, Body: "{", BodyErr: errors.New("cut")},
			{Status: 429},
			{Status: 200, Body: `{}`},
		}
		var asked, told []resilience.Attempt
		policy := resilience.RetryPolicy{
			MaxAttempts: 9, BaseDelay: time.Second, Jitter: resilience.NoJitter, Multiplier: 1,
			Retryable: func(a resilience.Attempt) bool { asked = append(asked, a); return true },
			OnRetry:   func(a resilience.Attempt, _ time.Duration) { told = append(told, a) },
		}
		var info resilience.CallInfo
		d := onStage(t, playing(acts...), resilience.WithRetry(policy))
		if err := callThing(t.Context(), d, opOf("keyed"), resilience.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		want := []struct {
			status  int
			outcome resilience.Outcome
			elapsed time.Duration
			is      []string
			text    string
		}{
			{503, resilience.OutcomeUnknown, 2 * time.Second, nil, "<nil>"},
			{0, resilience.OutcomeNotSent, time.Second, []string{"ErrUnavailable"}, "no route"},
			{200, resilience.OutcomeDone, 0, []string{"ErrUnavailable"}, "200 OK: the answer was cut: cut"},
			{429, resilience.OutcomeRejected, 0, nil, "<nil>"},
		}
		if len(asked) != len(want) || len(told) != len(want) {
			t.Fatalf("Retryable was asked %d times, OnRetry %d times, want %d", len(asked), len(told), len(want))
		}
		for i, w := range want {
			for _, got := range []resilience.Attempt{asked[i], told[i]} {
				if got.Operation != "makeThing" || got.Number != i+1 || got.StatusCode != w.status || got.Outcome != w.outcome || got.Elapsed != w.elapsed {
					t.Errorf("attempt %d is %+v, want %+v", i+1, got, w)
				}
				isExactly(t, got.Err, w.is...)
				if fmt.Sprint(got.Err) != w.text {
					t.Errorf("attempt %d: Err is %q, want %q", i+1, got.Err, w.text)
				}
				if (got.Header != nil) != (w.status != 0) {
					t.Errorf("attempt %d: header %v", i+1, got.Header)
				}
			}
		}
		if asked[0].Header.Get("X-Request-Id") != "r1" {
			t.Errorf("the header is missing: %v", asked[0].Header)
		}
		if info.Attempts != 5 || info.Elapsed != 7*time.Second || info.StatusCode != 200 {
			t.Errorf("info is %+v", info)
		}
	})
}

// The outcome of a call is that of all its attempts.
func TestOutcomeOfAllAttempts(t *testing.T) {
	var (
		unsent   = act{Trace: "asked", Err: errors.New("dial")}
		rejected = act{Status: 429}
		final    = act{Status: 400, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: `{"code":"malformed"}`}
		page     = act{Status: 400, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>"}
		denied   = act{Status: 401}
		unknown  = act{Status: 503}
		done     = act{Status: 200, Body: "{", BodyErr: errors.New("cut")}
	)
	tests := []struct {
		name   string
		safety string
		acts   []act
		want   resilience.Outcome
	}{
		{"never sent", "keyed", []act{unsent, unsent, unsent}, resilience.OutcomeNotSent},
		{"refused, then not sent", "keyed", []act{rejected, unsent, unsent}, resilience.OutcomeRejected},
		{"not sent, then refused", "keyed", []act{unsent, rejected, rejected}, resilience.OutcomeRejected},
		{"not sent, then refused, unsafe", "unsafe", []act{unsent, unsent, rejected}, resilience.OutcomeRejected},
		{"unknown, then not sent", "keyed", []act{unknown, unsent, unsent}, resilience.OutcomeUnknown},
		{"unknown, then refused", "keyed", []act{unknown, rejected, rejected}, resilience.OutcomeUnknown},
		{"not sent, then unknown", "keyed", []act{unsent, unknown, unsent}, resilience.OutcomeUnknown},
		{"refused, then unknown", "keyed", []act{rejected, rejected, unknown}, resilience.OutcomeUnknown},
		{"refused, then unknown, unsafe", "unsafe", []act{rejected, unknown}, resilience.OutcomeUnknown},
		{"unknown, then done", "keyed", []act{unknown, done, done}, resilience.OutcomeDone},
		{"done, then unknown", "keyed", []act{done, unknown, unknown}, resilience.OutcomeDone},
		{"done, then not sent", "keyed", []act{done, unsent, unsent}, resilience.OutcomeDone},
		{"done, then refused", "idempotent", []act{done, rejected, rejected}, resilience.OutcomeDone},
		{"unknown, then the verdict of the layer that knows the key", "keyed", []act{unknown, final}, resilience.OutcomeRejected},
		{"unknown, then a gateway's page", "keyed", []act{unknown, page}, resilience.OutcomeUnknown},
		{"unknown, then a verdict without a key", "idempotent", []act{unknown, final}, resilience.OutcomeUnknown},
		{"unknown, then a 401, from before that layer", "keyed", []act{unknown, denied}, resilience.OutcomeUnknown},
		{"unknown, then a 403, from before that layer", "keyed", []act{unknown, {Status: 403}}, resilience.OutcomeUnknown},
		{"done, then the verdict of that layer", "keyed", []act{done, final}, resilience.OutcomeDone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := playing(test.acts...)
			err := callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{})), opOf(test.safety))
			e := errorOf(t, err)
			if e.Outcome != test.want || e.Attempts != len(test.acts) {
				t.Errorf("outcome %v after %d attempts, want %v after %d: %v", e.Outcome, e.Attempts, test.want, len(test.acts), err)
			}
			if got, want := errors.Is(err, resilience.ErrOutcomeUnknown), test.want == resilience.OutcomeUnknown; got != want {
				t.Errorf("ErrOutcomeUnknown: %v, want %v", got, want)
			}
		})
	}
}

// The error shows the last answer, also where a later attempt got none.
func TestLastAnswerIsKept(t *testing.T) {
	s := playing(act{Status: 502, Header: http.Header{"X-Request-Id": {"r1"}}, Body: `{"code":"first"}`},
		act{Status: 503, Header: http.Header{"X-Request-Id": {"r2"}, "Retry-After": {"0"}}, Body: `{"code":"second"}`},
		act{Trace: "got", Err: errors.New("reset by peer")})
	err := callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{})), opOf("read"))
	e := errorOf(t, err)
	if e.StatusCode != 503 || e.RequestID != "r2" || e.Problem == nil || e.Problem.Code != "second" || string(e.Body) != `{"code":"second"}` || e.RetryAfter != 0 {
		t.Errorf("%d %q %+v %s %v", e.StatusCode, e.RequestID, e.Problem, e.Body, e.RetryAfter)
	}
	if want := "getThing: reset by peer (3 attempts, request r2)"; err.Error() != want {
		t.Errorf("the text is %q, want %q", err, want)
	}
}

// Every attempt sends the same: method, URL, headers, bytes.
func TestAttemptsAreAlike(t *testing.T) {
	for _, safety := range safeties {
		for way := range ways {
			t.Run(safety+"/"+way, func(t *testing.T) {
				op, s := opOf(safety), playing(act{Status: 429}, act{Status: 429}, act{Status: 200, Body: `{}`})
				d := onStage(t, s, resilience.WithOperations(op), atOnce(resilience.RetryPolicy{}), resilience.WithCredential("X-Api-Key", "k1"))
				if _, err := ways[way](t.Context(), d, origin+"/v1", op); err != nil {
					t.Fatal(err)
				}
				got := s.requests()
				for i, r := range got {
					first := got[0]
					if r.Method != first.Method || r.URL != first.URL || r.Body != first.Body || r.Length != first.Length || !equalHeaders(r.Header, first.Header) {
						t.Errorf("attempt %d sent %+v, the first %+v", i+1, r, first)
					}
				}
				want := requestOf(op)
				r := got[0]
				if len(got) != 3 || r.URL != origin+"/v1"+want.Path || r.Body != string(want.Body) || r.Length != int64(len(want.Body)) ||
					r.Header.Get("X-Api-Key") != "k1" || r.Header.Get("Content-Type") != want.ContentType || r.Header.Get("User-Agent") != "carrier-go" {
					t.Errorf("%d requests, the first %+v", len(got), r)
				}
				if key := r.Header.Values("Idempotency-Key"); len(key) != map[string]int{"keyed": 1}[safety] {
					t.Errorf("keys: %q", key)
				}
				if r.GetBody != (len(want.Body) > 0 && safety != "unsafe") {
					t.Errorf("GetBody is there: %v", r.GetBody)
				}
			})
		}
	}
}

func equalHeaders(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for name, values := range a {
		if !slices.Equal(values, b[name]) {
			return false
		}
	}
	return true
}

// A retried answer decodes into a clean result: nothing is left of the one before.
func TestDecodeStartsClean(t *testing.T) {
	type thing struct{ A, B string }
	cut := act{Status: 200, Body: `{"A":"old","B":"old"} `, BodyErr: errors.New("cut")}
	early := act{Status: 200, Body: `{"A":"old","B":`, CloseDelimited: true}
	s := playing(cut, early, act{Status: 200, Body: `{"B":"new"}`})
	out, err := resilience.CallJSON[thing](t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{})), opOf("read"), requestOf(opOf("read")))
	if err != nil || *out != (thing{B: "new"}) {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A key that the carrier will soon have forgotten is not sent again.
func TestKeyTimeToLive(t *testing.T) {
	for _, test := range []struct {
		name string
		ttl  time.Duration
		wait time.Duration
		want int
	}{
		{"the default of 24 h, just in time", 0, 24*time.Hour - time.Minute - 1, 2},
		{"the default of 24 h, too late", 0, 24*time.Hour - time.Minute, 1},
		{"ten minutes, just in time", 10 * time.Minute, 9*time.Minute - 1, 2},
		{"ten minutes, too late", 10 * time.Minute, 9 * time.Minute, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, safety := range []string{"keyed", "idempotent"} {
					op := opOf(safety)
					op.KeyTTL = test.ttl
					s := playing(act{Status: 503}, act{Status: 200, Body: `{}`})
					d := onStage(t, s, resilience.WithTimeout(-1), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: test.wait, MaxDelay: -1, Jitter: resilience.NoJitter}))
					err := callThing(t.Context(), d, op)
					want := test.want
					if safety != "keyed" {
						want = 2
					}
					if s.count() != want || (err == nil) != (want == 2) {
						t.Errorf("%s: %d requests, %v; want %d", safety, s.count(), err, want)
					}
				}
			})
		})
	}
}

// The time to live counts from when the key was first sent, over all attempts.
func TestKeyTimeToLiveCountsFromTheFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := opOf("keyed")
		op.KeyTTL = 10 * time.Minute
		s := playing(act{Status: 503})
		d := onStage(t, s, resilience.WithTimeout(-1), resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: -1, BaseDelay: time.Minute, MaxDelay: -1, Multiplier: -1, Jitter: resilience.NoJitter}))
		err := callThing(t.Context(), d, op)
		isExactly(t, err, "ErrUnavailable", "ErrOutcomeUnknown")
		if s.count() != 9 {
			t.Errorf("%d requests, one a minute; want 9, the last in the eighth minute", s.count())
		}
		if !strings.Contains(err.Error(), "look it up") {
			t.Errorf("the text does not say to look it up: %v", err)
		}
	})
}
