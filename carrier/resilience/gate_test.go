package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// waiting is a policy under which calls wait at an open breaker.
func waiting(openFor time.Duration) resilience.BreakerPolicy {
	return resilience.BreakerPolicy{WaitWhenOpen: true, OpenFor: openFor, ConsecutiveFailures: 1}
}

// line makes n calls arrive a microsecond apart, and returns in which order
// their requests got to the carrier, with the answer that each of these got.
type line struct {
	mu     sync.Mutex
	order  []int
	answer func(nth int) int // the status for the nth request of the line
	pace   time.Duration     // how long an answer takes
}

// served is whose requests have arrived, in order.
func (l *line) served() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.order)
}

type lineKey struct{}

func (l *line) handle(_ int, r *http.Request) (*http.Response, error) {
	who, ok := r.Context().Value(lineKey{}).(int)
	if !ok {
		return newAnswer(503, ``), nil
	}
	l.mu.Lock()
	l.order = append(l.order, who)
	nth := len(l.order)
	l.mu.Unlock()
	if err := pause(r, l.pace); err != nil {
		return nil, err
	}
	return newAnswer(l.answer(nth), `{}`), nil
}

// arrive starts call number who, and returns once it waits.
func arrive(wg *sync.WaitGroup, ctx context.Context, d *resilience.Doer, who int, result func(error), opts ...resilience.CallOption) {
	wg.Go(func() {
		_, err := track(context.WithValue(ctx, lineKey{}, who), d, opts...)
		if result != nil {
			result(err)
		}
	})
	synctest.Wait()
}

func upTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i)
	}
	return list
}

// First come, first served: the probe is the first in line, and the others
// leave in the order in which they came.
func TestGateIsFair(t *testing.T) {
	for _, failed := range []int{0, 1, 5} {
		t.Run(fmt.Sprint(failed, " failed probes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{pace: 10 * time.Millisecond, answer: func(nth int) int {
					if nth <= failed {
						return 503
					}
					return 200
				}}
				d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(time.Second)), resilience.WithTimeout(-1))
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				var wg sync.WaitGroup
				for who := range 20 {
					arrive(&wg, t.Context(), d, who, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				// Who probed in vain comes back after its backoff, at the end of the line.
				want := append(upTo(failed), append(upTo(20)[failed:], upTo(failed)...)...)
				if !slices.Equal(l.served(), want) {
					t.Errorf("got  %v\nwant %v", l.served(), want)
				}
			})
		})
	}
}

// One probe at a time, and each open time has one.
func TestGateSendsOneProbeAtATime(t *testing.T) {
	for _, probes := range []int{1, 3} {
		t.Run(fmt.Sprint(probes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				out, most := 0, 0
				healthy := time.Now().Add(30 * time.Second)
				carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
					switch {
					case n == 1:
						return newAnswer(503, ``), nil
					case time.Now().After(healthy):
						return newAnswer(200, `{}`), nil
					}
					mu.Lock()
					out++
					most = max(most, out)
					mu.Unlock()
					defer func() { mu.Lock(); out--; mu.Unlock() }()
					if err := pause(r, 300*time.Millisecond); err != nil {
						return nil, err
					}
					return newAnswer(503, ``), nil
				}}
				policy := waiting(time.Second)
				policy.HalfOpenCalls = probes
				d := connect(t, carrier, resilience.WithBreaker(policy), resilience.WithTimeout(-1))
				start := time.Now()
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				var wg sync.WaitGroup
				for who := range 50 {
					arrive(&wg, t.Context(), d, who, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if most != 1 {
					t.Errorf("%d probes at a time", most)
				}
				// 30 s of 0.8 s to 1.2 s each, and 0.3 s for the probe.
				probed := 0
				for _, at := range carrier.arrivals(start) {
					if at > 0 && at < 30*time.Second {
						probed++
					}
				}
				if probed < 20 || probed > 27 {
					t.Errorf("%d probes in 30 s", probed)
				}
			})
		})
	}
}

