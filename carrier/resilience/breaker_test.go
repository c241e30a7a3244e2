package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

const (
	closed   = resilience.BreakerClosed
	halfOpen = resilience.BreakerHalfOpen
	open     = resilience.BreakerOpen
)

var errNetwork = errors.New("connection reset by peer")

// script answers with the next status of a list, and with its last one from then on.
func script(statuses ...int) *memoryCarrier {
	return &memoryCarrier{answer: func(n int, _ *http.Request) (*http.Response, error) {
		status := statuses[min(n, len(statuses))-1]
		if status == 0 {
			return nil, errNetwork
		}
		return newAnswer(status, `{}`), nil
	}}
}

func repeat(n, status int) []int { return slices.Repeat([]int{status}, n) }

// The rows of the reference's table that are a sequence of answers.
func TestBreakerSequences(t *testing.T) {
	tests := []struct {
		id       string
		policy   resilience.BreakerPolicy
		statuses []int
		want     resilience.BreakerState
	}{
		{"B-01 404s", resilience.BreakerPolicy{}, repeat(10, 404), closed},
		{"B-02 503s", resilience.BreakerPolicy{}, repeat(10, 503), open},
		{"B-04 too few for a ratio", resilience.BreakerPolicy{ConsecutiveFailures: -1}, repeat(9, 503), closed},
		{"B-04 enough for a ratio", resilience.BreakerPolicy{ConsecutiveFailures: -1}, repeat(10, 503), open},
		{"B-10 429s", resilience.BreakerPolicy{}, repeat(10, 429), closed},

		{"four in a row", resilience.BreakerPolicy{}, repeat(4, 503), closed},
		{"five in a row", resilience.BreakerPolicy{}, repeat(5, 503), open},
		{"five, not in a row", resilience.BreakerPolicy{}, []int{503, 503, 503, 503, 200, 503}, closed},
		{"five in a row but for what is excluded", resilience.BreakerPolicy{}, []int{503, 503, 429, 503, 401, 503, 403, 503}, open},
		{"no answer", resilience.BreakerPolicy{}, repeat(5, 0), open},
		{"row of another length", resilience.BreakerPolicy{ConsecutiveFailures: 2}, repeat(2, 503), open},
		{"no rule at all", resilience.BreakerPolicy{ConsecutiveFailures: -1, FailureRatio: -1}, repeat(100, 503), closed},

		{"half of ten", resilience.BreakerPolicy{ConsecutiveFailures: -1}, slices.Repeat([]int{200, 503}, 5), open},
		{"less than half of ten", resilience.BreakerPolicy{ConsecutiveFailures: -1},
			[]int{200, 503, 200, 503, 200, 503, 200, 503, 200, 200, 503}, closed},
		{"excluded ones are no volume", resilience.BreakerPolicy{ConsecutiveFailures: -1},
			append(repeat(20, 429), repeat(9, 503)...), closed},
		{"excluded ones do not thin the ratio", resilience.BreakerPolicy{ConsecutiveFailures: -1},
			append(repeat(20, 429), repeat(10, 503)...), open},
		{"minimum of one", resilience.BreakerPolicy{ConsecutiveFailures: -1, MinimumCalls: -1}, repeat(1, 503), open},
		{"another ratio, not reached", resilience.BreakerPolicy{ConsecutiveFailures: -1, FailureRatio: 0.9, MinimumCalls: 10},
			append([]int{200, 200}, repeat(8, 503)...), closed},
		{"another ratio, reached", resilience.BreakerPolicy{ConsecutiveFailures: -1, FailureRatio: 0.9, MinimumCalls: 10},
			append([]int{200}, repeat(9, 503)...), open},

		{"500", resilience.BreakerPolicy{}, repeat(5, 500), open},
		{"501", resilience.BreakerPolicy{}, repeat(5, 501), closed},
		{"502", resilience.BreakerPolicy{}, repeat(5, 502), open},
		{"504", resilience.BreakerPolicy{}, repeat(5, 504), open},
		{"505", resilience.BreakerPolicy{}, repeat(5, 505), closed},
		{"520", resilience.BreakerPolicy{}, repeat(5, 520), open},
		{"524", resilience.BreakerPolicy{}, repeat(5, 524), open},
		{"525", resilience.BreakerPolicy{}, repeat(5, 525), closed},
		{"a list of one's own", resilience.BreakerPolicy{FailureStatuses: []int{404}}, repeat(5, 404), open},
		{"and only that", resilience.BreakerPolicy{FailureStatuses: []int{404}}, repeat(10, 503), closed},
		{"an empty list", resilience.BreakerPolicy{FailureStatuses: []int{}}, repeat(10, 503), closed},
		{"an empty list, no answer", resilience.BreakerPolicy{FailureStatuses: []int{}}, repeat(5, 0), open},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			carrier := script(tt.statuses...)
			d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(tt.policy))
			for range tt.statuses {
				_, _ = track(t.Context(), d)
			}
			if got := d.BreakerState("tracking"); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if tt.want == closed && carrier.requests() != len(tt.statuses) {
				t.Errorf("%d requests, want %d", carrier.requests(), len(tt.statuses))
			}
		})
	}
}

// B-02: a refusal costs nothing, and says when to come back.
func TestBreakerRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := always(503, `{}`)
		d := connect(t, carrier, resilience.WithoutRetry())
		for range 10 {
			_, _ = track(t.Context(), d)
		}
		if n := carrier.requests(); n != 5 {
			t.Fatalf("%d requests, want 5", n)
		}
		start := time.Now()
		_, err := track(t.Context(), d)
		if took := time.Since(start); took != 0 {
			t.Errorf("a refusal took %v", took)
		}
		is(t, err, resilience.ErrCircuitOpen, resilience.ErrUnavailable)
		isNot(t, err, resilience.ErrTimeout, resilience.ErrOutcomeUnknown)
		e := failureOf(t, err)
		if e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || e.StatusCode != 0 {
			t.Errorf("%v, %d attempts, status %d; want not sent, 0, 0", e.Outcome, e.Attempts, e.StatusCode)
		}
		if e.RetryAfter < 4*time.Second || e.RetryAfter > 6*time.Second {
			t.Errorf("RetryAfter %v, want 4 s to 6 s", e.RetryAfter)
		}

		// What it says is true, to the nanosecond.
		time.Sleep(e.RetryAfter - 1)
		_, err = track(t.Context(), d)
		is(t, err, resilience.ErrCircuitOpen)
		time.Sleep(1 * time.Nanosecond)
		_, err = track(t.Context(), d)
		isNot(t, err, resilience.ErrCircuitOpen)
		if n := carrier.requests(); n != 6 {
			t.Errorf("%d requests, want 6", n)
		}
	})
}

