package mockcarrier

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

// maxBody is the most bytes that the body of a request has.
const maxBody = 1 << 20

// Carrier is the carrier with its state: an [http.Handler] for the API under
// /v1. It may be used by several goroutines. Use [New] to make one.
type Carrier struct {
	config  config
	router  router
	api     http.Handler
	admin   func() http.Handler // made when it is first asked for
	running *running

	connections atomic.Int64
	requestIDs  atomic.Uint64
	offset      atomic.Int64 // of the clock, by Advance

	journal  journal
	rules    rules
	scripted scripted
	expected expectations

	subscriptions subscriptions
	deliveries    deliveryLog
	turn          chan struct{} // taken by who delivers
	changed       chan struct{} // tells who delivers by itself that something may be due
	delivering    sync.Once     // begins to deliver by itself

	clock sync.Mutex   // held to move the offset bit by bit
	epoch atomic.Int64 // counts how often it was set otherwise

	tokens   tokens
	dials    dials
	rendered rendered
	keys     *idempotency.Store
	quotas   quotas
	world    *world

	mu   sync.Mutex
	bugs []string
}

// New returns a carrier without shipments. It panics over an option that makes
// no sense. Call Close when it is done with, to end the requests that a fault
// holds.
func New(opts ...Option) *Carrier {
	c, err := newCarrier(opts)
	if err != nil {
		panic(err)
	}
	return c
}

func newCarrier(opts []Option) (*Carrier, error) {
	conf, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	c := &Carrier{
		config:  conf,
		router:  newRouter(api.Operations()),
		running: newRunning(),
		journal: journal{limit: conf.journalLimit},
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		rules:   rules{seed: conf.seed},
		quotas:  newQuotas(conf.quota, conf.quotaWindow),
		tokens:  tokens{seed: conf.seed},
	}
	c.expected.strict = conf.strict
	c.deliveries.limit = conf.journalLimit
	c.keys = idempotency.New(idempotency.Config{TTL: conf.keyTTL, Now: c.now, StoreServerErrors: conf.storeServerErrors})
	c.world = newWorld()
	c.api = newHandlers(c)
	c.admin = sync.OnceValue(c.AdminHandler)
	c.Reset()
	return c, nil
}

// ServeHTTP answers a request to the API, or to the admin API under /__mock/;
// see [WithAdmin].
func (c *Carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.servesAdmin(r) {
		c.admin().ServeHTTP(w, r)
		return
	}
	c.running.enter()
	defer c.running.leave()
	x := c.begin(w, r)
	defer x.end()
	x.serve()
}

// Inject puts a fault rule in force, ahead of those that are. It panics if
// [Fault.Validate] refuses it.
func (c *Carrier) Inject(f Fault) {
	if err := f.Validate(); err != nil {
		panic(err)
	}
	c.rules.add(f, c.now())
}

// ClearFaults ends all fault rules. One that never struck still counts as such
// at the end of the test.
func (c *Carrier) ClearFaults() { c.rules.clear() }

// Requests returns the journal: one entry for each request that has arrived, in
// the order of arrival, those that are not answered yet included. See
// [WithJournalLimit].
func (c *Carrier) Requests() []Request { return c.journal.list() }

// Ledger returns one entry for each shipment that was made, in the order of
// their making. It is the proof of what was bought, whatever was answered.
func (c *Carrier) Ledger() []Charge { return c.world.ledger() }

// Now returns the carrier's time.
func (c *Carrier) Now() time.Time { return c.now() }

// Reset forgets everything: shipments, ledger, subscriptions, deliveries,
// journal, faults, expectations, idempotency keys, access tokens, and what
// Advance has added to the clock. The faults of [WithFault] are in force again,
// as new.
func (c *Carrier) Reset() {
	c.setOffset(0)
	c.subscriptions.reset()
	c.deliveries.reset()
	c.rules.reset()
	for _, f := range c.config.faults {
		c.rules.add(f, c.now())
	}
	c.scripted.reset()
	c.expected.reset()
	c.tokens.reset()
	c.journal.reset()
	c.keys.Reset()
	c.quotas.reset()
	c.world.reset(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bugs = nil
}

// Close ends the requests that a fault holds, and returns when all have ended.
// It does not close the connections of an HTTP server; that of a [Server] does.
func (c *Carrier) Close() {
	c.running.close()
	c.running.wait()
}

func (c *Carrier) now() time.Time { return c.config.clock().Add(time.Duration(c.offset.Load())) }

func (c *Carrier) newRequestID() string {
	n := rand.NewPCG(c.config.seed, c.requestIDs.Add(1)).Uint64()
	id := []byte("req_000000000000")
	for i, digits := len(id)-1, n>>16; digits > 0; i, digits = i-1, digits>>4 {
		id[i] = "0123456789abcdef"[digits&15]
	}
	return string(id)
}

// requestID returns the client's id of the request, if it is one that can be
// given back.
func requestID(r *http.Request) string {
	const most = 128
	id := r.Header.Get("X-Request-Id")
	if len(id) > most {
		return ""
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=', c == '@':
		default:
			return ""
		}
	}
	return id
}

// pickFault returns the fault that strikes a request, if one does: that of a
// rule, or else one that the request itself asks for.
func (c *Carrier) pickFault(about *subject) (Fault, bool) {
	now := c.now()
	if f, ok := c.rules.pick(about, now); ok {
		return f, true
	}
	return c.scripted.pick(about, now)
}

// bug notes a panic of a handler.
func (c *Carrier) bug(r *http.Request, cause any) {
	c.config.logger.Error("panic", "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bugs = append(c.bugs, fmt.Sprintf("%s %s: panic: %v", r.Method, r.URL.Path, cause))
}
