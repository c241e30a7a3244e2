package mockcarrier

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Option sets up a carrier. [New] panics over one that makes no sense, and
// [Start] and [StartInMemory] fail the test.
type Option func(*config) error

type config struct {
	apiKeys           []string
	clients           []oauthClient
	tokenLife         time.Duration
	expiresInText     bool
	uniqueReferences  bool
	strict            bool
	clock             func() time.Time
	storeServerErrors bool
	keyTTL            time.Duration
	strictKeys        bool
	logger            *slog.Logger
	seed              uint64
	latency           time.Duration
	labelTime         time.Duration
	quota             int
	quotaWindow       time.Duration
	journalLimit      int
	unmatchedAllowed  bool
	faults            []Fault
	admin             *bool // nil: where only this machine reaches it
	adminHosts        []string
	webhooks          http.Handler // nil: notifications go over the loopback interface
	autoDelivery      bool

	// For servers only.
	tls, http2 bool
}

type oauthClient struct{ id, secret string }

func newConfig(opts []Option) (config, error) {
	c := config{
		apiKeys:      []string{APIKey},
		tokenLife:    time.Hour,
		clock:        time.Now,
		keyTTL:       24 * time.Hour,
		logger:       slog.New(slog.DiscardHandler),
		seed:         1,
		quota:        10_000_000,
		quotaWindow:  time.Minute,
		journalLimit: 100_000,
	}
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, errors.New("mockcarrier: an option is nil"))
			continue
		}
		errs = append(errs, o(&c))
	}
	if len(c.clients) == 0 {
		c.clients = []oauthClient{{ClientID, ClientSecret}}
	}
	return c, errors.Join(errs...)
}

// option makes an Option that is refused with a message where it is not good.
func option(good bool, message string, set func(*config)) Option {
	return func(c *config) error {
		if !good {
			return errors.New("mockcarrier: " + message)
		}
		set(c)
		return nil
	}
}

// WithAPIKey sets the keys that are accepted, in place of [APIKey]. Each is an
// account of its own: shipments and idempotency keys of one are unknown to the
// others.
func WithAPIKey(keys ...string) Option {
	keys = slices.Clone(keys)
	good := len(keys) > 0 && !slices.Contains(keys, "")
	return option(good, "WithAPIKey needs keys that are not empty", func(c *config) { c.apiKeys = keys })
}

// WithOAuth2Client accepts an OAuth2 client at POST /oauth/token, in place of
// [ClientID] or beside those that were given before. Its tokens act for the
// account of the first key of [WithAPIKey].
func WithOAuth2Client(id, secret string) Option {
	return option(id != "" && secret != "", "WithOAuth2Client needs an id and a secret that are not empty", func(c *config) {
		c.clients = append(c.clients, oauthClient{id, secret})
	})
}

// WithTokenLife sets how long an access token is good, on the carrier's clock;
// an hour by default. What is left of a second counts as one in expires_in.
func WithTokenLife(d time.Duration) Option {
	return option(d > 0, "WithTokenLife needs a time above 0", func(c *config) { c.tokenLife = d })
}

// WithExpiresInAsText writes expires_in as a string, as some carriers do.
func WithExpiresInAsText() Option {
	return option(true, "", func(c *config) { c.expiresInText = true })
}

// WithUniqueReferences refuses a second shipment of an account with the same
// reference under another idempotency key, with 409 and the code
// duplicate_reference, as carriers do that know no keys.
func WithUniqueReferences() Option {
	return option(true, "", func(c *config) { c.uniqueReferences = true })
}

// WithStrict lets only those requests come that a [Carrier.Expect] expects: each
// other one fails the test at its end. Requests for tokens are exempt.
func WithStrict() Option {
	return option(true, "", func(c *config) { c.strict = true })
}

// WithClock sets what the carrier takes for the time, to which [Carrier.Advance]
// adds; time.Now by default, which is virtual inside a testing/synctest bubble.
// WithClock(clock.Now) takes a [ManualClock]. Delays and stalls are measured in
// real time, or in the bubble's.
func WithClock(now func() time.Time) Option {
	return option(now != nil, "WithClock needs a function", func(c *config) { c.clock = now })
}

// IdempotencyPolicy says what becomes of a key whose request ended in a 5xx.
type IdempotencyPolicy int

const (
	// ReleaseServerErrors forgets the request: the next with the key is the
	// first again. The default.
	ReleaseServerErrors IdempotencyPolicy = iota
	// StoreServerErrors keeps the 5xx as the answer, and replays it.
	StoreServerErrors
)