// B-03: callers who leave say nothing of the carrier.
func TestBreakerCallersWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }}
		d := connect(t, carrier)
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, cancel)
			_, err := track(ctx, d)
			is(t, err, context.Canceled)
			cancel()
		}
		if got := d.BreakerState("tracking"); got != closed {
			t.Error(got)
		}
		if n := carrier.requests(); n != 100 {
			t.Errorf("%d requests, want 100", n)
		}
	})
}

// openUp makes calls fail until the group of the tracking operation is open.
func openUp(t *testing.T, d *resilience.Doer) {
	t.Helper()
	for i := 0; d.BreakerState("tracking") == closed; i++ {
		if i == 100 {
			t.Fatal("does not open")
		}
		_, _ = track(t.Context(), d)
	}
}

// B-05: an open time, a probe that succeeds, closed.
func TestBreakerRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := script(append(repeat(5, 503), 503, 200)...)
		d := connect(t, carrier, resilience.WithoutRetry())
		openUp(t, d)

		time.Sleep(6 * time.Second)
		if got := d.BreakerState("tracking"); got != open {
			t.Errorf("a look made it %s", got)
		}
		_, err := track(t.Context(), d) // a probe that fails
		is(t, err, resilience.ErrUnavailable)
		if got := d.BreakerState("tracking"); got != open {
			t.Errorf("%s after a failed probe", got)
		}
		time.Sleep(6 * time.Second)
		if _, err := track(t.Context(), d); err != nil {
			t.Error(err)
		}
		if got := d.BreakerState("tracking"); got != closed {
			t.Errorf("%s after a good probe", got)
		}
		// It begins anew: four failures are not yet five.
		carrier.answer = func(int, *http.Request) (*http.Response, error) { return newAnswer(503, ``), nil }
		for range 4 {
			_, _ = track(t.Context(), d)
		}
		if got := d.BreakerState("tracking"); got != closed {
			t.Errorf("%s after four failures", got)
		}
	})
}

// B-07: of 50 that come at once as many get through as there are probes. All
// of these must succeed.
func TestBreakerProbes(t *testing.T) {
	for _, probes := range []int{0, 1, 2, 3, 7} {
		for _, good := range []bool{true, false} {
			t.Run(fmt.Sprint(probes, good), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					want := max(probes, 1)
					carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
						if err := pause(r, time.Second); err != nil {
							return nil, err
						}
						if n > 5 && (good || n < 5+want) {
							return newAnswer(200, `{}`), nil
						}
						return newAnswer(503, `{}`), nil
					}}
					d := connect(t, carrier, resilience.WithoutRetry(),
						resilience.WithBreaker(resilience.BreakerPolicy{HalfOpenCalls: probes}))
					openUp(t, d)
					time.Sleep(6 * time.Second)

					var wg sync.WaitGroup
					for range 50 {
						wg.Go(func() { _, _ = track(t.Context(), d) })
					}
					synctest.Wait()
					if got := d.BreakerState("tracking"); got != halfOpen {
						t.Errorf("%s with probes out", got)
					}
					wg.Wait()
					if n := carrier.requests() - 5; n != want {
						t.Errorf("%d probes, want %d", n, want)
					}
					state := closed
					if !good {
						state = open
					}
					if got := d.BreakerState("tracking"); got != state {
						t.Errorf("%s, want %s", got, state)
					}
				})
			})
		}
	}
}

// With HalfOpenCalls n it takes n successes to close.
func TestBreakerClosesAfterAllProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, script(append(repeat(5, 503), 200)...), resilience.WithoutRetry(),
			resilience.WithBreaker(resilience.BreakerPolicy{HalfOpenCalls: 3}))
		openUp(t, d)
		time.Sleep(6 * time.Second)
		for i, want := range []resilience.BreakerState{halfOpen, halfOpen, closed} {
			if _, err := track(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if got := d.BreakerState("tracking"); got != want {
				t.Errorf("%s after %d good probes, want %s", got, i+1, want)
			}
		}
	})
}

// B-08: a breaker that opens in a retry loop ends it, with the answer that came.
func TestBreakerOpensInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := always(503, `{"code":"maintenance"}`)
		d := connect(t, carrier,
			resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 10}),
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 3, OpenFor: time.Minute}))
		_, err := track(t.Context(), d)
		if n := carrier.requests(); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		is(t, err, resilience.ErrCircuitOpen, resilience.ErrUnavailable)
		e := failureOf(t, err)
		if e.StatusCode != 503 || e.Attempts != 3 || e.Problem == nil || e.Problem.Code != "maintenance" {
			t.Errorf("status %d, %d attempts, problem %v: the last answer is lost", e.StatusCode, e.Attempts, e.Problem)
		}
		if e.RetryAfter < 48*time.Second || e.RetryAfter > 72*time.Second {
			t.Errorf("RetryAfter %v", e.RetryAfter)
		}
	})
}

