package simulation

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// scenario is a fleet of clients, each with a Doer of its own, and what happens
// to their upstream.
type scenario struct {
	name                  string
	clients               int
	rate                  float64       // calls per second of one client, as a Poisson process
	every                 time.Duration // or: all clients call at the same moment, this often
	capacity              float64       // calls per second that the upstream can do
	queues                bool          // it queues what is too much; else it answers 503 at once
	before, outage, after time.Duration
}

const (
	burst          = 15 // calls that a rested upstream takes at once
	attemptTimeout = time.Second
)

// The utilisation is two thirds in all of them but the last.
var (
	failFast = scenario{
		name: "fails fast, down for 30 s", clients: 200, rate: 0.5, capacity: 150,
		before: time.Minute, outage: 30 * time.Second, after: 285 * time.Second,
	}
	queueing = failFast.but("queues, down for 30 s", func(s *scenario) { s.queues = true })
	blip     = queueing.but("queues, down for 5 s", func(s *scenario) { s.outage, s.after = 5*time.Second, 310*time.Second })
	fewLarge = queueing.but("queues, down for 30 s, four large clients", func(s *scenario) { s.clients, s.rate = 4, 25 })
	inStep   = scenario{
		name: "fails fast, never down, clients in step", clients: 200, every: 10 * time.Second,
		capacity: 150, before: time.Minute, after: 240 * time.Second,
	}
)

func (s scenario) but(name string, change func(*scenario)) scenario {
	s.name = name
	change(&s)
	return s
}

// smaller is the same for fewer clients and less time around the outage.
func (s scenario) smaller(clients int, before, after time.Duration) scenario {
	s.capacity *= float64(clients) / float64(s.clients)
	s.clients, s.before, s.after = clients, before, after
	return s
}

// at returns the scenario with another utilisation of its upstream.
func (s scenario) at(utilisation float64) scenario {
	s.rate = utilisation * s.capacity / float64(s.clients)
	return s
}

func (s scenario) length() time.Duration { return s.before + s.outage + s.after }

// offered is the calls per second of all clients together.
func (s scenario) offered() float64 {
	if s.every > 0 {
		return float64(s.clients) / s.every.Seconds()
	}
	return float64(s.clients) * s.rate
}

// record is everything that happened in one run.
type record struct {
	scenario
	calls    []call
	arrivals []arrival
}

// call is one logical call, however many attempts it took.
type call struct {
	client int
	at     time.Duration // since the beginning
	ok     bool
}

var work = &resilience.Operation{ID: "work", Method: "GET", Path: "/work"}

// run plays the scenario once, in virtual time.
func (s scenario) run(t *testing.T, p policy, seed uint64) *record {
	t.Helper()
	r := &record{scenario: s, calls: s.schedule(seed)}
	synctest.Test(t, func(t *testing.T) {
		up := &upstream{scenario: s, began: time.Now(), tokens: burst}
		fleet := make([]*resilience.Doer, s.clients)
		for i := range fleet {
			fleet[i] = newClient(t, p, up, source(seed, streamJitter, i))
		}
		var pending sync.WaitGroup
		for i := range r.calls {
			c := &r.calls[i]
			time.Sleep(time.Until(up.began.Add(c.at)))
			pending.Go(func() {
				err := fleet[c.client].Call(context.Background(), work, &resilience.Request{Path: work.Path}, nil)
				c.ok = err == nil
			})
		}
		pending.Wait()
		r.arrivals = up.arrivals
	})
	return r
}

func newClient(t *testing.T, p policy, up *upstream, random *rand.Rand) *resilience.Doer {
	t.Helper()
	var mu sync.Mutex
	opts := append(p.options(func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}),
		resilience.WithBaseURL("http://upstream.example"),
		resilience.WithTransport(up),
		resilience.WithAttemptTimeout(attemptTimeout),
	)
	d, err := resilience.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// schedule is when which client makes a call.
func (s scenario) schedule(seed uint64) []call {
	var calls []call
	for i := range s.clients {
		random := source(seed, streamArrivals, i)
		next := func() time.Duration {
			if s.every > 0 {
				return s.every
			}
			return time.Duration(random.ExpFloat64() / s.rate * float64(time.Second))
		}
		for at := next(); at < s.length(); at += next() {
			calls = append(calls, call{client: i, at: at})
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// Each client has streams of random numbers of its own, so that every policy
// meets the same arrivals.
const (
	streamArrivals = iota
	streamJitter
	streamTravel
	streams
)

func source(seed uint64, stream, client int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(streams*client+stream)))
}
