package resilience_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type deadlineCase struct {
	Name
	Timeout    span   `json:"timeout"` // of the client
	Attempt    span   `json:"attempt"`
	Context    span   `json:"context"` // of the caller, from now on; zero: none
	Wait       span   `json:"wait"`    // the planned backoff
	RetryAfter string `json:"retryAfter"`
	Stop       bool   `json:"stop"`   // the answer is returned at once
	Second     span   `json:"second"` // what the second attempt has; zero: no limit
}

// A wait is begun only if an attempt has room after it.
func TestStopRule(t *testing.T) {
	for _, c := range casesOf[deadlineCase](t, "deadlines.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy := act{Status: 503, Body: `{"title":"busy"}`}
				if c.RetryAfter != "" {
					busy.Header = http.Header{"Retry-After": {c.RetryAfter}}
				}
				s := playing(busy, act{Status: 200, Body: `{}`})
				d := onStage(t, s, resilience.WithTimeout(c.Timeout.d()), resilience.WithAttemptTimeout(c.Attempt.d()),
					resilience.WithRetry(resilience.RetryPolicy{BaseDelay: c.Wait.d(), MaxDelay: -1, Jitter: resilience.NoJitter}))
				ctx := t.Context()
				if c.Context > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.Context.d())
					defer cancel()
				}
				begun := time.Now()
				err := callThing(ctx, d, opOf("read"))
				took := time.Since(begun)
				if c.Stop {
					isExactly(t, err, "ErrUnavailable")
					e := errorOf(t, err)
					if took != 0 || s.count() != 1 || e.StatusCode != 503 || e.Timeout != 0 || e.Problem == nil || e.Problem.Title != "busy" {
						t.Errorf("after %v and %d requests: %d, Timeout %v, %+v; want the 503 at once", took, s.count(), e.StatusCode, e.Timeout, e.Problem)
					}
					if want := map[bool]time.Duration{true: time.Hour}[c.RetryAfter != ""]; e.RetryAfter != want {
						t.Errorf("RetryAfter = %v, want %v", e.RetryAfter, want)
					}
					return
				}
				if err != nil || took != c.Wait.d() || s.count() != 2 {
					t.Fatalf("after %v and %d requests: %v; want success after %v", took, s.count(), err, c.Wait.d())
				}
				if got := left(s.requests()[1]); got != c.Second.d() {
					t.Errorf("the second attempt had %v, want %v", got, c.Second.d())
				}
			})
		})
	}
}

// left is the time that a request had; zero if it was not limited.
func left(r seen) time.Duration {
	if r.Deadline.IsZero() {
		return 0
	}
	return r.Deadline.Sub(r.At)
}

type limitCase struct {
	Name
	Op      span `json:"op"`
	Client  span `json:"client"`
	Call    span `json:"call"`
	Total   span `json:"total"`   // what holds if it is the total that is set; 0: none
	Attempt span `json:"attempt"` // if it is the attempt's limit
}

// The rank of time limits: default < operation < client < call, as the request
// sees it, through Call and Do.
func TestRankOfLimits(t *testing.T) {
	for _, c := range casesOf[limitCase](t, "limits.json") {
		for way := range ways {
			for _, what := range []string{"total", "attempt"} {
				t.Run(c.Name.Name+"/"+way+"/"+what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						op := opOf("read")
						s := playing(act{Status: 200, Body: `{}`})
						var client resilience.Option
						var call resilience.CallOption
						var other resilience.Option
						want := c.Total.d()
						if what == "total" {
							op.Timeout = c.Op.d()
							client, call = resilience.WithTimeout(c.Client.d()), resilience.WithTimeout(c.Call.d())
							other = resilience.WithAttemptTimeout(-1)
						} else {
							want = c.Attempt.d()
							op.AttemptTimeout = c.Op.d()
							client, call = resilience.WithAttemptTimeout(c.Client.d()), resilience.WithAttemptTimeout(c.Call.d())
							other = resilience.WithTimeout(-1)
						}
						d := onStage(t, s, resilience.WithOperations(op), client, other)
						if _, err := ways[way](withOptions(t.Context(), call), d, origin+"/v1", op); err != nil {
							t.Fatal(err)
						}
						if got := left(s.requests()[0]); got != want {
							t.Errorf("the request had %v, want %v", got, want)
						}
					})
				})
			}
		}
	}
}