// Nor does it wait for a breaker that would let it through in time: without
// WaitWhenOpen the answer that came is returned now.
func TestBreakerEndsALoopAtOnce(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			retries := 0
			d := connect(t, always(503, `{}`), resilience.WithRetry(resilience.RetryPolicy{
				MaxAttempts: 2, BaseDelay: -1, OnRetry: func(resilience.Attempt, time.Duration) { retries++ },
			}),
				resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1, OpenFor: time.Second, WaitWhenOpen: waits}))
			begun := time.Now()
			_, err := track(t.Context(), d, resilience.WithTimeout(2*time.Second))
			is(t, err, resilience.ErrUnavailable)
			if took := time.Since(begun); (took > 0) != waits || (retries > 0) != waits {
				t.Errorf("with WaitWhenOpen %v it took %v and %d retries: %v", waits, took, retries, err)
			}
		})
	}
}

// A retry that finds the breaker opened by others ends the loop as well.
func TestBreakerOpenedByOthersInAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := always(503, `{}`, "Retry-After", "2")
		d := connect(t, carrier, resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: time.Minute}))
		var first error
		var wg sync.WaitGroup
		wg.Go(func() { _, first = track(t.Context(), d) })
		time.Sleep(time.Second)
		for range 4 {
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
		}
		wg.Wait()
		if n := carrier.requests(); n != 5 {
			t.Errorf("%d requests, want 5", n)
		}
		is(t, first, resilience.ErrCircuitOpen)
		if e := failureOf(t, first); e.Attempts != 1 || e.StatusCode != 503 {
			t.Errorf("%d attempts, status %d; want 1, 503", e.Attempts, e.StatusCode)
		}
	})
}

// B-11: groups are apart from each other, and clients too.
func TestBreakerGroups(t *testing.T) {
	carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Path, "/v1/tracking") {
			return newAnswer(503, `{}`), nil
		}
		return newAnswer(201, `{}`), nil
	}}
	d := connect(t, carrier, resilience.WithoutRetry())
	other := connect(t, carrier, resilience.WithoutRetry())
	openUp(t, d)
	if _, err := ship(t.Context(), d, `{}`); err != nil {
		t.Error(err)
	}
	for group, want := range map[string]resilience.BreakerState{"tracking": open, "shipments": closed, "no such group": closed} {
		if got := d.BreakerState(group); got != want {
			t.Errorf("%s: %s, want %s", group, got, want)
		}
	}
	if got := other.BreakerState("tracking"); got != closed {
		t.Errorf("the other client's: %s", got)
	}
}

