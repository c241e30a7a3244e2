package resilience

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Option configures a [Doer].
type Option interface{ applyClient(*config) error }

// CallOption configures one call, and replaces what the client has for it.
type CallOption interface{ applyCall(*callConfig) error }

// SharedOption is both: for every call of a client, or for one call.
type SharedOption interface {
	Option
	CallOption
}

type clientOption func(*config) error

func (o clientOption) applyClient(c *config) error { return o(c) }

type callOption func(*callConfig) error

func (o callOption) applyCall(c *callConfig) error { return o(c) }

type sharedOption func(*common) error

func (o sharedOption) applyClient(c *config) error   { return o(&c.common) }
func (o sharedOption) applyCall(c *callConfig) error { return o(&c.common) }

// common is what both a client and a call can say. A zero field says nothing.
type common struct {
	timeout        time.Duration // negative: none
	attemptTimeout time.Duration
	idleTimeout    time.Duration
	maxBody        int64
	retry          *retryPolicy
	noRetry        bool
	noBreaker      bool
	headers        []header
}

type header struct {
	name   string
	values []string
}

// config is what the options of a client say.
type config struct {
	common
	baseURL        string
	operations     []*Operation
	credentials    []header
	secrets        []string // beside the credentials, for the redactor
	tokenSource    func(context.Context) (Token, error)
	oauth2         *oauth2Config
	sign           func(*http.Request) error
	guard          *guard // of everything; nil: the base URL is trusted
	linkGuard      *guard // of links of other origins; nil: as guard, or the default
	rootCAs        *x509.CertPool
	certificates   []tls.Certificate
	limits         Limits
	transport      http.RoundTripper
	maxConns       int
	maxConnsSet    bool
	userAgent      string
	budget         BudgetPolicy
	breaker        BreakerPolicy
	sharedBreaker  *Breaker
	logger         *slog.Logger
	statusErrors   bool
	quotedKeys     bool
	announceTimers bool
}

// callConfig is what the options of a call say.
type callConfig struct {
	common
	key    string
	keySet bool
	info   *CallInfo
}

// WithBaseURL sets where the API is: "https://api.carrier.example/v1". It must
// have the scheme http or https and a host, and neither query, fragment nor
// user info. [Doer.Call] needs one; [Doer.Do] uses it to know which requests
// the credentials are for.
func WithBaseURL(baseURL string) Option {
	return clientOption(func(c *config) error {
		c.baseURL = baseURL
		_, err := parseBaseURL(baseURL)
		return err
	})
}

// WithOperations adds the operations of an API, as they are generated from its
// spec. Call knows its operation; Do finds it by method and path.
func WithOperations(ops ...*Operation) Option {
	ops = append([]*Operation(nil), ops...)
	return clientOption(func(c *config) error {
		for _, op := range ops {
			if op == nil || op.ID == "" || op.Method == "" || !strings.HasPrefix(op.Path, "/") {
				return invalid("WithOperations: an operation needs ID, Method, and a Path that begins with a slash")
			}
		}
		c.operations = append(c.operations, ops...)
		return nil
	})
}

// WithCredential sends a header with a secret on every request to the origin of
// the base URL, and to no other: an API key, a bearer token, basic
// authentication (see also [WithBasicAuth], [WithBearerToken], [WithOAuth2] and
// [WithSigner]). The value never shows in an error, a log or a trace.
func WithCredential(name, value string) Option {
	return clientOption(func(c *config) error {
		if !validHeaderName(name) {
			return invalid("WithCredential: the header's name is not valid")
		}
		if err := validateCredential(value); err != nil {
			return err
		}
		c.addCredential(http.CanonicalHeaderKey(name), value)
		return nil
	})
}

func validateCredential(value string) error {
	if value == "" {
		return invalid("the credential is empty")
	}
	if value != strings.TrimSpace(value) || !validHeaderValue(value) {
		return invalid("the credential has characters that a header cannot carry")
	}
	return nil
}

