package resilience_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/internal/leaktest"
)

// sickCarrier answers at random, and remembers what it really did.
type sickCarrier struct {
	mu      sync.Mutex
	rand    *rand.Rand
	made    map[string]int // shipments by key
	refused map[string]bool
}

func (s *sickCarrier) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *sickCarrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	fate := s.roll(20)
	switch fate {
	case 0, 1:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		<-r.Context().Done()
		return
	case 4:
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	status := http.StatusOK
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		s.mu.Lock()
		if fate == 5 && s.made[key] == 0 {
			s.refused[key] = true // for good, by who knows the key
		}
		refused := s.refused[key]
		if !refused {
			s.made[key]++
		}
		s.mu.Unlock()
		if refused {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		status = http.StatusCreated
	}
	switch fate {
	case 6:
		panic(http.ErrAbortHandler) // done, and the answer lost
	case 7:
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	body := []byte(`{"status":"in_transit"}`)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/shipments/s1/label" {
		body = patternBytes(100_000)
		w.Header().Set("Content-Type", "application/pdf")
	}
	if fate == 8 {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body[:len(body)/2])
	if fate == 9 {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = w.Write(body[len(body)/2:])
}

// 200 callers who leave when they like, at a carrier that fails in every way:
// no race, every failure an *Error whose outcome is true, and afterwards
// nothing left, neither a goroutine nor a connection.
func TestConcurrentCallers(t *testing.T) {
	policies := map[string]resilience.Option{
		"fails fast": resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: 5 * time.Millisecond, ConsecutiveFailures: 20, FailureRatio: 0.9}),
		"waits":      resilience.WithBreaker(resilience.BreakerPolicy{OpenFor: 5 * time.Millisecond, ConsecutiveFailures: 20, FailureRatio: 0.9, WaitWhenOpen: true}),
		"no breaker": resilience.WithoutBreaker(),
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			before := leaktest.Take()
			carrier := &sickCarrier{rand: rand.New(rand.NewPCG(1, 2)), made: map[string]int{}, refused: map[string]bool{}}
			conns := newConnCounter()
			server := httptest.NewUnstartedServer(carrier)
			server.Config.ConnState = conns.note
			server.Config.ErrorLog = newQuietLog()
			server.Start()

			d := connectTo(t, server.URL, policy, resilience.WithMaxConns(64),
				resilience.WithAttemptTimeout(40*time.Millisecond), resilience.WithTimeout(time.Second), resilience.WithIdleTimeout(40*time.Millisecond),
				resilience.WithRetry(resilience.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond}))
			var wg sync.WaitGroup
			for caller := range 200 {
				random := rand.New(rand.NewPCG(uint64(caller), 3))
				wg.Go(func() {
					for i := range 8 {
						ctx, cancel := context.WithCancel(t.Context())
						switch random.IntN(4) {
						case 0:
							time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, cancel)
						case 1:
							ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(60_000))*time.Microsecond)
						}
						carrier.call(t, ctx, d, random, fmt.Sprintf("caller %d, call %d", caller, i))
						cancel()
					}
				})
			}
			wg.Wait()
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if n := conns.wait(0); n > 0 {
				t.Errorf("%d connections are still open", n)
			}
			server.Close()
			if left := before.Leaks(); len(left) > 0 {
				t.Errorf("%d leaks, the first:\n%s", len(left), left[0])
			}
		})
	}
}

// call makes one call of a kind chosen at random, and compares what it says
// with what the carrier did.
func (s *sickCarrier) call(t *testing.T, ctx context.Context, d *resilience.Doer, random *rand.Rand, name string) {
	switch random.IntN(3) {
	case 0:
		if _, err := track(ctx, d); err != nil {
			failureOf(t, err)
			isNot(t, err, resilience.ErrOutcomeUnknown)
		}
	case 1:
		_, err := ship(ctx, d, `{}`, resilience.WithIdempotencyKey(name))
		outcome := resilience.OutcomeDone
		if err != nil {
			outcome = failureOf(t, err).Outcome
		}
		s.mu.Lock()
		made := s.made[name]
		s.mu.Unlock()
		switch outcome {
		case resilience.OutcomeDone:
			if made == 0 {
				t.Errorf("%s: nothing was made, and it says done: %v", name, err)
			}
		case resilience.OutcomeNotSent, resilience.OutcomeRejected:
			if made > 0 {
				t.Errorf("%s: something was made, and it says %v: %v", name, outcome, err)
			}
		default:
			is(t, err, resilience.ErrOutcomeUnknown)
		}
	case 2:
		stream, err := label(ctx, d)
		if err != nil {
			failureOf(t, err)
			return
		}
		if random.IntN(3) > 0 {
			if _, err := io.Copy(io.Discard, stream); err != nil {
				failureOf(t, err)
			}
		}
		_ = stream.Close()
	}
}