// What an attempt says of the carrier: a failure, a success, or nothing.
func TestBreakerVerdicts(t *testing.T) {
	const failure, success, excluded = "failure", "success", "excluded"
	ok := func(body string, header ...string) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return newAnswer(200, body, header...), nil }
	}
	status := func(code int, header ...string) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return newAnswer(code, `{}`, header...), nil }
	}
	silence := func(r *http.Request) (*http.Response, error) { return nil, hang(r) }
	with := func(body io.ReadCloser, length int64) *http.Response {
		resp := newAnswer(200, ``)
		resp.Body, resp.ContentLength = body, length
		return resp
	}
	tests := []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		want   string
		leave  time.Duration // the caller cancels after this
		caller time.Duration // the caller's own deadline
		opts   []resilience.CallOption
	}{
		{name: "a result", answer: ok(`{}`), want: success},
		{name: "no answer", answer: func(*http.Request) (*http.Response, error) { return nil, errNetwork }, want: failure},
		{name: "neither answer nor error", answer: func(*http.Request) (*http.Response, error) { return nil, nil }, want: failure},

		{name: "HTML with 200", answer: ok(`<html>`, "Content-Type", "text/html"), want: failure},
		{name: "empty with 200", answer: ok(``), want: failure},
		{name: "null with 200", answer: ok(`null`), want: failure},
		{name: "malformed with 200", answer: ok(`{"a":`), want: failure},
		{name: "another kind with 200", answer: ok(`[]`), want: failure},
		{name: "undocumented 2xx", answer: status(207), want: failure},
		{name: "cut with 200", want: failure, answer: func(*http.Request) (*http.Response, error) {
			return with(cutBody{strings.NewReader(`{"a"`), io.ErrUnexpectedEOF}, 10), nil
		}},
		{name: "stalled with 200", want: failure, answer: func(r *http.Request) (*http.Response, error) {
			return with(haltingBody{strings.NewReader(`{"a"`), r.Context()}, 10), nil
		}},
		{name: "too large", answer: ok(`{"a":"` + strings.Repeat("x", 100) + `"}`), want: success,
			opts: []resilience.CallOption{resilience.WithMaxResponseBytes(64)}},
		{name: "too large by its length", want: success, answer: func(*http.Request) (*http.Response, error) {
			return with(io.NopCloser(strings.NewReader("")), 1<<40), nil
		}},

		{name: "300", answer: status(300), want: success},
		{name: "304", answer: status(304), want: success},
		{name: "302", answer: status(302, "Location", "https://elsewhere.example/"), want: success},
		{name: "400", answer: status(400), want: success},
		{name: "401", answer: status(401), want: excluded},
		{name: "403", answer: status(403), want: excluded},
		{name: "404", answer: status(404), want: success},
		{name: "408", answer: status(408), want: success},
		{name: "409", answer: status(409), want: success},
		{name: "422", answer: status(422), want: success},
		{name: "425", answer: status(425), want: success},
		{name: "429", answer: status(429), want: excluded},
		{name: "500", answer: status(500), want: failure},
		{name: "500 replayed", answer: status(500, "Idempotency-Replayed", "true"), want: failure},
		{name: "501", answer: status(501), want: success},

		{name: "attempt time limit", answer: silence, want: failure},
		{name: "total time limit", answer: silence, want: failure, opts: []resilience.CallOption{resilience.WithTimeout(time.Second)}},
		{name: "caller leaves", answer: silence, want: excluded, leave: 9 * time.Second},
		{name: "caller leaves in the body", want: excluded, leave: 9 * time.Second, answer: func(r *http.Request) (*http.Response, error) {
			return with(haltingBody{strings.NewReader(`{"a"`), r.Context()}, 10), nil
		}},
		{name: "caller's deadline", answer: silence, want: excluded, caller: 900 * time.Millisecond},
		{name: "caller's deadline, just as long as it takes to know", answer: silence, want: excluded, caller: time.Second},
		{name: "caller's deadline, a hung carrier", answer: silence, want: failure, caller: 1001 * time.Millisecond},
		{name: "caller's deadline, a hung body", want: failure, caller: 2 * time.Second, answer: func(r *http.Request) (*http.Response, error) {
			return with(haltingBody{strings.NewReader(`{"a"`), r.Context()}, 10), nil
		}},
		{name: "caller's deadline over half a short attempt", answer: silence, want: failure, caller: 301 * time.Millisecond,
			opts: []resilience.CallOption{resilience.WithAttemptTimeout(600 * time.Millisecond)}},
		{name: "caller's deadline under half a short attempt", answer: silence, want: excluded, caller: 300 * time.Millisecond,
			opts: []resilience.CallOption{resilience.WithAttemptTimeout(600 * time.Millisecond)}},
		{name: "caller's deadline, attempts without a limit", answer: silence, want: failure, caller: 2 * time.Second,
			opts: []resilience.CallOption{resilience.WithAttemptTimeout(-1)}},
		{name: "caller's deadline, attempts without a limit, too soon to know", answer: silence, want: excluded, caller: 900 * time.Millisecond,
			opts: []resilience.CallOption{resilience.WithAttemptTimeout(-1)}},
		{name: "caller leaves before its deadline", answer: silence, want: excluded, leave: 5 * time.Second, caller: 8 * time.Second},
		{name: "guard", want: excluded, answer: func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("dial: %w", resilience.ErrBlocked)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := false
				carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
					if asked {
						return tt.answer(r)
					}
					return newAnswer(503, `{}`), nil
				}}
				d := connect(t, carrier, resilience.WithoutRetry(),
					resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 2, FailureRatio: -1, OpenFor: time.Hour}))

				_, _ = track(t.Context(), d) // a failure
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.leave > 0 {
					time.AfterFunc(tt.leave, cancel)
				}
				if tt.caller > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.caller)
					defer cancel()
				}
				asked = true
				_, _ = track(ctx, d, tt.opts...)
				asked = false
				got := failure
				if d.BreakerState("tracking") == closed {
					_, _ = track(t.Context(), d) // the second failure in a row, unless there was a success in between
					got = success
					if d.BreakerState("tracking") == open {
						got = excluded
					}
				}
				if got != tt.want {
					t.Errorf("is a %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A request body that cannot be read is the caller's fault.
func TestBreakerVerdictOfABodyThatCannotBeRead(t *testing.T) {
	d := connect(t, always(503, ``), resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
	req, _ := http.NewRequest("POST", memoryURL+"/notices", cutBody{strings.NewReader("half"), errors.New("disk")})
	if _, err := d.Do(req); err == nil {
		t.Fatal("no error")
	}
	if got := d.BreakerState("notices"); got != closed {
		t.Error(got)
	}
}

// Time spent in the queue for our own full pool says nothing of the carrier.
func TestBreakerVerdictOfAFullPool(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	defer server.Close()
	defer close(release)

	busy := resilience.BreakerPolicy{ConsecutiveFailures: 1, FailureRatio: -1}
	d := connectTo(t, server.URL, resilience.WithMaxConns(1), resilience.WithoutRetry(), resilience.WithBreaker(busy))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _, _ = track(ctx, d) })
	<-arrived
	for range 3 {
		_, err := track(t.Context(), d, resilience.WithAttemptTimeout(5*time.Millisecond))
		is(t, err, resilience.ErrTimeout)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent {
			t.Errorf("outcome %v", e.Outcome)
		}
	}
	// Nor is it if the caller has less time than the attempt, and more than would tell a hung carrier.
	impatient, leave := context.WithTimeout(t.Context(), 6*time.Millisecond)
	defer leave()
	_, err := track(impatient, d, resilience.WithAttemptTimeout(8*time.Millisecond))
	if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent {
		t.Errorf("outcome %v", e.Outcome)
	}
	if got := d.BreakerState("tracking"); got != closed {
		t.Error(got)
	}
}

// A carrier that hangs on a connection that it had answered on is no full pool.
func TestBreakerVerdictOfAReusedConnection(t *testing.T) {
	calls, release := 0, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 1 {
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	defer server.Close()
	defer close(release)
	d := connectTo(t, server.URL, resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
	if _, err := track(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	_, err := track(t.Context(), d, resilience.WithAttemptTimeout(5*time.Millisecond))
	if is(t, err, resilience.ErrTimeout); d.BreakerState("tracking") != open {
		t.Errorf("the breaker is %v after %v", d.BreakerState("tracking"), err)
	}
}

// A document that is still being made is an answer like any other.
func TestBreakerVerdictOfADocumentInTheMaking(t *testing.T) {
	d := connect(t, always(202, `{}`, "Retry-After", "1"), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
	_, err := label(t.Context(), d)
	if is(t, err, resilience.ErrNotReady); d.BreakerState("documents") != closed {
		t.Errorf("the breaker is %v", d.BreakerState("documents"))
	}
}

// The window rolls: what is older than it is forgotten, in steps.
func TestBreakerWindow(t *testing.T) {
	tests := []struct {
		name   string
		window time.Duration
		gap    time.Duration // between the two halves
		want   resilience.BreakerState
	}{
		{"within", 0, 8 * time.Second, open},
		{"beyond", 0, 11 * time.Second, closed},
		{"within a longer one", time.Minute, 50 * time.Second, open},
		{"beyond a longer one", time.Minute, 70 * time.Second, closed},
		{"nothing is forgotten", -1, 1000 * time.Hour, open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := connect(t, always(503, ``), resilience.WithoutRetry(),
					resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: -1, Window: tt.window}))
				for range 5 {
					_, _ = track(t.Context(), d)
				}
				time.Sleep(tt.gap)
				for range 5 {
					_, _ = track(t.Context(), d)
				}
				if got := d.BreakerState("tracking"); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

// An old run of successes does not hide an outage for longer than the window.
func TestBreakerSeesAnOutageAfterManySuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := script(append(repeat(10_000, 200), 503)...)
		d := connect(t, carrier, resilience.WithoutRetry(),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: -1}))
		for range 10_000 {
			_, _ = track(t.Context(), d)
		}
		time.Sleep(11 * time.Second)
		for range 10 {
			_, _ = track(t.Context(), d)
		}
		if got := d.BreakerState("tracking"); got != open {
			t.Error(got)
		}
	})
}

// Failures in a row count however far apart they are.
func TestBreakerRowsAreLongerThanTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, always(503, ``), resilience.WithoutRetry())
		for i := range 5 {
			if got := d.BreakerState("tracking"); got != closed {
				t.Fatalf("%s after %d", got, i)
			}
			_, _ = track(t.Context(), d)
			time.Sleep(time.Hour)
		}
		if got := d.BreakerState("tracking"); got != open {
			t.Error(got)
		}
	})
}

