package resilience_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// theTime is when the tables of dates are read.
var theTime = time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)

// atTheTime runs f in virtual time, at theTime.
func atTheTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(theTime))
		f(t)
	})
}

type retryAfterCase struct {
	Name
	Header http.Header `json:"header"`
	Want   *span       `json:"want"` // null: nothing valid came
}

func TestRetryAfterHeaders(t *testing.T) {
	for _, c := range casesOf[retryAfterCase](t, "retry_after.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			atTheTime(t, func(t *testing.T) {
				var want, instead time.Duration = 0, 77 * time.Second
				if c.Want != nil {
					want, instead = c.Want.d(), c.Want.d()
				}
				if got := reportedWait(t, 503, c.Header); got != want {
					t.Errorf("RetryAfter = %v, want %v", got, want)
				}

				// What is not valid gives way to what is lower in rank.
				h := c.Header.Clone()
				if h.Get("X-Rate-Limit-Reset") != "" {
					return
				}
				h.Set("X-Rate-Limit-Reset", "77")
				if got := reportedWait(t, 503, h); got != instead {
					t.Errorf("with X-Rate-Limit-Reset: 77: RetryAfter = %v, want %v", got, instead)
				}
			})
		})
	}
}

// reportedWait is what one failed attempt's Error says of the carrier's wish.
func reportedWait(t *testing.T, status int, h http.Header) time.Duration {
	t.Helper()
	d := onStage(t, playing(act{Status: status, Header: h}), resilience.WithoutRetry())
	return errorOf(t, callThing(t.Context(), d, opOf("read"))).RetryAfter
}

// Retry-After is read on every answer that is no success, whatever its status.
func TestRetryAfterIsReadOnEveryFailure(t *testing.T) {
	for status := 300; status < 600; status++ {
		if got := reportedWait(t, status, http.Header{"Retry-After": {"7"}}); got != 7*time.Second {
			t.Errorf("status %d: RetryAfter = %v, want 7s", status, got)
		}
	}
}

// policyData is a RetryPolicy in a data file.
type policyData struct {
	BaseDelay, MaxDelay, MaxRetryAfter span
	Multiplier                         float64
	Jitter                             string
}

func (p policyData) policy(random number) resilience.RetryPolicy {
	jitters := []resilience.Jitter{resilience.FullJitter, resilience.EqualJitter, resilience.NoJitter}
	i := slices.IndexFunc(jitters, func(j resilience.Jitter) bool { return p.Jitter == "" || j.String() == p.Jitter })
	return resilience.RetryPolicy{
		MaxAttempts: -1, BaseDelay: p.BaseDelay.d(), MaxDelay: p.MaxDelay.d(), MaxRetryAfter: p.MaxRetryAfter.d(),
		Multiplier: p.Multiplier, Jitter: jitters[i],
		Rand: func() float64 { return float64(random) },
	}
}

// number is a float64 in a data file that can be "NaN" as well.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == `"NaN"` {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

type waitCase struct {
	Name
	RetryAfter string     `json:"retryAfter"`
	Policy     policyData `json:"policy"`
	Rand       number     `json:"rand"`
	Timeout    span       `json:"timeout"`
	Wait       span       `json:"wait"`
	Stop       bool       `json:"stop"`     // no wait: the answer is returned at once
	Reported   *span      `json:"reported"` // what Error.RetryAfter says, if not the header's seconds
}

// The wait between two attempts, as the hook, the clock and the server see it.
func TestWaits(t *testing.T) {
	for _, c := range casesOf[waitCase](t, "waits.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			atTheTime(t, func(t *testing.T) {
				first := act{Status: 503, Body: `{"code":"busy"}`}
				if c.RetryAfter != "" {
					first.Header = http.Header{"Retry-After": {c.RetryAfter}}
				}
				s := playing(first, act{Status: 200, Body: `{}`})
				var told []time.Duration
				policy := c.Policy.policy(c.Rand)
				policy.OnRetry = func(a resilience.Attempt, wait time.Duration) { told = append(told, wait) }
				d := onStage(t, s, resilience.WithRetry(policy), resilience.WithTimeout(c.Timeout.d()))
				begun := time.Now()
				err := callThing(t.Context(), d, opOf("read"))
				took := time.Since(begun)

				if c.Stop {
					e := errorOf(t, err)
					isExactly(t, err, "ErrUnavailable")
					if took != 0 || s.count() != 1 || len(told) != 0 {
						t.Errorf("stopped after %v, %d requests and waits %v; want at once", took, s.count(), told)
					}
					if e.StatusCode != 503 || e.RetryAfter != c.Reported.d() || e.Problem == nil || e.Problem.Code != "busy" {
						t.Errorf("the answer is not on the error: %d, %v, %+v", e.StatusCode, e.RetryAfter, e.Problem)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if took != c.Wait.d() || !slices.Equal(told, []time.Duration{c.Wait.d()}) {
					t.Errorf("waited %v, the hook was told %v, want %v", took, told, c.Wait.d())
				}
				if got := s.requests(); len(got) != 2 || got[1].At.Sub(got[0].At) != c.Wait.d() {
					t.Errorf("requests %v, want two, %v apart", got, c.Wait.d())
				}
				if c.Reported != nil {
					if got := errorOf(t, callThing(t.Context(), onStage(t, playing(first), resilience.WithRetry(policy), resilience.WithTimeout(time.Second)), opOf("read"))).RetryAfter; got != c.Reported.d() {
						t.Errorf("RetryAfter = %v, want %v", got, c.Reported.d())
					}
				}
			})
		})
	}
}