// A failed probe does not count against a waiting call's MaxAttempts; an
// answer that says nothing of the carrier's health does.
func TestGateProbesAndMaxAttempts(t *testing.T) {
	tests := []struct {
		name     string
		status   int
		waits    bool
		attempts int // of one call, in 30 s
	}{
		{"failed probes", 503, true, 20},
		{"without waiting", 503, false, 1},
		{"excluded probes", 429, true, 3},
		{"probes that are a success to the breaker", 408, true, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answer: func(int) int { return tt.status }}
				policy := waiting(time.Second)
				policy.WaitWhenOpen = tt.waits
				d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(policy))
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				if !tt.waits {
					time.Sleep(2 * time.Second)
				}
				_, err := track(context.WithValue(t.Context(), lineKey{}, 0), d)
				if got := failureOf(t, err); got.StatusCode != tt.status || tt.attempts < 10 && got.Attempts != tt.attempts || got.Attempts < tt.attempts {
					t.Errorf("status %d, %d attempts; want %d, %d", got.StatusCode, got.Attempts, tt.status, tt.attempts)
				}
			})
		})
	}
}

// While the breaker is not closed the gate stands in for the budget: neither a
// probe nor what a good one lets out takes tokens or asks for them.
func TestGateStandsInForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := time.Now().Add(20 * time.Second)
		letOut := map[any]int{} // requests of each caller since it is up again
		var mu sync.Mutex
		carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if time.Now().Before(down) {
				return newAnswer(503, ``), nil
			}
			who := r.Context().Value(lineKey{})
			mu.Lock()
			defer mu.Unlock()
			letOut[who]++
			if len(letOut) > 1 && letOut[who] == 1 { // not the probe
				return newAnswer(408, ``), nil
			}
			return newAnswer(200, `{}`), nil
		}}
		d := connect(t, carrier, resilience.WithTimeout(-1), resilience.WithBreaker(waiting(time.Second)),
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 2.5, Ratio: -1, Refill: -1}))
		_, _ = track(t.Context(), d, resilience.WithoutRetry()) // opens it, and takes no token any more
		var wg sync.WaitGroup
		for who := range 20 {
			arrive(&wg, t.Context(), d, who, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(letOut) != 20 {
			t.Errorf("%d callers of 20 were let out", len(letOut))
		}

		// Once it has closed, the budget rules again. It is untouched: 2.5 tokens are good for one retry.
		carrier.answer = func(int, *http.Request) (*http.Response, error) { return newAnswer(408, ``), nil }
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrBudgetExhausted)
		if e := failureOf(t, err); e.Attempts != 2 {
			t.Errorf("%d attempts, want 2", e.Attempts)
		}
	})
}