// 3,000 calls from 256 callers open no more connections than there are callers.
func TestConnectionsOfManyCallers(t *testing.T) {
	const callers, calls = 256, 3000
	for most, opts := range map[int][]resilience.Option{
		256: nil, // the default
		8:   {resilience.WithMaxConns(8)},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			conns := newConnCounter()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{}`)
			}))
			server.Config.ConnState = conns.note
			server.Start()
			defer server.Close()
			d := connectTo(t, server.URL, opts...)
			work := make(chan int, calls)
			for i := range calls {
				work <- i
			}
			close(work)
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range work {
						if _, err := track(t.Context(), d); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			// On a machine so busy that net/http's writer is 50 ms late, net/http
			// gives up a connection that is sound, and dials another.
			const spare = 16
			if n := conns.opened(); n > most+spare {
				t.Errorf("%d connections", n)
			}
			t.Logf("%d connections for %d calls from %d callers", conns.opened(), calls, callers)
		})
	}
}

// One connection is enough for one caller, failures and all.
func TestConnectionOfOneCaller(t *testing.T) {
	conns := newConnCounter()
	requests := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		if requests%4 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(make([]byte, 50<<10))
			return
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	server.Config.ConnState = conns.note
	server.Start()
	defer server.Close()
	d := connectTo(t, server.URL, resilience.WithoutBreaker(), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
		resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))
	for range 200 {
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.opened(); n != 1 || requests != 266 {
		t.Errorf("%d connections for %d requests, want 1 for 266", n, requests)
	}
}

// Of many clients and their breakers, each closed by many, nothing is left.
func TestCloseByMany(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	defer server.Close()
	d := connectTo(t, server.URL)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := track(t.Context(), d); err != nil {
				is(t, err, resilience.ErrInvalidRequest)
			}
		})
		wg.Go(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, err := track(t.Context(), d)
	is(t, err, resilience.ErrInvalidRequest)
}

// What net/http sends again by itself may have been done the first time,
// whatever the answer to the second says.
func TestOutcomeOfWhatNetHTTPSendsTwice(t *testing.T) {
	for status, want := range map[int]resilience.Outcome{
		201: resilience.OutcomeDone,
		401: resilience.OutcomeUnknown,
		429: resilience.OutcomeUnknown,
		503: resilience.OutcomeUnknown,
		422: resilience.OutcomeRejected, // said by who knows the key
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var arrived atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := arrived.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				switch n {
				case 1:
					w.WriteHeader(http.StatusCreated)
				case 2: // on the connection of the first
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(status)
				}
				_, _ = io.WriteString(w, `{}`)
			}))
			server.Config.ErrorLog = newQuietLog()
			server.Start()
			defer server.Close()
			d := connectTo(t, server.URL, resilience.WithoutRetry())
			if _, err := ship(t.Context(), d, `{}`); err != nil {
				t.Fatal(err)
			}
			var info resilience.CallInfo
			_, err := ship(t.Context(), d, `{}`, resilience.WithCallInfo(&info))
			if info.Attempts != 1 || info.Sends != 2 || arrived.Load() != 3 {
				t.Fatalf("%d attempts, %d sends, %d arrived; want 1, 2, 3", info.Attempts, info.Sends, arrived.Load()-1)
			}
			if want == resilience.OutcomeDone {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := failureOf(t, err); e.Outcome != want || e.StatusCode != status {
				t.Errorf("%v, status %d; want %v", e.Outcome, e.StatusCode, want)
			}
		})
	}
}
