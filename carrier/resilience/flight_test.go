package resilience_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

const flightKey = "order-1001"

var withFlightKey = resilience.WithIdempotencyKey(flightKey)

// ledger is a carrier that notes every request for a shipment, takes a second,
// and answers by answer.
type ledger struct {
	mu     sync.Mutex
	bodies []string
	keys   []string
	answer func(nth int) (*http.Response, error)
}

func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	l.mu.Lock()
	l.bodies, l.keys = append(l.bodies, string(body)), append(l.keys, r.Header.Get("Idempotency-Key"))
	nth := len(l.bodies)
	l.mu.Unlock()
	if err := pause(r, time.Second); err != nil {
		return nil, err
	}
	if l.answer != nil {
		return l.answer(nth)
	}
	return newAnswer(201, fmt.Sprintf(`{"id":"s%d","labels":["pdf","zpl"]}`, nth), "X-Request-Id", fmt.Sprint("r", nth)), nil
}

func (l *ledger) seen(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bodies) != n {
		t.Errorf("%d requests, want %d", len(l.bodies), n)
	}
	for i := range l.bodies {
		if l.bodies[i] != l.bodies[0] || l.keys[i] != flightKey {
			t.Errorf("request %d: key %q, body %q", i+1, l.keys[i], l.bodies[i])
		}
	}
}

// doShip makes the call of ship through Do.
func doShip(ctx context.Context, d *resilience.Doer, body string, opts ...resilience.CallOption) (*http.Response, error) {
	req, err := http.NewRequestWithContext(resilience.WithCall(ctx, opts...), "POST", memoryURL+"/shipments", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return d.Do(req)
}

// The same key from 100 goroutines is one request. Everyone has the result, in
// a copy that is nobody else's.
func TestFlightIsOneRequest(t *testing.T) {
	t.Run("Call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					var info resilience.CallInfo
					v, err := ship(t.Context(), d, `{"reference":"1001"}`, withFlightKey, resilience.WithCallInfo(&info))
					if err != nil {
						t.Error(err)
						return
					}
					if v["id"] != "s1" || info.RequestID != "r1" || info.StatusCode != 201 || info.IdempotencyKey != flightKey {
						t.Errorf("%v, %+v", v, info)
					}
					v["id"] = "changed"
					v["labels"].([]any)[0] = "changed"
					info.Header.Set("X-Request-Id", "changed")
				})
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
	t.Run("Call, raw", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					r, err := resilience.CallBytes(t.Context(), d, keyedOp, &resilience.Request{Path: "/shipments", Body: []byte(`{}`)}, withFlightKey)
					if err != nil {
						t.Error(err)
						return
					}
					if !json.Valid(r.Body) || r.Header.Get("X-Request-Id") != "r1" {
						t.Errorf("%s, %v", r.Body, r.Header)
					}
					clear(r.Body)
					r.Header["X-Request-Id"][0] = "changed"
				})
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
	t.Run("Do", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					resp, err := doShip(t.Context(), d, `{"reference":"1001"}`, withFlightKey)
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || resp.Body.Close() != nil || resp.StatusCode != 201 || string(body) != `{"id":"s1","labels":["pdf","zpl"]}` || resp.Header.Get("X-Request-Id") != "r1" {
						t.Errorf("%v, %d, %s, %v", err, resp.StatusCode, body, resp.Header)
					}
					clear(body)
					resp.Header["X-Request-Id"][0] = "changed"
				})
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
}

// Do's callers can have set the key themselves, for an operation of the table
// or for any other.
func TestFlightByHeader(t *testing.T) {
	for _, path := range []string{"/shipments", "/not-in-the-spec"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				d := connect(t, l)
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						req, _ := http.NewRequestWithContext(t.Context(), "POST", memoryURL+path, strings.NewReader(`{}`))
						req.Header.Set("Idempotency-Key", flightKey)
						resp, err := d.Do(req)
						if err != nil {
							t.Error(err)
							return
						}
						_ = resp.Body.Close()
					})
				}
				wg.Wait()
				l.seen(t, 1)
			})
		})
	}
}