// WithTransport sends requests through rt instead of our own transport. rt is
// not changed, and not closed. An *http.Transport of the user's keeps our
// evidence of what was sent; any other RoundTripper counts as "may have been
// sent" whatever goes wrong. One that repeats or buffers by itself takes away
// what this package promises. It must obey the request's context, for the body too.
//
// Links of other origins go through a guarded copy of an *http.Transport, and
// are refused with any other RoundTripper: see [WithLinkGuard].
func WithTransport(rt http.RoundTripper) Option {
	return clientOption(func(c *config) error {
		if rt == nil {
			return invalid("WithTransport: the RoundTripper is nil")
		}
		c.transport = rt
		return nil
	})
}

// WithMaxConns sets how many connections our own transport opens to a host,
// and keeps idle; default 256. Together with WithTransport it is an error.
func WithMaxConns(n int) Option {
	return clientOption(func(c *config) error {
		if n < 1 {
			return invalid("WithMaxConns: must be at least 1, not %d", n)
		}
		c.maxConns, c.maxConnsSet = n, true
		return nil
	})
}

// WithUserAgent sets the User-Agent header; default "carrier-go".
func WithUserAgent(s string) Option {
	return clientOption(func(c *config) error {
		if s == "" || !validHeaderValue(s) {
			return invalid("WithUserAgent: not a valid header value")
		}
		c.userAgent = s
		return nil
	})
}

// WithRetryBudget sets the retry budget of the client; see [BudgetPolicy].
func WithRetryBudget(p BudgetPolicy) Option {
	return clientOption(func(c *config) error {
		c.budget = p
		return p.validate()
	})
}

// WithBreaker sets the policy of the client's breakers, one for each group of
// operations; see [BreakerPolicy].
func WithBreaker(p BreakerPolicy) Option {
	p.FailureStatuses = slices.Clone(p.FailureStatuses)
	return clientOption(func(c *config) error {
		c.breaker, c.sharedBreaker, c.noBreaker = p, nil, false
		return p.validate()
	})
}

// WithSharedBreaker puts all operations of the client behind b, which other
// clients may share.
func WithSharedBreaker(b *Breaker) Option {
	return clientOption(func(c *config) error {
		if b == nil {
			return invalid("WithSharedBreaker: the breaker is nil")
		}
		c.sharedBreaker, c.noBreaker = b, false
		return nil
	})
}

// WithLogger logs each failed attempt, each wait and each change of a breaker,
// at the levels Debug and Warn. No header, body or query is ever logged.
// Default: nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return clientOption(func(c *config) error {
		if l == nil {
			return invalid("WithLogger: the logger is nil")
		}
		c.logger = l
		return nil
	})
}

// WithStatusErrors makes [Doer.Do] return an [Error] for every answer that is
// no success, in place of the answer.
func WithStatusErrors() Option {
	return clientOption(func(c *config) error { c.statusErrors = true; return nil })
}

// WithQuotedKeys sends idempotency keys as structured-field strings, in
// quotes, as an expired IETF draft wants them. Default: raw, as real APIs do.
func WithQuotedKeys() Option {
	return clientOption(func(c *config) error { c.quotedKeys = true; return nil })
}

// WithTimeoutHeader sends the time that an attempt has left, in milliseconds,
// as X-Request-Timeout-Ms, for a carrier that documents it. Default: not sent.
func WithTimeoutHeader() Option {
	return clientOption(func(c *config) error { c.announceTimers = true; return nil })
}

// WithTimeout bounds a whole call: all attempts, all waits and the reading of
// the body; default 30 s, or the operation's x-timeout. The caller's context
// bounds it too, whichever ends first. For a stream it ends at the headers.
// Zero is the default, a negative value switches it off.
func WithTimeout(d time.Duration) SharedOption {
	return sharedOption(func(c *common) error { c.timeout = d; return nil })
}

// WithAttemptTimeout bounds one attempt, from the request for a connection to
// the last byte of the body; default 10 s, or the operation's
// x-attempt-timeout. It may be longer than the total, which then rules.
// Zero is the default, a negative value switches it off.
func WithAttemptTimeout(d time.Duration) SharedOption {
	return sharedOption(func(c *common) error { c.attemptTimeout = d; return nil })
}