// A carrier that hangs for longer than the window opens it too.
func TestBreakerHungForLongerThanTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }}
		d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithTimeout(-1), resilience.WithAttemptTimeout(time.Minute))
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = track(t.Context(), d) })
		}
		wg.Wait()
		if got := d.BreakerState("tracking"); got != open {
			t.Error(got)
		}
	})
}

// A call that was let through before the breaker opened, and ends after it has
// closed again, is late: it counts for nothing.
func TestBreakerLateResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
			switch {
			case n <= 3:
				if err := pause(r, 20*time.Second); err != nil {
					return nil, err
				}
				return newAnswer(503, ``), nil
			case n <= 8:
				return newAnswer(503, ``), nil
			}
			return newAnswer(200, `{}`), nil
		}}
		d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithAttemptTimeout(time.Minute),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 5, FailureRatio: -1}))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = track(t.Context(), d) })
		}
		synctest.Wait()
		openUp(t, d)
		time.Sleep(6 * time.Second)
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		wg.Wait() // three late failures
		carrier.answer = func(int, *http.Request) (*http.Response, error) { return newAnswer(503, ``), nil }
		for range 4 {
			_, _ = track(t.Context(), d)
		}
		if got := d.BreakerState("tracking"); got != closed {
			t.Errorf("%s: late failures count", got)
		}
	})
}

// refusalIn opens a new breaker by a 503 with a Retry-After, and returns for
// how long it then refuses.
func refusalIn(t *testing.T, retryAfter string, opts ...resilience.Option) time.Duration {
	t.Helper()
	var header []string
	if retryAfter != "" {
		header = []string{"Retry-After", retryAfter}
	}
	d := connect(t, always(503, ``, header...), append([]resilience.Option{resilience.WithoutRetry()}, opts...)...)
	openUp(t, d)
	_, err := track(t.Context(), d)
	if !errors.Is(err, resilience.ErrCircuitOpen) {
		t.Fatal(err)
	}
	return failureOf(t, err).RetryAfter
}

func TestBreakerOpenTime(t *testing.T) {
	maxRetryAfter := func(d time.Duration) resilience.Option {
		return resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 1, MaxRetryAfter: d})
	}
	openFor := func(d time.Duration) resilience.Option {
		return resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: d})
	}
	tests := []struct {
		name       string
		retryAfter string
		opts       []resilience.Option
		low, high  time.Duration
	}{
		{"default", "", nil, 4 * time.Second, 6 * time.Second},
		{"as set", "", []resilience.Option{openFor(time.Minute)}, 48 * time.Second, 72 * time.Second},
		{"shorter Retry-After", "1", nil, 4 * time.Second, 6 * time.Second},
		{"longer Retry-After", "30", nil, 30 * time.Second, 30 * time.Second},
		{"Retry-After over the cap", "3600", nil, time.Minute, time.Minute},
		{"Retry-After over another cap", "3600", []resilience.Option{maxRetryAfter(10 * time.Minute)}, 10 * time.Minute, 10 * time.Minute},
		{"Retry-After is not read", "30", []resilience.Option{maxRetryAfter(-1)}, 4 * time.Second, 6 * time.Second},
		{"Retry-After beyond all numbers", "99999999999999999999", nil, time.Minute, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				least, most := time.Duration(1<<62), time.Duration(0)
				for range 300 {
					wait := refusalIn(t, tt.retryAfter, tt.opts...)
					least, most = min(least, wait), max(most, wait)
				}
				if least < tt.low || most > tt.high {
					t.Errorf("from %v to %v, want %v to %v", least, most, tt.low, tt.high)
				}
				// Over 300 draws the jitter must use its range.
				if spread := tt.high - tt.low; most-least < spread*8/10 {
					t.Errorf("from %v to %v: hardly any jitter", least, most)
				}
			})
		})
	}
}

// The Retry-After of a failed probe counts too; that of another failure does not.
func TestBreakerRetryAfterIsTheLastFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := &memoryCarrier{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 || n == 6 {
				return newAnswer(503, ``, "Retry-After", "40"), nil
			}
			return newAnswer(503, ``), nil
		}}
		d := connect(t, carrier, resilience.WithoutRetry())
		openUp(t, d)
		_, err := track(t.Context(), d)
		if e := failureOf(t, err); e.RetryAfter > 6*time.Second {
			t.Errorf("open for %v: the first failure's Retry-After, not the last's", e.RetryAfter)
		}
		time.Sleep(6 * time.Second)
		_, _ = track(t.Context(), d) // the probe
		_, err = track(t.Context(), d)
		if e := failureOf(t, err); e.RetryAfter != 40*time.Second {
			t.Errorf("open for %v, want 40 s", e.RetryAfter)
		}
	})
}