// An operation that is not in the client's table shares its flights too.
func TestFlightOfAnUnknownOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d, err := resilience.New(resilience.WithBaseURL(memoryURL), resilience.WithTransport(l))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		l.seen(t, 1)
	})
}

// Errors are shared as well, and are copies.
func TestFlightSharesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const problem = `{"title":"Not valid","code":"validation","errors":[{"pointer":"/parcels/0","code":"required","message":"m"}],"limit":[1,2]}`
		l := &ledger{answer: func(int) (*http.Response, error) {
			return newAnswer(422, problem, "Content-Type", "application/problem+json", "X-Request-Id", "r1"), nil
		}}
		d := connect(t, l)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := ship(t.Context(), d, `{}`, withFlightKey)
				is(t, err, resilience.ErrInvalidRequest)
				isNot(t, err, resilience.ErrKeyReused, resilience.ErrOutcomeUnknown)
				e := failureOf(t, err)
				if e.StatusCode != 422 || e.Attempts != 1 || e.RequestID != "r1" || e.IdempotencyKey != flightKey ||
					string(e.Body) != problem || e.Problem.Code != "validation" || len(e.Problem.Errors) != 1 ||
					e.Problem.Errors[0].Code != "required" || string(e.Problem.Extensions["limit"]) != `[1,2]` {
					t.Errorf("%+v, %+v", e, e.Problem)
				}
				clear(e.Body)
				e.Header.Set("X-Request-Id", "changed")
				e.Problem.Code = "changed"
				e.Problem.Errors[0].Code = "changed"
				clear(e.Problem.Extensions["limit"])
				e.Problem.Extensions["limit"] = nil
			})
		}
		wg.Wait()
		l.seen(t, 1)
	})
}

// Retries are the leader's: two attempts in all, not two for each.
func TestFlightSharesRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{answer: func(nth int) (*http.Response, error) {
			if nth == 1 {
				return nil, errNetwork
			}
			return newAnswer(201, `{"id":"s1"}`), nil
		}}
		d := connect(t, l)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if v, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil || v["id"] != "s1" {
					t.Errorf("%v, %v", v, err)
				}
			})
		}
		wg.Wait()
		l.seen(t, 2)
	})
}

// Other bytes under a key in flight are a programming error, told at once.
func TestFlightOfOtherBytes(t *testing.T) {
	otherOp, twinOp := *keyedOp, *keyedOp
	otherOp.ID, otherOp.Path = "createPickup", "/pickups"
	twinOp.ID = "createReturn"
	tests := map[string]func(context.Context, *resilience.Doer) error{
		"other body": func(ctx context.Context, d *resilience.Doer) error {
			_, err := ship(ctx, d, `{"reference":"1002"}`, withFlightKey)
			return err
		},
		"no body": func(ctx context.Context, d *resilience.Doer) error {
			return d.Call(ctx, keyedOp, &resilience.Request{Path: "/shipments"}, nil, withFlightKey)
		},
		"other query": func(ctx context.Context, d *resilience.Doer) error {
			return d.Call(ctx, keyedOp, &resilience.Request{Path: "/shipments", Query: "a=b", Body: []byte(`{"reference":"1001"}`)}, nil, withFlightKey)
		},
		"other operation": func(ctx context.Context, d *resilience.Doer) error {
			return d.Call(ctx, &otherOp, &resilience.Request{Path: "/pickups", Body: []byte(`{"reference":"1001"}`)}, nil, withFlightKey)
		},
		"other operation at the same place": func(ctx context.Context, d *resilience.Doer) error {
			return d.Call(ctx, &twinOp, &resilience.Request{Path: "/shipments", Body: []byte(`{"reference":"1001"}`)}, nil, withFlightKey)
		},
		"through Do": func(ctx context.Context, d *resilience.Doer) error {
			_, err := doShip(ctx, d, `{"reference":"1002"}`, withFlightKey)
			return err
		},
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				d := connect(t, l)
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := ship(t.Context(), d, `{"reference":"1001"}`, withFlightKey); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				start := time.Now()
				err := other(t.Context(), d)
				is(t, err, resilience.ErrKeyReused)
				isNot(t, err, resilience.ErrOutcomeUnknown, resilience.ErrInvalidRequest)
				e := failureOf(t, err)
				if e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || e.IdempotencyKey != flightKey || time.Since(start) != 0 {
					t.Errorf("%v, %d attempts, key %q, after %v", e.Outcome, e.Attempts, e.IdempotencyKey, time.Since(start))
				}
				wg.Wait()
				l.seen(t, 1)
			})
		})
	}
}