// A call that has no time for the next probe is refused at once, with its last
// real answer if it had one.
func TestGateRefusesWhoHasNoTime(t *testing.T) {
	t.Run("on arrival", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := connect(t, always(503, ``), resilience.WithBreaker(waiting(10*time.Second)))
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
			for _, first := range []bool{true, false} {
				var wg sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				if !first {
					arrive(&wg, ctx, d, 0, nil, resilience.WithTimeout(time.Hour)) // has time, and waits in front
				}
				start := time.Now()
				_, err := track(t.Context(), d, resilience.WithTimeout(5*time.Second))
				is(t, err, resilience.ErrCircuitOpen)
				isNot(t, err, resilience.ErrTimeout)
				e := failureOf(t, err)
				if took := time.Since(start); took != 0 || e.Attempts != 0 || e.RetryAfter < 7*time.Second || e.RetryAfter > 12*time.Second {
					t.Errorf("first %v: took %v, %d attempts, RetryAfter %v", first, took, e.Attempts, e.RetryAfter)
				}
				cancel()
				wg.Wait()
			}
		})
	})
	t.Run("by the reserve for an attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := connect(t, always(503, ``, "Retry-After", "10"), resilience.WithBreaker(waiting(time.Second)))
			_, _ = track(t.Context(), d, resilience.WithoutRetry()) // open for exactly 10 s
			start := time.Now()
			_, err := track(t.Context(), d, resilience.WithTimeout(10900*time.Millisecond)) // 1 s of these is reserved
			is(t, err, resilience.ErrCircuitOpen)
			if e := failureOf(t, err); e.Attempts != 0 || time.Since(start) != 0 {
				t.Errorf("%d attempts after %v; want to be refused at once", e.Attempts, time.Since(start))
			}
			_, err = track(t.Context(), d, resilience.WithTimeout(11100*time.Millisecond), resilience.WithoutRetry())
			if e := failureOf(t, err); e.Attempts != 1 || time.Since(start) != 10*time.Second {
				t.Errorf("%d attempts after %v; want one after 10 s", e.Attempts, time.Since(start))
			}
		})
	})
	t.Run("after an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := connect(t, always(503, `{"code":"maintenance"}`), resilience.WithBreaker(waiting(10*time.Second)))
			start := time.Now()
			_, err := track(t.Context(), d, resilience.WithTimeout(5*time.Second))
			is(t, err, resilience.ErrCircuitOpen, resilience.ErrUnavailable)
			isNot(t, err, resilience.ErrTimeout)
			e := failureOf(t, err)
			if took := time.Since(start); took != 0 || e.Attempts != 1 || e.StatusCode != 503 || e.Problem == nil || e.RetryAfter < 8*time.Second {
				t.Errorf("took %v, %d attempts, status %d, problem %v, RetryAfter %v", took, e.Attempts, e.StatusCode, e.Problem, e.RetryAfter)
			}
		})
	})
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &line{answer: func(int) int { return 503 }}
			d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(10*time.Second)))
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
			start := time.Now()
			var wg sync.WaitGroup
			for who := range 3 {
				arrive(&wg, t.Context(), d, who, func(err error) {
					// Number 0 probes after 8 s to 12 s; for none of them is there time for another.
					is(t, err, resilience.ErrCircuitOpen)
					if took := time.Since(start); took > 12*time.Second {
						t.Errorf("number %d: refused only after %v", who, took)
					}
				}, resilience.WithTimeout(15*time.Second)) // less than twice the shortest
			}
			wg.Wait()
			if !slices.Equal(l.served(), []int{0}) {
				t.Errorf("probes by %v, want 0 alone", l.served())
			}
		})
	})
	t.Run("while it waits behind one who has time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &line{answer: func(int) int { return 503 }}
			d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(10*time.Second)))
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
			start := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			arrive(&wg, ctx, d, 0, nil, resilience.WithTimeout(time.Hour))
			arrive(&wg, ctx, d, 1, nil, resilience.WithTimeout(time.Hour))
			arrive(&wg, ctx, d, 2, func(err error) {
				is(t, err, resilience.ErrCircuitOpen)
				if took := time.Since(start); took > 12*time.Second {
					t.Errorf("refused only after %v", took)
				}
			}, resilience.WithTimeout(15*time.Second))
			time.Sleep(16 * time.Second)
			cancel()
			wg.Wait()
		})
	})
	t.Run("no probe comes to an end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
				if n == 1 {
					return newAnswer(503, ``), nil
				}
				return nil, hang(r)
			}}
			d := connect(t, carrier, resilience.WithBreaker(waiting(time.Second)), resilience.WithTimeout(-1), resilience.WithAttemptTimeout(time.Minute))
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			arrive(&wg, ctx, d, 0, nil)
			time.Sleep(2 * time.Second)
			start := time.Now()
			_, err := track(t.Context(), d, resilience.WithTimeout(20*time.Second))
			is(t, err, resilience.ErrCircuitOpen)
			// A tenth of the time left is kept for an attempt.
			if took := time.Since(start); took != 18*time.Second {
				t.Errorf("refused after %v", took)
			}
			if e := failureOf(t, err); e.RetryAfter != time.Minute {
				t.Errorf("RetryAfter %v", e.RetryAfter)
			}
			cancel()
			wg.Wait()
		})
	})
	t.Run("its slot is too late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &line{answer: func(int) int { return 200 }}
			d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(time.Second)))
			_, _ = track(t.Context(), d, resilience.WithoutRetry())
			var wg sync.WaitGroup
			var mu sync.Mutex
			refused := 0
			for who := range 1001 { // slots over 5 s
				arrive(&wg, t.Context(), d, who, func(err error) {
					if errors.Is(err, resilience.ErrCircuitOpen) {
						mu.Lock()
						refused++
						mu.Unlock()
					} else if err != nil {
						t.Error(err)
					}
				}, resilience.WithTimeout(4*time.Second))
			}
			wg.Wait()
			if got := len(l.served()) + refused; got != 1001 || refused < 250 {
				t.Errorf("%d served, %d refused", len(l.served()), refused)
			}
		})
	})
}

