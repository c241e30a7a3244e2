package resilience

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Doer sends requests through the pipeline. It is safe for use by many
// goroutines; one for each carrier and process is right, since budget,
// breakers and connections are its own. The zero value is not usable: see [New].
type Doer struct {
	config    *config           // behind a pointer, where no verb of fmt gets from a struct with a Doer in it
	base      http.RoundTripper // the user's, or own
	own       *http.Transport   // nil if the user gave a transport
	guarded   *guarded          // base behind the guard; nil if it is not
	evident   bool              // base is net/http's, and gives evidence of what was sent
	client    *http.Client
	baseURL   *url.URL // nil if none was given
	table     *table
	retry     *retryPolicy
	budget    *budget
	redactor  redactor
	tokens    *tokens // nil without access tokens
	userAgent []string
	flights   flights
	closed    atomic.Bool

	mu       sync.Mutex
	breakers map[string]*Breaker
	linked   *Doer // for links of other origins; nil until one is fetched
}

// New returns a Doer. Without options it has every rule on, with its default,
// and our own transport. What an option refuses Is [ErrInvalidRequest].
func New(opts ...Option) (*Doer, error) {
	d := &Doer{config: new(config), breakers: map[string]*Breaker{}}
	c := d.config
	for _, o := range opts {
		if o == nil {
			return nil, refuse("New", invalid("an option is nil"))
		}
		if err := o.applyClient(c); err != nil {
			return nil, refuse("New", err)
		}
	}
	if err := d.setUp(); err != nil {
		return nil, refuse("New", err)
	}
	return d, nil
}

func (d *Doer) setUp() error {
	c := d.config
	if c.transport != nil && (c.maxConnsSet || c.rootCAs != nil || c.certificates != nil) {
		return invalid("WithMaxConns, WithRootCAs and WithClientCertificates contradict WithTransport: set them on the transport")
	}
	if c.baseURL != "" {
		d.baseURL, _ = parseBaseURL(c.baseURL) // the option has checked it
	}
	d.table = newTable(c.operations)

	secrets, names := slices.Clone(c.secrets), []string(nil)
	for _, h := range c.credentials {
		secrets, names = append(secrets, h.values...), append(names, h.name)
		if _, token, ok := strings.Cut(h.values[0], " "); ok && token != "" {
			secrets = append(secrets, token) // "Bearer …" and the like: the token alone is secret too
			secrets = append(secrets, pairOf(h.values[0])...)
		}
	}
	d.redactor = newRedactor(secrets, names)
	if err := d.checkHeaders(c.headers); err != nil {
		return err
	}

	d.retry = c.retry
	if d.retry == nil && !c.noRetry {
		d.retry, _ = newRetryPolicy(RetryPolicy{})
	}
	d.budget = newBudget(c.budget)
	d.userAgent = []string{"carrier-go"}
	if c.userAgent != "" {
		d.userAgent = []string{c.userAgent}
	}

	if !c.maxConnsSet {
		c.maxConns = defaultMaxConns
	}
	if err := d.setUpTransport(); err != nil {
		return err
	}
	if err := d.setUpAuth(); err != nil {
		return err
	}
	d.client = &http.Client{
		Transport:     roundTrip{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// checkHeaders refuses headers that credentials or keys are carried in.
func (d *Doer) checkHeaders(headers []header) error {
	for _, h := range headers {
		for _, credential := range d.config.credentials {
			if h.name == credential.name {
				return invalid("WithHeader: %s carries a credential and cannot be set", h.name)
			}
		}
		for _, op := range d.table.all {
			if h.name == op.keyHeader {
				return invalid("WithHeader: %s carries the idempotency key; use WithIdempotencyKey", h.name)
			}
		}
	}
	return nil
}

// Close closes the idle connections of our own transport, never of the user's.
// Calls after it are [ErrInvalidRequest]; those under way go on. Twice is fine.
func (d *Doer) Close() error {
	d.closed.Store(true)
	if d.tokens != nil {
		d.tokens.close()
	}
	d.closeIdle()
	d.mu.Lock()
	linked := d.linked
	d.mu.Unlock()
	if linked != nil {
		linked.closeIdle()
	}
	return nil
}

// Format keeps %+v and %#v from showing what the Doer holds.
func (d *Doer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "resilience.Doer") }

// trusts reports whether credentials may go to u: to the origin of the base
// URL only, or anywhere if there is none.
func (d *Doer) trusts(u *url.URL) bool {
	return d.baseURL == nil || sameOrigin(d.baseURL, u)
}

// breakerOf returns the breaker of an operation's group; nil if there is none.
func (d *Doer) breakerOf(op *operation) *Breaker {
	switch {
	case d.config.noBreaker:
		return nil
	case d.config.sharedBreaker != nil:
		return d.config.sharedBreaker
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.breakers[op.Group]
	if b == nil {
		policy := d.config.breaker
		policy.OnStateChange = logBreaker(d.config.logger, policy.OnStateChange)
		maxRetryAfter := defaultMaxOpen
		if d.retry != nil {
			maxRetryAfter = d.retry.MaxRetryAfter
		}
		b, _ = newBreaker(op.Group, policy, maxRetryAfter) // the option has checked the policy
		d.breakers[op.Group] = b
	}
	return b
}

// BreakerState returns where the breaker of a group stands: closed also for a
// group that has not been used yet.
func (d *Doer) BreakerState(group string) BreakerState {
	if b := d.config.sharedBreaker; b != nil {
		return b.State()
	}
	d.mu.Lock()
	b := d.breakers[group]
	d.mu.Unlock()
	if b == nil {
		return BreakerClosed
	}
	return b.State()
}