// After a flight has landed its key is free: here the carrier is the judge.
func TestFlightEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{answer: func(nth int) (*http.Response, error) {
			if nth == 2 {
				return nil, errNetwork
			}
			return newAnswer(201, fmt.Sprintf(`{"nth":%d}`, nth)), nil
		}}
		d := connect(t, l, resilience.WithoutRetry())
		for _, body := range []string{`{"a":1}`, `{"a":2}`, `{"a":3}`} {
			_, err := ship(t.Context(), d, body, withFlightKey)
			isNot(t, err, resilience.ErrKeyReused)
		}
		if want := []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}; !slices.Equal(l.bodies, want) {
			t.Errorf("got %q, want %q", l.bodies, want)
		}
	})
}

// Calls without a key of the caller's have each their own.
func TestFlightNeedsAKeyOfTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := connect(t, l)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _, _ = ship(t.Context(), d, `{}`) })
		}
		wg.Wait()
		slices.Sort(l.keys)
		if n := len(slices.Compact(l.keys)); n != 10 {
			t.Errorf("%d different keys of 10", n)
		}
	})
}

// If the first caller leaves, the next one goes on, with the same bytes and
// key; the others do not notice.
func TestFlightGoesOnWhenTheLeaderLeaves(t *testing.T) {
	for _, leavers := range []int{1, 2, 5} {
		for _, through := range []string{"Call", "Do"} {
			t.Run(fmt.Sprint(through, leavers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &ledger{}
					d := connect(t, l)
					reason := errors.New("shutting down")
					send := func(ctx context.Context) error {
						body := []byte(`{"reference":"1001"}`)
						defer clear(body) // whoever has the result may use its bytes again
						if through == "Call" {
							_, err := resilience.CallJSON[document](ctx, d, keyedOp, &resilience.Request{Path: "/shipments", Body: body}, withFlightKey)
							return err
						}
						req, _ := http.NewRequestWithContext(resilience.WithCall(ctx, withFlightKey), "POST", memoryURL+"/shipments", bytes.NewReader(body))
						resp, err := d.Do(req)
						if err == nil {
							err = resp.Body.Close()
						}
						return err
					}
					var wg sync.WaitGroup
					// Each of these leads for half a second, and leaves.
					for i := range leavers {
						ctx, cancel := context.WithCancelCause(t.Context())
						time.AfterFunc(time.Duration(i+1)*500*time.Millisecond, func() { cancel(reason) })
						wg.Go(func() { is(t, send(ctx), context.Canceled, reason) })
						synctest.Wait()
					}
					for range 10 {
						wg.Go(func() {
							if err := send(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
					time.Sleep(time.Duration(leavers)*500*time.Millisecond + 1)
					synctest.Wait()
					// Who joins now is compared with what the first leader had.
					_, err := ship(t.Context(), d, `{"reference":"1002"}`, withFlightKey)
					is(t, err, resilience.ErrKeyReused)
					if err := send(t.Context()); err != nil {
						t.Error(err)
					}
					wg.Wait()
					if n := len(l.bodies); n < 2 || n > leavers+1 {
						t.Errorf("%d requests", n)
					}
					l.seen(t, len(l.bodies))
				})
			})
		}
	}
}

// Who leaves while another's call has the key cannot know what that one did.
func TestFlightCallersWhoLeave(t *testing.T) {
	t.Run("cancel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			reason := errors.New("shutting down")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(500*time.Millisecond, func() { cancel(reason) })
			start := time.Now()
			_, err := ship(ctx, d, `{}`, withFlightKey)
			is(t, err, context.Canceled, reason, resilience.ErrOutcomeUnknown)
			isNot(t, err, resilience.ErrTimeout)
			e := failureOf(t, err)
			if e.Outcome != resilience.OutcomeUnknown || e.IdempotencyKey != flightKey || time.Since(start) != 500*time.Millisecond {
				t.Errorf("%v, key %q, after %v", e.Outcome, e.IdempotencyKey, time.Since(start))
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = ship(t.Context(), d, `{}`, withFlightKey) })
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := ship(ctx, d, `{}`, withFlightKey)
			is(t, err, context.DeadlineExceeded, resilience.ErrTimeout, resilience.ErrOutcomeUnknown)
			if e := failureOf(t, err); e.Timeout != 500*time.Millisecond {
				t.Errorf("Timeout %v", e.Timeout)
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
	t.Run("total time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = ship(t.Context(), d, `{}`, withFlightKey) })
			synctest.Wait()
			start := time.Now()
			_, err := ship(t.Context(), d, `{}`, withFlightKey, resilience.WithTimeout(500*time.Millisecond))
			is(t, err, resilience.ErrTimeout, resilience.ErrOutcomeUnknown)
			isNot(t, err, context.DeadlineExceeded)
			if e := failureOf(t, err); e.Timeout != 500*time.Millisecond || time.Since(start) != 500*time.Millisecond {
				t.Errorf("Timeout %v, after %v", e.Timeout, time.Since(start))
			}
			wg.Wait()
			l.seen(t, 1)
		})
	})
	t.Run("total time limit, then in the lead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := connect(t, &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }}, resilience.WithoutRetry())
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, cancel)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = ship(ctx, d, `{}`, withFlightKey) })
			synctest.Wait()
			start := time.Now()
			_, err := ship(t.Context(), d, `{}`, withFlightKey, resilience.WithTimeout(5*time.Second))
			is(t, err, resilience.ErrTimeout)
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("5 s became %v", took)
			}
			wg.Wait()
		})
	})
}