// Who leaves the line lets the next one move up, wherever it stood.
func TestGateCallersWhoLeave(t *testing.T) {
	tests := []struct {
		name  string
		leave []int
		when  time.Duration // after the breaker has opened for 10 s
		want  []int
	}{
		{"the first", []int{0}, time.Second, []int{1, 2, 3, 4}},
		{"the first two", []int{0, 1}, time.Second, []int{2, 3, 4}},
		{"one in the middle", []int{2}, time.Second, []int{0, 1, 3, 4}},
		{"the last", []int{4}, time.Second, []int{0, 1, 2, 3}},
		{"all", []int{0, 1, 2, 3, 4}, time.Second, nil},
		{"the probe", []int{0}, 10*time.Second + time.Millisecond, []int{0, 1, 2, 3, 4}},
		{"the probe and the next", []int{0, 1}, 10*time.Second + time.Millisecond, []int{0, 2, 3, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{pace: 10 * time.Millisecond, answer: func(int) int { return 200 }}
				carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
					if n == 1 {
						return newAnswer(503, ``, "Retry-After", "10"), nil
					}
					return l.handle(n, r)
				}}
				d := connect(t, carrier, resilience.WithBreaker(waiting(time.Second)), resilience.WithTimeout(-1))
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				start := time.Now()
				var wg sync.WaitGroup
				for who := range 5 {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if slices.Contains(tt.leave, who) {
						time.AfterFunc(tt.when-time.Duration(who)*time.Microsecond, cancel)
					}
					arrive(&wg, ctx, d, who, func(err error) {
						if !slices.Contains(tt.leave, who) {
							if err != nil {
								t.Errorf("number %d: %v", who, err)
							}
							return
						}
						is(t, err, context.Canceled)
						isNot(t, err, resilience.ErrCircuitOpen)
						if took := time.Since(start).Round(time.Millisecond); took != tt.when {
							t.Errorf("number %d: left after %v, want %v", who, took, tt.when)
						}
					})
				}
				wg.Wait()
				if !slices.Equal(l.served(), tt.want) {
					t.Errorf("got %v, want %v", l.served(), tt.want)
				}
				if took := time.Since(start); len(tt.want) > 0 && took > 11*time.Second {
					t.Errorf("all done only after %v", took)
				}
			})
		})
	}
}

// What a good probe lets out is spread evenly over max(500 ms, 5 ms × calls).
func TestGateSlots(t *testing.T) {
	for n, spread := range map[int]time.Duration{
		1: 500 * time.Millisecond, 2: 500 * time.Millisecond, 50: 500 * time.Millisecond,
		100: 500 * time.Millisecond, 101: 505 * time.Millisecond, 400: 2 * time.Second,
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				carrier := script(503, 200)
				start := time.Now()
				d := connect(t, carrier, resilience.WithBreaker(waiting(time.Second)))
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				var wg sync.WaitGroup
				for who := range n + 1 {
					arrive(&wg, t.Context(), d, who, nil)
				}
				wg.Wait()
				at := carrier.arrivals(start)
				if len(at) != n+2 {
					t.Fatalf("%d requests, want %d", len(at), n+2)
				}
				probe := at[1]
				step := spread / time.Duration(n)
				for i, when := range at[2:] {
					if got, want := when-probe, step*time.Duration(i+1); got != want {
						t.Fatalf("number %d after %v, want %v", i, got, want)
					}
				}
			})
		})
	}
}

// Who comes when the breaker has closed does not wait behind the slots.
func TestGateNewcomersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := script(503, 200)
		d := connect(t, carrier, resilience.WithBreaker(waiting(time.Second)))
		_, _ = track(t.Context(), d, resilience.WithoutRetry())
		var wg sync.WaitGroup
		for who := range 10 {
			arrive(&wg, t.Context(), d, who, nil)
		}
		for d.BreakerState("tracking") != closed {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		if _, err := track(t.Context(), d); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		wg.Wait()
	})
}