// Whose time limit it was that ended an attempt.
func TestWhoseLimit(t *testing.T) {
	tests := []struct {
		name                    string
		total, attempt, context time.Duration
		hang                    act
		ends                    time.Duration // after which the call returns
		timeout                 time.Duration // what Error.Timeout says
		attempts                int
		is                      []string
		outcome                 resilience.Outcome
		text                    string
	}{
		{"the default total", 0, -1, 0, act{Trace: "got", Wait: time.Hour}, 30 * time.Second, 30 * time.Second, 1,
			[]string{"ErrTimeout"}, resilience.OutcomeUnknown, "total time limit of 30s ran out"},
		{"the attempt's, until the total leaves no room", 0, 0, 0, act{Trace: "got", Wait: time.Hour}, 30 * time.Second, 30 * time.Second, 3,
			[]string{"ErrTimeout"}, resilience.OutcomeUnknown, "total time limit of 30s ran out"},
		{"the attempt's", time.Minute, 2 * time.Second, 0, act{Trace: "got", Wait: time.Hour}, 6300 * time.Millisecond, 2 * time.Second, 3,
			[]string{"ErrTimeout"}, resilience.OutcomeUnknown, "attempt time limit of 2s ran out"},
		{"the attempt's, no connection got", time.Minute, 2 * time.Second, 0, act{Trace: "asked", Wait: time.Hour}, 6300 * time.Millisecond, 2 * time.Second, 3,
			[]string{"ErrTimeout"}, resilience.OutcomeNotSent, "attempt time limit of 2s ran out"},
		{"the caller's", 0, 0, time.Second, act{Trace: "got", Wait: time.Hour}, time.Second, time.Second, 1,
			[]string{"ErrTimeout", "DeadlineExceeded"}, resilience.OutcomeUnknown, "context deadline exceeded"},
		{"the caller's, no connection got", 0, 0, time.Second, act{Trace: "asked", Wait: time.Hour}, time.Second, time.Second, 1,
			[]string{"ErrTimeout", "DeadlineExceeded"}, resilience.OutcomeNotSent, "context deadline exceeded"},
		{"the caller's, in the second attempt", 0, 2 * time.Second, 3 * time.Second, act{Trace: "got", Wait: time.Hour}, 3 * time.Second, 3 * time.Second, 2,
			[]string{"ErrTimeout", "DeadlineExceeded"}, resilience.OutcomeUnknown, "context deadline exceeded"},
		{"the attempt's, in the body", time.Minute, 2 * time.Second, 0, act{Status: 200, Body: "{", BodyStall: true}, 6300 * time.Millisecond, 2 * time.Second, 3,
			[]string{"ErrTimeout"}, resilience.OutcomeDone, "200 OK: attempt time limit of 2s ran out"},
		{"the caller's, in the body", 0, 0, time.Second, act{Status: 200, Body: "{", BodyStall: true}, time.Second, time.Second, 1,
			[]string{"ErrTimeout", "DeadlineExceeded"}, resilience.OutcomeDone, "200 OK: context deadline exceeded"},
		{"the total, in the body", time.Second, 0, 0, act{Status: 200, Body: "{", BodyStall: true}, time.Second, time.Second, 1,
			[]string{"ErrTimeout"}, resilience.OutcomeDone, "200 OK: total time limit of 1s ran out"},
		{"the caller's, in the body of another type", 0, 0, time.Second, act{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, BodyStall: true}, time.Second, time.Second, 1,
			[]string{"ErrTimeout", "DeadlineExceeded"}, resilience.OutcomeUnknown, "200 OK: context deadline exceeded"},
		{"the transport's own, in time", 0, 0, 0, act{Trace: "got", Err: context.DeadlineExceeded}, 300 * time.Millisecond, 0, 3,
			[]string{"ErrTimeout"}, resilience.OutcomeUnknown, "context deadline exceeded"},
		{"the transport's own cancel", 0, 0, 0, act{Trace: "got", Err: context.Canceled}, 300 * time.Millisecond, 0, 3,
			[]string{"ErrUnavailable"}, resilience.OutcomeUnknown, "context canceled"},
		{"the transport's own, in the body", 0, 0, 0, act{Status: 200, Body: "{", BodyErr: context.DeadlineExceeded}, 300 * time.Millisecond, 0, 3,
			[]string{"ErrUnavailable"}, resilience.OutcomeDone, "200 OK: the answer was cut: context deadline exceeded"},
	}
	for _, test := range tests {
		for way := range ways {
			t.Run(test.name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					op, s := opOf("read"), playing(test.hang)
					d := onStage(t, s, resilience.WithOperations(op), resilience.WithTimeout(test.total), resilience.WithAttemptTimeout(test.attempt))
					ctx := t.Context()
					if test.context > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, test.context)
						defer cancel()
					}
					var info resilience.CallInfo
					begun := time.Now()
					_, err := ways[way](withOptions(ctx, resilience.WithCallInfo(&info)), d, origin+"/v1", op)
					took := time.Since(begun)
					isExactly(t, err, test.is...)
					e := errorOf(t, err)
					if took != test.ends || e.Timeout != test.timeout || e.Attempts != test.attempts || s.count() != test.attempts || info.Elapsed != took {
						t.Errorf("after %v (info: %v) and %d attempts: Timeout %v; want after %v and %d: %v", took, info.Elapsed, e.Attempts, e.Timeout, test.ends, test.attempts, test.timeout)
					}
					var limit interface{ Timeout() bool }
					if got := errors.As(err, &limit) && limit.Timeout(); got != (test.timeout != 0 || strings.Contains(test.text, "context deadline exceeded")) {
						t.Errorf("net/http's own question for a time limit is answered %v", got)
					}
					if e.Outcome != test.outcome || !strings.Contains(err.Error(), test.text) {
						t.Errorf("outcome %v: %v; want %v and %q", e.Outcome, err, test.outcome, test.text)
					}
				})
			})
		}
	}
}

