package callback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// DefaultHeader is the header that signatures come in.
const DefaultHeader = "Carrier-Signature"

// DefaultMaxBytes is the most bytes that a notification has: 1 MiB.
const DefaultMaxBytes = 1 << 20

// Option sets up a [Receiver].
type Option func(*config) error

// Verifier says whether a notification is the carrier's: nil, or why it is not.
// It gets the headers, the body as it came, and the time.
type Verifier func(header http.Header, body []byte, now time.Time) error

type config struct {
	secrets   []resilience.Secret
	header    string
	tolerance time.Duration
	verifier  Verifier
	maxBytes  int64
	seen      Seen
	now       func() time.Time
	logger    *slog.Logger
}

func newConfig(opts []Option) (config, error) {
	c := config{header: DefaultHeader, tolerance: DefaultTolerance, maxBytes: DefaultMaxBytes, now: time.Now, logger: slog.New(slog.DiscardHandler)}
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, errors.New("an option is nil"))
			continue
		}
		errs = append(errs, o(&c))
	}
	switch {
	case c.verifier == nil && len(c.secrets) == 0:
		errs = append(errs, errors.New("it needs WithSecrets or WithVerifier: notifications that nobody signed are anybody's"))
	case c.verifier != nil && len(c.secrets) > 0:
		errs = append(errs, errors.New("WithSecrets and WithVerifier exclude each other"))
	}
	if c.seen == nil {
		c.seen = NewMemory(0)
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("callback: %w", err)
	}
	return c, nil
}

// option makes an Option that is refused with a message where it is not good.
func option(good bool, message string, set func(*config)) Option {
	return func(c *config) error {
		if !good {
			return errors.New(message)
		}
		set(c)
		return nil
	}
}

// WithSecrets takes what is signed with one of these; [Verify] says how. While a
// secret is changed, give the old one and the new.
func WithSecrets(secrets ...resilience.Secret) Option {
	secrets = slices.Clone(secrets)
	return option(len(secrets) > 0 && !slices.Contains(secrets, ""), "WithSecrets needs secrets that are not empty", func(c *config) {
		c.secrets = append(c.secrets, secrets...)
	})
}

// WithTolerance sets how far the time of a signature may be away;
// [DefaultTolerance] by default.
func WithTolerance(d time.Duration) Option {
	return option(d > 0, "WithTolerance needs a time above 0", func(c *config) { c.tolerance = d })
}

// tokenBytes are those of the names of headers (RFC 9110, section 5.6.2).
const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// WithHeader sets the header that signatures come in; [DefaultHeader] by
// default.
func WithHeader(name string) Option {
	good := name != "" && strings.Trim(name, tokenBytes) == ""
	return option(good, "WithHeader needs the name of a header", func(c *config) { c.header = name })
}

// WithVerifier checks notifications otherwise than by [Verify], in place of
// [WithSecrets]: for a carrier that signs in another way. Compare in constant
// time, by hmac.Equal.
func WithVerifier(v Verifier) Option {
	return option(v != nil, "WithVerifier needs a function", func(c *config) { c.verifier = v })
}

// WithMaxBytes sets the most bytes that a notification has; [DefaultMaxBytes] by
// default. A larger one is answered with 413.
func WithMaxBytes(n int64) Option {
	return option(n > 0, "WithMaxBytes needs a number above 0", func(c *config) { c.maxBytes = n })
}

// WithSeen sets what remembers which notifications were handled; a [Memory] by
// default.
func WithSeen(s Seen) Option {
	return option(s != nil, "WithSeen needs a Seen", func(c *config) { c.seen = s })
}

// WithClock sets what the receiver takes for the time; time.Now by default.
func WithClock(now func() time.Time) Option {
	return option(now != nil, "WithClock needs a function", func(c *config) { c.now = now })
}

// WithLogger logs, at level Warn, what was refused and why, and at level Error
// what could not be handled: ids and errors, never a body, a header or a secret.
// Nothing is logged by default.
func WithLogger(l *slog.Logger) Option {
	return option(l != nil, "WithLogger needs a logger", func(c *config) { c.logger = l })
}