// When all have left, nothing of the flight is left: the key is free.
func TestFlightLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := true
		d := connect(t, &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if hung {
				return nil, hang(r)
			}
			return newAnswer(201, `{}`), nil
		}})
		for round := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 10 {
				own, leave := context.WithCancel(ctx)
				if i%2 == 0 {
					time.AfterFunc(time.Duration(i)*time.Millisecond, leave)
				}
				wg.Go(func() {
					_, err := ship(own, d, fmt.Sprint(round), withFlightKey)
					is(t, err, context.Canceled)
					leave()
				})
			}
			time.AfterFunc(6*time.Millisecond, cancel) // with one of them, at the same time
			wg.Wait()
			cancel()
		}
		// Other bytes are free to use the key now.
		hung = false
		if _, err := ship(t.Context(), d, `{"other":true}`, withFlightKey); err != nil {
			t.Error(err)
		}
	})
}

// A leader that panics or leaves its goroutine in the transport takes nobody
// with it.
func TestFlightSurvivesItsLeader(t *testing.T) {
	for _, how := range []string{"panic", "Goexit"} {
		for _, waiters := range []int{0, 1, 20} {
			t.Run(fmt.Sprint(how, waiters), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &ledger{}
					l.answer = func(nth int) (*http.Response, error) {
						if nth > 1 {
							return newAnswer(201, `{"id":"s1"}`), nil
						}
						if how == "panic" {
							panic("transport")
						}
						runtime.Goexit()
						return nil, nil
					}
					d := connect(t, l)
					var wg sync.WaitGroup
					wg.Go(func() {
						if got := leaving(func() { _, _ = ship(t.Context(), d, `{}`, withFlightKey) }); got != how {
							t.Errorf("the leader left by %s", got)
						}
					})
					synctest.Wait()
					for range waiters {
						wg.Go(func() {
							if v, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil || v["id"] != "s1" {
								t.Errorf("%v, %v", v, err)
							}
						})
					}
					wg.Wait()
					l.seen(t, 1+min(waiters, 1))
					if _, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// Whoever waits decodes for itself: what it cannot decode is its own error.
func TestFlightDecodesForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := connect(t, l)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			_, err := resilience.CallJSON[[]int](t.Context(), d, keyedOp, &resilience.Request{Path: "/shipments", Body: []byte(`{}`)}, withFlightKey)
			is(t, err, resilience.ErrMalformedResponse)
			e := failureOf(t, err)
			if e.Outcome != resilience.OutcomeDone || e.StatusCode != 201 || e.IdempotencyKey != flightKey || len(e.Body) == 0 {
				t.Errorf("%v, status %d, key %q, body %q", e.Outcome, e.StatusCode, e.IdempotencyKey, e.Body)
			}
		})
		wg.Wait()
		l.seen(t, 1)
	})
}