// A breaker that opens again while slots are pending takes them back: who had
// one is in line as before, in front of those who came later.
func TestGateReopensWhileSlotsArePending(t *testing.T) {
	for _, openFor := range []time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second} {
		t.Run(openFor.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answer: func(nth int) int {
					if nth == 4 { // the probe, two of the slots, and then it is down again
						return 503
					}
					return 200
				}}
				d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(openFor)), resilience.WithTimeout(-1))
				_, _ = track(t.Context(), d, resilience.WithoutRetry())
				var wg sync.WaitGroup
				result := func(err error) {
					if err != nil {
						t.Error(err)
					}
				}
				for who := range 10 {
					arrive(&wg, t.Context(), d, who, result)
				}
				// Slots are 55 ms apart. Newcomers find the breaker open for the second time.
				for len(l.served()) < 4 || d.BreakerState("tracking") != open {
					time.Sleep(time.Millisecond)
					synctest.Wait()
				}
				reopened := time.Now()
				for who := range 3 {
					arrive(&wg, t.Context(), d, 100+who, result)
				}
				for len(l.served()) < 5 {
					time.Sleep(time.Millisecond)
					synctest.Wait()
				}
				if waited := time.Since(reopened); waited < openFor*8/10 || waited > openFor*12/10+time.Millisecond {
					t.Errorf("probed after %v, open for %v", waited, openFor)
				}
				wg.Wait()
				// Number 3 failed, and came back behind the newcomers, or before them if its backoff was short.
				got := slices.DeleteFunc(l.served(), func(who int) bool { return who == 3 })
				want := []int{0, 1, 2, 4, 5, 6, 7, 8, 9, 100, 101, 102}
				if !slices.Equal(got, want) {
					t.Errorf("got  %v\nwant %v", got, want)
				}
				if n := len(l.served()); n != 14 {
					t.Errorf("%d requests, want 14", n)
				}
			})
		})
	}
}

// With a breaker that stays open for no time at all, waiting calls still get on.
func TestGateWithoutOpenTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{answer: func(nth int) int {
			if nth < 10 {
				return 503
			}
			return 200
		}}
		d := connect(t, &memoryCarrier{answer: l.handle}, resilience.WithBreaker(waiting(-1)))
		_, _ = track(t.Context(), d, resilience.WithoutRetry())
		var wg sync.WaitGroup
		for who := range 3 {
			arrive(&wg, t.Context(), d, who, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// Without probing the end of the open time lets all waiting calls out, spread.
func TestGateWithoutProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carrier := script(503, 200)
		start := time.Now()
		policy := waiting(time.Second)
		policy.HalfOpenCalls = -1
		d := connect(t, carrier, resilience.WithBreaker(policy))
		_, _ = track(t.Context(), d, resilience.WithoutRetry())
		var wg sync.WaitGroup
		for who := range 11 {
			arrive(&wg, t.Context(), d, who, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		at := carrier.arrivals(start)
		if spread := at[len(at)-1] - at[1]; spread < 450*time.Millisecond || spread > 550*time.Millisecond {
			t.Errorf("spread over %v", spread)
		}
	})
}

// A probe that is excluded, panics or hangs wakes the next in line.
func TestGateEveryEndOfAProbeWakesTheNext(t *testing.T) {
	for name, probe := range map[string]func(r *http.Request) (*http.Response, error){
		"429":      func(*http.Request) (*http.Response, error) { return newAnswer(429, ``), nil },
		"panics":   func(*http.Request) (*http.Response, error) { panic("probe") },
		"is gone":  func(r *http.Request) (*http.Response, error) { return nil, hang(r) },
		"hangs":    func(r *http.Request) (*http.Response, error) { return nil, hang(r) },
		"succeeds": func(*http.Request) (*http.Response, error) { return newAnswer(404, ``), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				carrier := &memoryCarrier{answer: func(n int, r *http.Request) (*http.Response, error) {
					switch n {
					case 1:
						return newAnswer(503, ``), nil
					case 2:
						return probe(r)
					}
					return newAnswer(200, `{}`), nil
				}}
				d := connect(t, carrier, resilience.WithBreaker(waiting(time.Second)), resilience.WithoutRetry())
				_, _ = track(t.Context(), d)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if name == "is gone" {
					time.AfterFunc(3*time.Second, cancel)
				}
				var wg sync.WaitGroup
				wg.Go(func() { leaving(func() { _, _ = track(ctx, d) }) })
				synctest.Wait()
				for who := range 2 {
					arrive(&wg, t.Context(), d, who, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if got := d.BreakerState("tracking"); got != closed {
					t.Error(got)
				}
			})
		})
	}
}