// WithIdempotencyPolicy sets the policy for a 5xx that the carrier itself gave,
// which is one that was injected with [PhaseDuring].
func WithIdempotencyPolicy(p IdempotencyPolicy) Option {
	good := p == ReleaseServerErrors || p == StoreServerErrors
	return option(good, "WithIdempotencyPolicy needs one of its constants", func(c *config) {
		c.storeServerErrors = p == StoreServerErrors
	})
}

// WithIdempotencyTTL sets how long a key is remembered, on the carrier's clock;
// 24 hours by default.
func WithIdempotencyTTL(d time.Duration) Option {
	return option(d > 0, "WithIdempotencyTTL needs a time above 0", func(c *config) { c.keyTTL = d })
}

// WithStrictKeys accepts only idempotency keys that are structured-field
// strings, in quotes.
func WithStrictKeys() Option {
	return option(true, "", func(c *config) { c.strictKeys = true })
}

// WithLogger logs each request, at level Info, and what goes wrong in the
// carrier itself, at level Error. Nothing is logged by default.
func WithLogger(l *slog.Logger) Option {
	return option(l != nil, "WithLogger needs a logger", func(c *config) { c.logger = l })
}

// WithSeed sets what probabilities are decided by and request ids are made of;
// 1 by default.
func WithSeed(seed uint64) Option {
	return option(true, "", func(c *config) { c.seed = seed })
}

// WithLatency lets each request take d longer; 0 by default.
func WithLatency(d time.Duration) Option {
	return option(d >= 0, "WithLatency needs a time of at least 0", func(c *config) { c.latency = d })
}

// WithLabelTime sets how long a label takes to be made, on the carrier's clock.
// Until then the answer is 202. 0 by default: it is there at once.
func WithLabelTime(d time.Duration) Option {
	return option(d >= 0, "WithLabelTime needs a time of at least 0", func(c *config) { c.labelTime = d })
}

// WithRateLimit allows each account so many requests in each window, on the
// carrier's clock; ten million a minute by default.
func WithRateLimit(requests int, window time.Duration) Option {
	return option(requests > 0 && window > 0, "WithRateLimit needs a number and a window above 0", func(c *config) {
		c.quota, c.quotaWindow = requests, window
	})
}

// WithJournalLimit sets how many requests the journal holds; 100,000 by
// default. When it is full the older half is dropped.
func WithJournalLimit(requests int) Option {
	return option(requests > 0, "WithJournalLimit needs a number above 0", func(c *config) { c.journalLimit = requests })
}

// WithFault puts a fault rule in force from the start, and again after each
// [Carrier.Reset]. At the end of a test it counts like one that was injected.
func WithFault(f Fault) Option {
	f = f.clone()
	return func(c *config) error {
		c.faults = append(c.faults, f)
		return f.Validate()
	}
}

// WithAdmin serves the admin API under /__mock/ on every listener, or on none.
// By default it is served where the request has come in on the loopback
// interface. It asks for no credentials.
func WithAdmin(on bool) Option {
	return option(true, "", func(c *config) { c.admin = &on })
}

// WithWebhookHandler delivers notifications to h, whatever the address of the
// subscription is, in place of the loopback interface: also in virtual time. An
// attempt is a call of h, which has 10 seconds.
func WithWebhookHandler(h http.Handler) Option {
	return option(h != nil, "WithWebhookHandler needs a handler", func(c *config) { c.webhooks = h })
}

// WithAutoDelivery delivers notifications when they are due, by a goroutine that
// begins with the first subscription and ends with the carrier; without it they
// are delivered by [Carrier.Advance] and [Carrier.DeliverDue] alone. It measures
// in real time, or in the bubble's: a clock of [WithClock] that leaps needs one
// of the two.
func WithAutoDelivery() Option {
	return option(true, "", func(c *config) { c.autoDelivery = true })
}

// WithUnmatchedAllowed lets a test pass in which a request matched no operation.
func WithUnmatchedAllowed() Option {
	return option(true, "", func(c *config) { c.unmatchedAllowed = true })
}

// WithTLS lets [Start] and [StartInMemory] serve https, with a certificate that
// only [Server.Client], [Server.Transport] and [Server.CertPool] trust.
func WithTLS() Option {
	return option(true, "", func(c *config) { c.tls = true })
}

// WithHTTP2 lets [Start] and [StartInMemory] speak HTTP/2 only: over TLS with
// [WithTLS], in the clear without.
func WithHTTP2() Option {
	return option(true, "", func(c *config) { c.http2 = true })
}