// Negative fields switch their rule off.
func TestBreakerSwitchedOff(t *testing.T) {
	t.Run("no open time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			carrier := always(503, ``)
			d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: -1}))
			openUp(t, d)
			for range 10 {
				time.Sleep(time.Microsecond)
				_, err := track(t.Context(), d)
				isNot(t, err, resilience.ErrCircuitOpen)
			}
			if n := carrier.requests(); n != 15 {
				t.Errorf("%d requests, want 15", n)
			}
		})
	})
	t.Run("no probing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			carrier := always(503, ``)
			d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{HalfOpenCalls: -1}))
			openUp(t, d)
			_, err := track(t.Context(), d)
			is(t, err, resilience.ErrCircuitOpen)
			time.Sleep(6 * time.Second)
			for i := range 5 {
				_, err := track(t.Context(), d)
				isNot(t, err, resilience.ErrCircuitOpen)
				if got := d.BreakerState("tracking"); got != closed && i < 4 {
					t.Errorf("%s after %d failures", got, i+1)
				}
			}
			if got := d.BreakerState("tracking"); got != open {
				t.Error(got)
			}
		})
	})
	t.Run("no breaker", func(t *testing.T) {
		carrier := always(503, ``)
		d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithoutBreaker())
		for range 20 {
			_, err := track(t.Context(), d)
			isNot(t, err, resilience.ErrCircuitOpen)
		}
		if n := carrier.requests(); n != 20 {
			t.Errorf("%d requests, want 20", n)
		}
	})
	t.Run("no breaker for one call", func(t *testing.T) {
		carrier := always(503, ``)
		d := connect(t, carrier, resilience.WithoutRetry())
		for range 20 {
			_, _ = track(t.Context(), d, resilience.WithoutBreaker())
		}
		if got := d.BreakerState("tracking"); got != closed || carrier.requests() != 20 {
			t.Errorf("%s after %d requests: it was told", got, carrier.requests())
		}
		openUp(t, d)
		_, err := track(t.Context(), d, resilience.WithoutBreaker())
		isNot(t, err, resilience.ErrCircuitOpen)
	})
}

func TestBreakerPolicyIsChecked(t *testing.T) {
	nan := 0.0
	nan /= nan
	for name, p := range map[string]resilience.BreakerPolicy{
		"ratio over 1":    {FailureRatio: 1.01},
		"ratio NaN":       {FailureRatio: nan},
		"too many probes": {HalfOpenCalls: 1<<20 + 1},
		"status 200":      {FailureStatuses: []int{200}},
		"status 600":      {FailureStatuses: []int{600}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := resilience.NewBreaker("x", p)
			is(t, err, resilience.ErrInvalidRequest)
			_, err = resilience.New(resilience.WithBreaker(p))
			is(t, err, resilience.ErrInvalidRequest)
		})
	}
	_, err := resilience.New(resilience.WithSharedBreaker(nil))
	is(t, err, resilience.ErrInvalidRequest)

	// The list is copied.
	statuses := []int{503}
	b, err := resilience.NewBreaker("x", resilience.BreakerPolicy{FailureStatuses: statuses, ConsecutiveFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	statuses[0] = 404
	d := connect(t, always(503, ``), resilience.WithoutRetry(), resilience.WithSharedBreaker(b))
	_, _ = track(t.Context(), d)
	if got := b.State(); got != open {
		t.Error(got)
	}
}

// A breaker without a name is refused without one.
func TestBreakerWithoutAName(t *testing.T) {
	b, err := resilience.NewBreaker("", resilience.BreakerPolicy{ConsecutiveFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Execute(t.Context(), func(context.Context) error { return errNetwork })
	err = b.Execute(t.Context(), func(context.Context) error { return nil })
	if got := err.Error(); !strings.HasPrefix(got, "circuit breaker open, next probe in ") {
		t.Errorf("%q", got)
	}
}

func TestBreakerStateNames(t *testing.T) {
	for state, want := range map[resilience.BreakerState]string{closed: "closed", halfOpen: "half-open", open: "open"} {
		if got := state.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// OnStateChange may ask the breaker, and make calls through it.
func TestBreakerCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := script(append(repeat(5, 503), 503, 200)...)
		var d *resilience.Doer
		var seen []string
		policy := resilience.BreakerPolicy{OnStateChange: func(group string, from, to resilience.BreakerState) {
			seen = append(seen, fmt.Sprintf("%s %s>%s", group, from, to))
			if to == open || to == closed {
				if got := d.BreakerState(group); got != to {
					t.Errorf("%s while told of %s", got, to)
				}
			}
			if to == open {
				_, err := track(t.Context(), d)
				is(t, err, resilience.ErrCircuitOpen)
			}
			if to == closed {
				if _, err := track(t.Context(), d); err != nil {
					t.Error(err)
				}
			}
		}}
		d = connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(policy))
		openUp(t, d)
		time.Sleep(6 * time.Second)
		_, _ = track(t.Context(), d)
		time.Sleep(6 * time.Second)
		_, _ = track(t.Context(), d)
		want := []string{"tracking closed>open", "tracking open>half-open", "tracking half-open>open", "tracking open>half-open", "tracking half-open>closed"}
		if !slices.Equal(seen, want) {
			t.Errorf("got  %q\nwant %q", seen, want)
		}
	})
}

// A callback can itself change the state: it is told of that after it returned,
// and in order.
func TestBreakerCallbackChangesState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *resilience.Breaker
		var seen []string
		inside := false
		b, _ = resilience.NewBreaker("b", resilience.BreakerPolicy{ConsecutiveFailures: 1, OnStateChange: func(_ string, from, to resilience.BreakerState) {
			if inside {
				t.Error("told while a callback runs")
			}
			inside = true
			seen = append(seen, fmt.Sprintf("%s>%s", from, to))
			if len(seen) == 1 {
				time.Sleep(6 * time.Second)
				if err := b.Execute(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
			inside = false
		}})
		_ = b.Execute(t.Context(), func(context.Context) error { return errNetwork })
		want := []string{"closed>open", "open>half-open", "half-open>closed"}
		if !slices.Equal(seen, want) {
			t.Errorf("got %q, want %q", seen, want)
		}
	})
}