// Flights of two clients have nothing to do with each other.
func TestFlightIsTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		var wg sync.WaitGroup
		for range 3 {
			d := connect(t, l)
			wg.Go(func() { _, _ = ship(t.Context(), d, `{}`, withFlightKey) })
		}
		wg.Wait()
		l.seen(t, 3)
	})
}

// Who waits for another's call without a time limit waits as long as it takes.
func TestFlightWithoutATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := connect(t, l, resilience.WithTimeout(-1))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		l.seen(t, 1)
	})
}

// A leader that leaves at the moment of its success has a result all the same.
func TestFlightOfALeaderWhoLeavesWithAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		l := &ledger{answer: func(int) (*http.Response, error) {
			a := newAnswer(201, "")
			a.Body, a.ContentLength = leavingBody{strings.NewReader(`{"id":"s1"}`), leave}, -1
			return a, nil
		}}
		d := connect(t, l)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = ship(ctx, d, `{}`, withFlightKey) })
		synctest.Wait()
		wg.Go(func() {
			if v, err := ship(t.Context(), d, `{}`, withFlightKey); err != nil || v["id"] != "s1" {
				t.Errorf("%v, %v", v, err)
			}
		})
		wg.Wait()
		l.seen(t, 1)
	})
}

// One that had left before it began leads nowhere.
func TestFlightOfACallerWhoHadLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		d := connect(t, l)
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := ship(gone, d, `{"reference":"1001"}`, withFlightKey)
		is(t, err, context.Canceled)
		if _, err := ship(t.Context(), d, `{"reference":"1002"}`, withFlightKey); err != nil {
			t.Error(err)
		}
		l.seen(t, 1)
	})
}

// When one who had taken the lead leaves too, the key is free.
func TestFlightAfterTwoLeadersLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := connect(t, &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
			if n < 3 {
				return nil, hang(r)
			}
			return newAnswer(201, `{}`), nil
		}})
		var wg sync.WaitGroup
		for i := range 2 {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i+1)*time.Second, leave)
			wg.Go(func() {
				_, err := ship(ctx, d, `{"reference":"1001"}`, withFlightKey)
				is(t, err, context.Canceled)
			})
			synctest.Wait()
		}
		wg.Wait()
		if _, err := ship(t.Context(), d, `{"reference":"1002"}`, withFlightKey); err != nil {
			t.Error(err)
		}
	})
}

// Bodies up to a mebibyte are compared, so that calls of one key can be shared.
func TestFlightThroughDoOfABigBody(t *testing.T) {
	for _, test := range []struct{ size, requests int }{{1 << 20, 1}, {1<<20 + 1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			d := connect(t, l)
			body := strings.Repeat("x", test.size)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					resp, err := doShip(t.Context(), d, body, withFlightKey)
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
				})
			}
			wg.Wait()
			l.seen(t, test.requests)
		})
	}
}