// D-07: a shipment that was made, and an answer that stalls: Done, for whoever
// may not repeat, and never "failed".
func TestMadeAndStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := opOf("unsafe")
		op.Success = []resilience.Success{{Status: 201, ContentTypes: []string{"application/json"}}}
		d := onStage(t, playing(act{Status: 201, Body: `{"id":`, BodyStall: true}), resilience.WithTimeout(-1))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		err := callThing(ctx, d, op)
		isExactly(t, err, "ErrTimeout", "DeadlineExceeded")
		e := errorOf(t, err)
		if took := time.Since(begun); took != 3*time.Second || e.Outcome != resilience.OutcomeDone || e.StatusCode != 201 || string(e.Body) != `{"id":` {
			t.Errorf("after %v: %v, %d, %q", took, e.Outcome, e.StatusCode, e.Body)
		}
	})
}

// D-06: a context that has ended already.
func TestContextDoneBefore(t *testing.T) {
	reason := errors.New("the user went home")
	gone, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	late, cancel2 := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel2()
	for way := range ways {
		for _, test := range []struct {
			name string
			ctx  context.Context
			is   []string
		}{
			{"canceled", gone, []string{"context.Canceled"}},
			{"late", late, []string{"ErrTimeout", "DeadlineExceeded"}},
		} {
			t.Run(way+"/"+test.name, func(t *testing.T) {
				op, s := opOf("unsafe"), playing(act{Status: 200, Body: `{}`})
				d := onStage(t, s, resilience.WithOperations(op))
				var info resilience.CallInfo
				_, err := ways[way](withOptions(test.ctx, resilience.WithCallInfo(&info)), d, origin+"/v1", op)
				isExactly(t, err, test.is...)
				if errors.Is(err, reason) != (test.name == "canceled") {
					t.Errorf("the caller's reason: %v", err)
				}
				e := errorOf(t, err)
				if e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || s.count() != 0 || info.Attempts != 0 || e.Timeout != 0 {
					t.Errorf("outcome %v after %d attempts (%d), %d requests, Timeout %v; want nothing tried", e.Outcome, e.Attempts, info.Attempts, s.count(), e.Timeout)
				}
				if !strings.Contains(err.Error(), "(not sent)") {
					t.Errorf("the text does not say so: %v", err)
				}
			})
		}
	}
}