// A slow callback holds nobody up but the call that caused it.
func TestBreakerSlowCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, always(503, ``), resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{
			OnStateChange: func(string, resilience.BreakerState, resilience.BreakerState) { time.Sleep(time.Hour) },
		}))
		for range 4 {
			_, _ = track(t.Context(), d)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = track(t.Context(), d) })
		synctest.Wait()
		start := time.Now()
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrCircuitOpen)
		if took := time.Since(start); took != 0 {
			t.Errorf("held up for %v", took)
		}
		wg.Wait()
	})
}

// leaving runs f, and reports how it left: "return", "panic" or "Goexit".
func leaving(f func()) string {
	how := make(chan string, 1)
	go func() {
		result := "Goexit"
		defer func() {
			if recover() != nil {
				result = "panic"
			}
			how <- result
		}()
		f()
		result = "return"
	}()
	return <-how
}

// A callback that panics, or leaves its goroutine, must not take a probe's
// place with it, nor later news.
func TestBreakerCallbackThatPanics(t *testing.T) {
	for _, how := range []string{"panic", "Goexit"} {
		for _, waits := range []bool{false, true} {
			for _, bad := range []resilience.BreakerState{open, halfOpen, closed} {
				t.Run(fmt.Sprint(how, " at ", bad, ", waits ", waits), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						fail := true
						var seen []resilience.BreakerState
						b, _ := resilience.NewBreaker("b", resilience.BreakerPolicy{
							ConsecutiveFailures: 1, WaitWhenOpen: waits,
							OnStateChange: func(_ string, _, to resilience.BreakerState) {
								seen = append(seen, to)
								if to == bad && fail {
									fail = false
									if how == "panic" {
										panic("callback")
									}
									runtime.Goexit()
								}
							},
						})
						run := func(err error) string {
							return leaving(func() { _ = b.Execute(t.Context(), func(context.Context) error { return err }) })
						}
						left := []string{run(errNetwork)}
						for range 3 {
							time.Sleep(6 * time.Second)
							left = append(left, run(nil))
						}
						if got := b.State(); got != closed {
							t.Errorf("wedged: %s after %q", got, left)
						}
						if !slices.Contains(left, how) {
							t.Errorf("%q: nobody saw the %s", left, how)
						}
						if last := seen[len(seen)-1]; last != closed {
							t.Errorf("told of %v: later news got lost", seen)
						}
					})
				})
			}
		}
	}
}

// However a probe ends, the breaker is not wedged.
func TestBreakerProbeThatIsLost(t *testing.T) {
	tests := map[string]func(r *http.Request) (*http.Response, error){
		"panics":  func(*http.Request) (*http.Response, error) { panic("probe") },
		"goexits": func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil },
		"hangs":   func(r *http.Request) (*http.Response, error) { return nil, hang(r) },
		"429":     func(*http.Request) (*http.Response, error) { return newAnswer(429, ``), nil },
		"body panics": func(*http.Request) (*http.Response, error) {
			resp := newAnswer(200, ``)
			resp.Body, resp.ContentLength = panickingBody{}, -1
			return resp, nil
		},
	}
	for name, probe := range tests {
		for _, waits := range []bool{false, true} {
			for _, probes := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s, waits %v, %d probes", name, waits, probes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						bad := false
						carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
							if n <= 5 {
								return newAnswer(503, ``), nil
							}
							if bad {
								return probe(r)
							}
							return newAnswer(200, `{}`), nil
						}}
						d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(
							resilience.BreakerPolicy{WaitWhenOpen: waits, HalfOpenCalls: probes}))
						openUp(t, d)
						time.Sleep(6 * time.Second)
						bad = true
						for range 3 {
							_ = leaving(func() { _, _ = track(t.Context(), d) })
						}
						bad = false
						time.Sleep(6 * time.Second)
						for range probes {
							if _, err := track(t.Context(), d); err != nil {
								t.Fatal(err)
							}
						}
						if got := d.BreakerState("tracking"); got != closed {
							t.Error(got)
						}
					})
				})
			}
		}
	}
}

type panickingBody struct{}

func (panickingBody) Read([]byte) (int, error) { panic("body") }
func (panickingBody) Close() error             { return nil }

// A probe whose caller leaves gives its place back at once.
func TestBreakerProbeThatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
			switch {
			case n <= 5:
				return newAnswer(503, ``), nil
			case n == 6:
				return nil, hang(r)
			}
			return newAnswer(200, `{}`), nil
		}}
		d := connect(t, carrier, resilience.WithoutRetry())
		openUp(t, d)
		time.Sleep(6 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = track(ctx, d) })
		synctest.Wait()
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrCircuitOpen)
		cancel()
		wg.Wait()
		if got := d.BreakerState("tracking"); got != halfOpen {
			t.Errorf("%s after a probe that says nothing", got)
		}
		if _, err := track(t.Context(), d); err != nil {
			t.Error(err)
		}
		if got := d.BreakerState("tracking"); got != closed {
			t.Error(got)
		}
	})
}