// WithIdleTimeout bounds each wait for the next bytes of a stream; default
// 30 s. The time between two reads does not count. Zero is the default, a
// negative value switches it off.
func WithIdleTimeout(d time.Duration) SharedOption {
	return sharedOption(func(c *common) error { c.idleTimeout = d; return nil })
}

// WithRetry sets the retry policy; see [RetryPolicy].
func WithRetry(p RetryPolicy) SharedOption {
	policy, err := newRetryPolicy(p)
	return sharedOption(func(c *common) error {
		c.retry, c.noRetry = policy, false
		return err
	})
}

// WithoutRetry makes every call a single attempt. One that is refused because
// its access token has ended is still sent again with a new one, once.
func WithoutRetry() SharedOption {
	return sharedOption(func(c *common) error { c.retry, c.noRetry = nil, true; return nil })
}

// WithoutBreaker sends without asking a breaker, and tells it nothing.
func WithoutBreaker() SharedOption {
	return sharedOption(func(c *common) error { c.noBreaker = true; return nil })
}

// WithMaxResponseBytes bounds a decompressed answer, in bytes; default 8 MiB,
// or the operation's x-max-body. More is [ErrResponseTooLarge]. A stream has no
// limit, unless its call is given this option. Zero is the default, a negative
// value switches it off.
func WithMaxResponseBytes(n int64) SharedOption {
	return sharedOption(func(c *common) error { c.maxBody = n; return nil })
}

// WithHeader adds a header; given twice for one name, the last holds, and a
// call's replaces the client's. Refused are those that the pipeline owns: Host,
// Content-Length and other framing, Accept-Encoding, the headers of idempotency
// keys, and the credentials.
func WithHeader(name, value string) SharedOption {
	return sharedOption(func(c *common) error {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !validHeaderName(name):
			return invalid("WithHeader: %q is not a valid header name", printable(name, 64))
		case !validHeaderValue(value):
			return invalid("WithHeader: the value for %s is not valid", canonical)
		case ownedHeaders[canonical]:
			return invalid("WithHeader: %s cannot be set", canonical)
		}
		c.headers = append(c.headers[:len(c.headers):len(c.headers)], header{canonical, []string{value}})
		return nil
	})
}

// ownedHeaders are the pipeline's. Headers of configured credentials and of
// key headers in the operation table join them.
var ownedHeaders = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true,
	"Keep-Alive": true, "Proxy-Connection": true, "Upgrade": true, "Trailer": true, "Te": true,
	"Expect": true, "Accept-Encoding": true,
	"Idempotency-Key": true, "X-Idempotency-Key": true,
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true,
}

// WithIdempotencyKey sets the key of this call: 1 to 255 printable ASCII
// characters, else [ErrInvalidRequest]. Use [DeriveIdempotencyKey] to make one
// that a restarted process finds again. Without this option a keyed operation
// gets a random UUIDv4; either way all attempts carry the same. For an
// operation that takes no key it is [ErrInvalidRequest].
func WithIdempotencyKey(key string) CallOption {
	return callOption(func(c *callConfig) error {
		c.key, c.keySet = key, true
		return validateKey(key)
	})
}

// WithCallInfo fills info when the call has ended, whether it failed or not.
func WithCallInfo(info *CallInfo) CallOption {
	return callOption(func(c *callConfig) error {
		if info == nil {
			return invalid("WithCallInfo: the CallInfo is nil")
		}
		c.info = info
		return nil
	})
}

// invalidError is something wrong on our side of the wire.
type invalidError struct{ message string }

func (e *invalidError) Error() string        { return e.message }
func (e *invalidError) Is(target error) bool { return target == ErrInvalidRequest }

func invalid(format string, args ...any) error {
	return &invalidError{fmt.Sprintf(format, args...)}
}

// validHeaderName holds for a token (RFC 9110, section 5.6.2).
func validHeaderName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// validHeaderValue holds for visible characters, spaces and tabs.
func validHeaderValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