// D-09: the caller leaves in a wait, or in an attempt, at any age of it.
func TestCallerLeaves(t *testing.T) {
	reason := errors.New("the user went home")
	tests := []struct {
		name    string
		act     act
		safety  string
		is      []string
		outcome resilience.Outcome
		status  int
		text    string
	}{
		{"in a wait", act{Status: 503, Header: http.Header{"Retry-After": {"20"}}}, "read", []string{"context.Canceled", "ErrUnavailable"}, resilience.OutcomeUnknown, 503, "after 503 Service Unavailable"},
		{"in a wait, keyed", act{Status: 503, Header: http.Header{"Retry-After": {"20"}}}, "keyed", []string{"context.Canceled", "ErrUnavailable", "ErrOutcomeUnknown"}, resilience.OutcomeUnknown, 503, "after 503 Service Unavailable"},
		{"in a wait after a refusal", act{Status: 429, Header: http.Header{"Retry-After": {"20"}}}, "unsafe", []string{"context.Canceled", "ErrRateLimited"}, resilience.OutcomeRejected, 429, "after 429 Too Many Requests"},
		{"before a connection is got", act{Trace: "asked", Wait: time.Hour}, "unsafe", []string{"context.Canceled"}, resilience.OutcomeNotSent, 0, "the user went home"},
		{"after one is got", act{Trace: "got", Wait: time.Hour}, "unsafe", []string{"context.Canceled", "ErrOutcomeUnknown"}, resilience.OutcomeUnknown, 0, "the user went home"},
		{"after one is got, a read", act{Trace: "got", Wait: time.Hour}, "read", []string{"context.Canceled"}, resilience.OutcomeUnknown, 0, "the user went home"},
		{"with a transport that gives no evidence", act{Wait: time.Hour}, "keyed", []string{"context.Canceled", "ErrOutcomeUnknown"}, resilience.OutcomeUnknown, 0, "the user went home"},
		{"in the body", act{Status: 200, Body: `{`, BodyStall: true}, "unsafe", []string{"context.Canceled"}, resilience.OutcomeDone, 200, "the user went home"},
		{"in the body of a failure", act{Status: 404, Body: `{`, BodyStall: true}, "unsafe", []string{"ErrNotFound"}, resilience.OutcomeRejected, 404, "404 Not Found"},
	}
	for _, test := range tests {
		for way := range ways {
			t.Run(test.name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					op, s := opOf(test.safety), playing(test.act)
					d := onStage(t, s, resilience.WithOperations(op))
					ctx, cancel := context.WithCancelCause(t.Context())
					begun := time.Now()
					time.AfterFunc(5*time.Second, func() { cancel(reason) })
					_, err := ways[way](ctx, d, origin+"/v1", op)
					isExactly(t, err, test.is...)
					e := errorOf(t, err)
					if took := time.Since(begun); took != 5*time.Second || s.count() != 1 || e.Attempts != 1 {
						t.Errorf("returned after %v and %d requests, want at once and 1", took, s.count())
					}
					if e.Outcome != test.outcome || e.StatusCode != test.status || e.Timeout != 0 || !strings.Contains(err.Error(), test.text) {
						t.Errorf("outcome %v of %d, Timeout %v: %v", e.Outcome, e.StatusCode, e.Timeout, err)
					}
					if errors.Is(err, reason) != errors.Is(err, context.Canceled) {
						t.Errorf("the caller's reason is not on the error: %v", err)
					}
				})
			})
		}
	}
}

// lastWord is a body that does something when its end is read.
type lastWord struct {
	io.Reader
	then func()
}

func (b *lastWord) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.then()
	}
	return n, err
}

func (b *lastWord) Close() error { return nil }