// A refusal beside a probe names the attempt's time limit.
func TestBreakerRefusalBesideAProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, want time.Duration
	}{
		"default":  {0, 10 * time.Second},
		"as set":   {3 * time.Second, 3 * time.Second},
		"no limit": {-1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
					if n <= 5 {
						return newAnswer(503, ``), nil
					}
					return nil, hang(r)
				}}
				d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithAttemptTimeout(tt.limit))
				openUp(t, d)
				time.Sleep(6 * time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = track(ctx, d) })
				for range 2 {
					time.Sleep(time.Second)
					_, err := track(t.Context(), d)
					is(t, err, resilience.ErrCircuitOpen)
					if e := failureOf(t, err); e.RetryAfter != tt.want {
						t.Errorf("RetryAfter %v, want %v", e.RetryAfter, tt.want)
					}
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// A breaker that two clients share is one.
func TestBreakerShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := resilience.NewBreaker("carrier", resilience.BreakerPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		one, other := always(503, ``), always(200, `{}`)
		first := connect(t, one, resilience.WithoutRetry(), resilience.WithSharedBreaker(b))
		second := connect(t, other, resilience.WithoutRetry(), resilience.WithSharedBreaker(b))
		openUp(t, first)
		for _, d := range []*resilience.Doer{first, second} {
			for _, group := range []string{"tracking", "shipments", "anything"} {
				if got := d.BreakerState(group); got != open {
					t.Errorf("%s: %s", group, got)
				}
			}
		}
		_, err = ship(t.Context(), second, `{}`)
		is(t, err, resilience.ErrCircuitOpen)
		if !strings.Contains(err.Error(), `"carrier"`) {
			t.Errorf("%q does not name the breaker", err)
		}
		if n := other.requests(); n != 0 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(6 * time.Second)
		if _, err := track(t.Context(), second); err != nil {
			t.Error(err)
		}
		if b.State() != closed || first.BreakerState("tracking") != closed {
			t.Errorf("%s, %s", b.State(), first.BreakerState("tracking"))
		}
	})
}

// The last of WithBreaker, WithSharedBreaker and WithoutBreaker holds.
func TestBreakerOptionsReplaceEachOther(t *testing.T) {
	b, _ := resilience.NewBreaker("b", resilience.BreakerPolicy{ConsecutiveFailures: 1})
	d := connect(t, always(503, ``), resilience.WithoutRetry(), resilience.WithSharedBreaker(b),
		resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 2}))
	_, _ = track(t.Context(), d)
	if b.State() != closed || d.BreakerState("tracking") != closed {
		t.Errorf("%s, %s", b.State(), d.BreakerState("tracking"))
	}
	_, _ = track(t.Context(), d)
	if got := d.BreakerState("tracking"); got != open {
		t.Error(got)
	}
}

// Execute guards things that are no HTTP at all.
func TestBreakerExecute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := resilience.NewBreaker("printer", resilience.BreakerPolicy{ConsecutiveFailures: 3})
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		run := func(ctx context.Context, result error) error {
			return b.Execute(ctx, func(got context.Context) error {
				if got != ctx {
					t.Error("f got another context")
				}
				runs++
				return result
			})
		}
		jam := errors.New("paper jam")
		for range 3 {
			if err := run(t.Context(), jam); err != jam {
				t.Fatalf("got %v, want f's own error as it is", err)
			}
		}
		err = run(t.Context(), nil)
		is(t, err, resilience.ErrCircuitOpen, resilience.ErrUnavailable)
		e := failureOf(t, err)
		if e.Operation != "printer" || e.Outcome != resilience.OutcomeNotSent || e.RetryAfter < 4*time.Second || e.RetryAfter > 6*time.Second {
			t.Errorf("%q, %v, %v", e.Operation, e.Outcome, e.RetryAfter)
		}
		if runs != 3 {
			t.Errorf("%d runs, want 3", runs)
		}
		time.Sleep(e.RetryAfter)
		if err := run(t.Context(), nil); err != nil || b.State() != closed {
			t.Errorf("%v, %s", err, b.State())
		}

		// A context that has ended already runs nothing; one that ends meanwhile judges nothing.
		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		before := runs
		err = run(ctx, nil)
		is(t, err, context.Canceled, reason)
		if runs != before {
			t.Error("f ran")
		}
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			err := b.Execute(ctx, func(context.Context) error { cancel(); return ctx.Err() })
			is(t, err, context.Canceled)
		}
		if got := b.State(); got != closed {
			t.Errorf("%s by callers who left", got)
		}

		// Neither does a panic, and it goes on.
		for range 10 {
			if how := leaving(func() { _ = b.Execute(t.Context(), func(context.Context) error { panic("f") }) }); how != "panic" {
				t.Errorf("left by %s", how)
			}
		}
		if got := b.State(); got != closed {
			t.Errorf("%s by panics", got)
		}
	})
}

func TestBreakerExecuteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := resilience.NewBreaker("b", resilience.BreakerPolicy{ConsecutiveFailures: 1, WaitWhenOpen: true})
		_ = b.Execute(t.Context(), func(context.Context) error { return errNetwork })

		start := time.Now()
		if err := b.Execute(t.Context(), func(context.Context) error { return errNetwork }); err != errNetwork {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("waited %v", took)
		}

		// A deadline that comes before the next probe: refused now.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		err := b.Execute(ctx, func(context.Context) error { return nil })
		is(t, err, resilience.ErrCircuitOpen)
		if took := time.Since(start); took != 0 {
			t.Errorf("refused after %v", took)
		}

		// A caller who leaves while waiting.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err = b.Execute(ctx, func(context.Context) error { return nil })
		is(t, err, context.Canceled)
		isNot(t, err, resilience.ErrCircuitOpen)
	})
}

// Results that come in while it is open leave it open: for all of the open time.
func TestBreakerStaysOpenWhenLateResultsCome(t *testing.T) {
	for _, late := range []int{503, 200, 429} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
					if n <= 20 {
						if err := pause(r, time.Second); err != nil {
							return nil, err
						}
						return newAnswer(late, `{}`), nil
					}
					return newAnswer(503, ``), nil
				}}
				d := connect(t, carrier, resilience.WithoutRetry(), resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: time.Minute}))
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() { _, _ = track(t.Context(), d) })
				}
				synctest.Wait()
				openUp(t, d)
				wg.Wait()
				if got := d.BreakerState("tracking"); got != open {
					t.Errorf("%s after late results", got)
				}
				_, err := track(t.Context(), d)
				is(t, err, resilience.ErrCircuitOpen)
				if n := carrier.requests(); n != 25 {
					t.Errorf("%d requests, want 25", n)
				}
			})
		})
	}
}
