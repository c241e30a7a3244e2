package resilience

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Doer sends requests through the pipeline. It is safe for use by many
// goroutines; one for each carrier and process is right, since budget,
// breakers and connections are its own. The zero value is not usable: see [New].
type Doer struct {
	config    config
	base      http.RoundTripper // the user's, or own
	own       *http.Transport   // nil if the user gave a transport
	evident   bool              // base is net/http's, and gives evidence of what was sent
	client    *http.Client
	baseURL   *url.URL // nil if none was given
	table     *table
	retry     *retryPolicy
	budget    *budget
	redactor  redactor
	userAgent []string
	flights   flights
	closed    atomic.Bool

	mu       sync.Mutex
	breakers map[string]*Breaker
}

// New returns a Doer. Without options it has every rule on, with its default,
// and our own transport. What an option refuses Is [ErrInvalidRequest].
func New(opts ...Option) (*Doer, error) {
	d := &Doer{breakers: map[string]*Breaker{}}
	c := &d.config
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
	c := &d.config
	if c.transport != nil && c.maxConnsSet {
		return invalid("WithMaxConns and WithTransport contradict each other: set the limit on the transport")
	}
	if c.baseURL != "" {
		d.baseURL, _ = parseBaseURL(c.baseURL) // the option has checked it
	}
	d.table = newTable(c.operations)

	var secrets, names []string
	for _, h := range c.credentials {
		secrets, names = append(secrets, h.values...), append(names, h.name)
		if _, token, ok := strings.Cut(h.values[0], " "); ok && token != "" {
			secrets = append(secrets, token) // "Bearer …" and the like: the token alone is secret too
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
	if c.transport != nil {
		d.base = c.transport
		_, d.evident = c.transport.(*http.Transport)
	} else {
		d.own = newTransport(c.maxConns)
		d.base, d.evident = d.own, true
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
	if d.own != nil {
		d.own.CloseIdleConnections()
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

// Call makes one call of an operation; generated methods do. decode is given
// the documented success, inside the attempt, so that what it cannot read is a
// failed attempt; it may be called again with another answer, and must not keep
// parts of an earlier one. With a nil decode the answer's body does not matter.
//
// A nil error means a documented success. Every other error is an [Error].
func (d *Doer) Call(ctx context.Context, op *Operation, req *Request, decode func(*Response) error, opts ...CallOption) error {
	c, err := d.newCall(ctx, op, req, opts)
	if err != nil {
		return err
	}
	c.decode = decode
	return c.finish(req.Body)
}

// finish makes the call, alone or together with others of the same key, and
// returns its error.
func (c *call) finish(body []byte) error {
	if c.config.keySet {
		return c.finishShared(body)
	}
	c.run()
	return c.conclude(c.config.info)
}

// conclude is the end of a call that was made: its error, and info filled in if
// there is one.
func (c *call) conclude(info *CallInfo) error {
	if info != nil {
		c.fill(info)
	}
	if c.succeeded() {
		return nil
	}
	return c.failure()
}

func (c *call) succeeded() bool {
	return c.local == nil && c.judged != nil && c.judged == c.last && c.judged.class == classSuccess
}

// finishShared makes a call with a key of the caller's: if one with the same
// key is on its way, it shares that one's result, and decodes a copy of its own.
func (c *call) finishShared(body []byte) error {
	from, led, err := c.doer.flights.join(c, body)
	switch {
	case err != nil:
		return c.refusedInFlight(err)
	case led:
		return c.conclude(c.config.info)
	}
	if err := from.conclude(c.config.info); err != nil {
		return err
	}
	a := from.judged
	c.judged = a
	return c.decodeAnswer(a.status, a.header.Clone(), bytes.Clone(a.body))
}

// refusedInFlight is the error of a call that never went out: other bytes under
// its key, or its caller left while another call had the key in flight.
func (c *call) refusedInFlight(err error) error {
	if errors.Is(err, ErrKeyReused) {
		return &Error{
			Operation: c.op.ID, Outcome: OutcomeNotSent, IdempotencyKey: c.key,
			causes: []error{ErrKeyReused, err}, what: err.Error(),
		}
	}
	// What the other call has done under this key, this one cannot know.
	e := &Error{
		Operation: c.op.ID, Outcome: OutcomeUnknown, IdempotencyKey: c.key,
		causes: []error{ErrOutcomeUnknown, err},
		what:   "the same key is in flight: " + oneLine(err.Error(), 200),
	}
	if c.Context.Err() == context.DeadlineExceeded {
		e.causes = append([]error{ErrTimeout}, e.causes...)
	}
	return e
}

// apply reads the options of a call.
func (cc *callConfig) apply(opts []CallOption) error {
	for _, o := range opts {
		if o == nil {
			return invalid("an option is nil")
		}
		if err := o.applyCall(cc); err != nil {
			return err
		}
	}
	return nil
}

// newCall checks everything that can be wrong before anything is sent.
func (d *Doer) newCall(ctx context.Context, o *Operation, req *Request, opts []CallOption) (*call, error) {
	switch {
	case o == nil:
		return nil, refuse("", invalid("the operation is nil"))
	case req == nil:
		return nil, Refuse(o, invalid("the request is nil"))
	case d.baseURL == nil:
		return nil, Refuse(o, invalid("Call needs a base URL: use WithBaseURL"))
	case !strings.HasPrefix(req.Path, "/"):
		return nil, Refuse(o, invalid("the path must begin with a slash"))
	}
	op := d.table.of(o)
	if op.shadowed(req.Path) {
		return nil, Refuse(o, invalid("the path parameter has a value that names another operation"))
	}
	c, err := d.prepare(ctx, op, opts)
	if err != nil {
		return nil, err
	}
	c.url = *d.baseURL
	if err := addPath(&c.url, req.Path); err != nil {
		return nil, Refuse(o, err)
	}
	c.url.RawQuery = req.Query
	c.method, c.header = o.Method, req.Header
	switch req.ContentType {
	case "":
	case "application/json":
		c.contentType = jsonContentType
	default:
		c.contentType = []string{req.ContentType}
	}
	c.body = bytesBody(req.Body)
	return c, nil
}

var jsonContentType = []string{"application/json"}

// addPath appends an escaped path to the URL's.
func addPath(u *url.URL, path string) error {
	if u.RawPath == "" && strings.IndexByte(path, '%') < 0 {
		u.Path += path
		return nil
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return invalid("the path is not escaped correctly")
	}
	u.RawPath = u.EscapedPath() + path
	u.Path += plain
	return nil
}

// prepare makes a call of an operation, with everything but its request.
func (d *Doer) prepare(ctx context.Context, op *operation, opts []CallOption) (*call, error) {
	switch {
	case ctx == nil:
		return nil, Refuse(op.Operation, invalid("the context is nil"))
	case d.closed.Load():
		return nil, Refuse(op.Operation, invalid("the client is closed"))
	}
	c := &call{Context: ctx, doer: d, op: op, started: time.Now(), outcome: OutcomeNotSent}
	cc := &c.config
	if err := cc.apply(opts); err != nil {
		return nil, Refuse(op.Operation, err)
	}
	if err := d.checkHeaders(cc.headers); err != nil {
		return nil, Refuse(op.Operation, err)
	}
	c.settings = d.settings(op, cc)
	c.totalLimit = limitError{"total", c.settings.timeout}
	c.attemptLimit = limitError{"attempt", c.settings.attemptTimeout}
	var err error
	switch {
	case op.keyed():
		err = c.setKey(cc)
	case cc.keySet:
		err = invalid("WithIdempotencyKey: %s takes no idempotency key", op.ID)
	}
	if err != nil {
		return nil, Refuse(op.Operation, err)
	}
	return c, nil
}

// setKey gives the call its one key: the caller's, or a new one.
func (c *call) setKey(cc *callConfig) (err error) {
	c.key = cc.key
	if !cc.keySet {
		if c.key, err = newKey(); err != nil {
			return err
		}
	}
	c.keyValues = []string{keyValue(c.key, c.doer.config.quotedKeys)}
	return nil
}

// again returns a call that sends the same once more, for a stream that goes
// on: a call of its own, with limits of its own.
func (c *call) again() *call {
	return &call{
		Context: c.Context, doer: c.doer, op: c.op, config: c.config, settings: c.settings,
		url: c.url, method: c.method, host: c.host, header: c.header, contentType: c.contentType,
		totalLimit: c.totalLimit, attemptLimit: c.attemptLimit,
		started: time.Now(), outcome: OutcomeNotSent,
	}
}
