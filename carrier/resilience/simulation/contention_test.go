package simulation

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// row is an upstream with one row under optimistic locking: an attempt reads
// the row's version, and writes if nobody else has in between. The way there
// and back takes N(10 ms, 2 ms). It is the model by which "Exponential Backoff
// And Jitter" compares kinds of jitter.
type row struct {
	mu       sync.Mutex
	version  int
	attempts int
}

func (r *row) read() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	return r.version
}

func (r *row) write(read int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read != r.version {
		return false
	}
	r.version++
	return true
}

// path is one client's way to the row.
type path struct {
	*row
	random *rand.Rand
}

func (p path) travel() {
	time.Sleep(time.Duration((10 + 2*p.random.NormFloat64()) * float64(time.Millisecond)))
}

func (p path) RoundTrip(*http.Request) (*http.Response, error) {
	p.travel()
	version := p.read()
	p.travel()

	p.travel()
	written := p.write(version)
	p.travel()
	if !written {
		return answer(http.StatusServiceUnavailable), nil
	}
	return answer(http.StatusOK), nil
}

// contend lets clients that start together retry until each has written once.
func contend(t *testing.T, clients int, p resilience.RetryPolicy, seed uint64) (took time.Duration, attempts int) {
	t.Helper()
	p.MaxAttempts, p.MaxDelay = -1, 2*time.Second
	synctest.Test(t, func(t *testing.T) {
		r := &row{}
		began := time.Now()
		var pending sync.WaitGroup
		for i := range clients {
			p := p
			p.Rand = source(seed, streamJitter, i).Float64 // one call, one goroutine
			d, err := resilience.New(bare(
				resilience.WithBaseURL("http://upstream.example"),
				resilience.WithTransport(path{r, source(seed, streamTravel, i)}),
				resilience.WithRetry(p),
			)(nil)...)
			if err != nil {
				t.Fatal(err)
			}
			pending.Go(func() {
				if err := d.Call(context.Background(), work, &resilience.Request{Path: work.Path}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		pending.Wait()
		took, attempts = time.Since(began), r.attempts
	})
	return took, attempts
}

// Means of several runs, in the order that the article has them in.
func TestFullJitterIsTheLeastWorkUnderContention(t *testing.T) {
	const clients = 100
	base := 5 * time.Millisecond
	runs := 3 * *seeds // they are short
	total := func(p resilience.RetryPolicy) (took, attempts float64) {
		for i := range runs {
			d, n := contend(t, clients, p, *first+uint64(i))
			took += d.Seconds() / float64(runs)
			attempts += float64(n) / float64(runs)
		}
		t.Logf("jitter %v, base %v: %.1f s, %.0f attempts", p.Jitter, p.BaseDelay, took, attempts)
		return took, attempts
	}
	_, noneAttempts := total(resilience.RetryPolicy{BaseDelay: -1})
	expoTime, expoAttempts := total(resilience.RetryPolicy{BaseDelay: base, Jitter: resilience.NoJitter})
	equalTime, equalAttempts := total(resilience.RetryPolicy{BaseDelay: base, Jitter: resilience.EqualJitter})
	fullTime, fullAttempts := total(resilience.RetryPolicy{BaseDelay: base})

	if !(fullAttempts <= 1.1*equalAttempts && equalAttempts < expoAttempts && expoAttempts < noneAttempts) {
		t.Errorf("attempts: full %.0f, equal %.0f, no jitter %.0f, no backoff %.0f are out of order",
			fullAttempts, equalAttempts, expoAttempts, noneAttempts)
	}
	if !(fullTime < equalTime && equalTime < expoTime) {
		t.Errorf("seconds: full %.1f, equal %.1f, no jitter %.1f are out of order", fullTime, equalTime, expoTime)
	}
}