type backoffCase struct {
	Name
	Policy policyData `json:"policy"`
	Rand   number     `json:"rand"`
	Waits  []span     `json:"waits"`
}

func TestBackoffs(t *testing.T) {
	for _, c := range casesOf[backoffCase](t, "backoffs.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var got []time.Duration
				policy := c.Policy.policy(c.Rand)
				policy.OnRetry = func(a resilience.Attempt, wait time.Duration) {
					if got = append(got, wait); len(got) == len(c.Waits) {
						cancel()
					}
				}
				d := onStage(t, playing(act{Status: 503}), resilience.WithRetry(policy), resilience.WithTimeout(-1))
				if err := callThing(ctx, d, opOf("read")); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the cancel in the last wait", err)
				}
				want := make([]time.Duration, len(c.Waits))
				for i, w := range c.Waits {
					want[i] = w.d()
				}
				if !slices.Equal(got, want) {
					t.Errorf("waits\n got %v\nwant %v", got, want)
				}
			})
		})
	}
}

// Without a source of its own the backoff is spread over all of [0, x).
func TestFullJitterSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var low, high, n int
		d := onStage(t, playing(act{Status: 503}), resilience.WithTimeout(-1), resilience.WithRetry(resilience.RetryPolicy{
			MaxAttempts: -1, BaseDelay: time.Second, MaxDelay: time.Second,
			OnRetry: func(_ resilience.Attempt, wait time.Duration) {
				switch {
				case wait < 0 || wait >= time.Second:
					t.Errorf("wait %v is not in [0, 1s)", wait)
				case wait < 250*time.Millisecond:
					low++
				case wait >= 750*time.Millisecond:
					high++
				}
				if n++; n == 400 {
					cancel()
				}
			},
		}))
		_ = callThing(ctx, d, opOf("read"))
		if low < 50 || high < 50 {
			t.Errorf("of 400 waits, %d are in the first quarter and %d in the last; want about 100 each", low, high)
		}
	})
}

// The jitter of a Retry-After is at most a tenth of it, and at most a second,
// and it never shortens the wait.
func TestRetryAfterIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			seconds := 1 + random.IntN(50)
			ra := time.Duration(seconds) * time.Second
			var wait time.Duration
			d := onStage(t, playing(act{Status: 429, Header: http.Header{"Retry-After": {strconv.Itoa(seconds)}}}, act{Status: 200, Body: `{}`}),
				resilience.WithTimeout(-1), resilience.WithRetry(resilience.RetryPolicy{
					OnRetry: func(_ resilience.Attempt, w time.Duration) { wait = w }, Rand: random.Float64,
				}))
			if err := callThing(t.Context(), d, opOf("read")); err != nil {
				t.Fatal(err)
			}
			if wait < ra || wait > ra+min(ra/10, time.Second) {
				t.Errorf("Retry-After %v: waited %v", ra, wait)
			}
		}
	})
}

// The longest Retry-After there is and its jitter do not overflow.
func TestLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waits []time.Duration
		s := playing(act{Status: 503, Header: http.Header{"Retry-After": {"99999999999"}}})
		d := onStage(t, s, resilience.WithTimeout(-1), resilience.WithRetry(resilience.RetryPolicy{
			MaxRetryAfter: math.MaxInt64, Rand: func() float64 { return 0.5 },
			OnRetry: func(_ resilience.Attempt, wait time.Duration) { waits = append(waits, wait); cancel() },
		}))
		isExactly(t, callThing(ctx, d, opOf("read")), "context.Canceled", "ErrUnavailable")
		if !slices.Equal(waits, []time.Duration{math.MaxInt64}) {
			t.Errorf("waits %v", waits)
		}
	})
}