// An answer that is whole was in time, even if a limit ran out, or the caller
// left, the moment after: a shipment that was made is not thrown away.
func TestWholeAnswerCounts(t *testing.T) {
	for _, safety := range []string{"read", "keyed", "unsafe"} {
		for way := range ways {
			for _, how := range []string{"the caller left", "the attempt's time ran out"} {
				t.Run(how+"/"+safety+"/"+way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						n := 0
						rt := roundTripper(func(r *http.Request) (*http.Response, error) {
							n++
							resp := act{Status: 200}.response(r)
							resp.ContentLength = -1
							resp.Body = &lastWord{strings.NewReader(`{"id":"s1"}`), func() {
								if how == "the caller left" {
									cancel()
								} else {
									time.Sleep(20 * time.Second)
								}
							}}
							return resp, nil
						})
						op := opOf(safety)
						d := doerFor(t, resilience.WithBaseURL(origin), resilience.WithTransport(rt), resilience.WithOperations(op))
						status, err := ways[way](ctx, d, origin, op)
						if err != nil || n != 1 || way == "Do" && status != 200 {
							t.Errorf("got %d, %v after %d requests; want the answer", status, err, n)
						}
					})
				})
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The time left goes to the carrier only on demand, for each attempt anew.
func TestTimeoutHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "X-Request-Timeout-Ms"
		busy := act{Status: 503, Wait: 200 * time.Millisecond}
		values := func(options ...resilience.Option) (got []string) {
			s := playing(busy, busy, act{Status: 200, Body: `{}`})
			if err := callThing(t.Context(), onStage(t, s, options...), opOf("read")); err != nil {
				t.Fatal(err)
			}
			for _, r := range s.requests() {
				got = append(got, strings.Join(r.Header[name], ","))
			}
			return got
		}
		for _, test := range []struct {
			name    string
			options []resilience.Option
			want    string
		}{
			{"not asked for", nil, "||"},
			{"the attempt's", []resilience.Option{resilience.WithTimeoutHeader()}, "10000|10000|10000"},
			{"the total's", []resilience.Option{resilience.WithTimeoutHeader(), resilience.WithTimeout(2 * time.Second)}, "2000|1700|1300"},
			{"less than a millisecond", []resilience.Option{resilience.WithTimeoutHeader(), resilience.WithTimeout(700*time.Millisecond + time.Microsecond), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1})}, "700|500|300"},
			{"none", []resilience.Option{resilience.WithTimeoutHeader(), resilience.WithTimeout(-1), resilience.WithAttemptTimeout(-1)}, "||"},
		} {
			if got := strings.Join(values(test.options...), "|"); got != test.want {
				t.Errorf("%s: %s, want %s", test.name, got, test.want)
			}
		}
		s := playing(act{Status: 200, Body: `{}`})
		d := onStage(t, s, resilience.WithTimeoutHeader(), resilience.WithTimeout(time.Microsecond))
		if err := callThing(t.Context(), d, opOf("read")); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[0].Header.Get(name); got != "1" {
			t.Errorf("%s: %s of a microsecond, want at least 1", name, got)
		}
	})
}

// A caller who leaves without a reason is not told of it twice.
func TestTextOfACallerWhoLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		cause error
		want  string
	}{
		"no reason": {nil, "context canceled"},
		"a reason":  {errors.New("shutting down"), "context canceled: shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := connect(t, &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(test.cause) })
				_, err := track(ctx, d)
				is(t, err, context.Canceled)
				if text := err.Error(); !strings.Contains(text, test.want) || strings.Count(text, "context canceled") != 1 {
					t.Errorf("%q, want %q once", text, test.want)
				}
			})
		})
	}
}

// Who cancels before its own deadline was not stopped by it.
func TestNoTimeoutOfACallerWhoCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		time.AfterFunc(time.Second, cancel)
		_, err := track(ctx, d)
		is(t, err, context.Canceled)
		isNot(t, err, resilience.ErrTimeout, context.DeadlineExceeded)
		if e := failureOf(t, err); e.Timeout != 0 {
			t.Errorf("Timeout is %v, want none", e.Timeout)
		}
	})
}

// An answer that was whole in time is no timeout, though the time was over when it was looked at.
func TestAnswerAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d := connect(t, answering(func(*http.Request) (*http.Response, error) {
			a := newAnswer(404, "")
			a.Body, a.ContentLength = leavingBody{strings.NewReader(`{"title":"no"}`), func() { time.Sleep(2 * time.Second) }}, -1
			return a, nil
		}))
		_, err := track(ctx, d)
		is(t, err, resilience.ErrNotFound)
		isNot(t, err, resilience.ErrTimeout, context.DeadlineExceeded)
		if e := failureOf(t, err); e.Timeout != 0 || ctx.Err() == nil {
			t.Errorf("Timeout %v, context %v", e.Timeout, ctx.Err())
		}
	})
}
