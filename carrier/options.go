package carrier

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// Option configures a [Client].
type Option = resilience.Option

// CallOption configures one call, and replaces what the client has for it.
type CallOption = resilience.CallOption

// SharedOption is both: for every call of a client, or for one call.
type SharedOption = resilience.SharedOption

// WithAPIKey sends key as x-api-key with every request to the origin of the
// base URL, and to no other. It never shows in an error, a log or a trace. In
// its place there are [WithOAuth2], [WithBearerToken] and [WithTokenSource].
func WithAPIKey(key string) Option { return resilience.WithCredential(api.APIKeyHeader, key) }

// WithTransport sends requests through rt instead of our own transport. rt is
// neither changed nor closed. An *http.Transport keeps the evidence of what was
// sent; with any other RoundTripper every failure counts as "may have been
// sent". It must obey the request's context, and must not repeat by itself.
// For what links of other origins then go through, see [WithLinkGuard].
func WithTransport(rt http.RoundTripper) Option { return resilience.WithTransport(rt) }

// WithMaxConns sets how many connections the client's own transport opens to
// the carrier, and keeps idle; default 256. Together with WithTransport it is
// an error.
func WithMaxConns(n int) Option { return resilience.WithMaxConns(n) }

// WithUserAgent replaces the User-Agent "carrier-go/…".
func WithUserAgent(s string) Option { return resilience.WithUserAgent(s) }

// WithRetryBudget sets the client's retry budget; see [BudgetPolicy].
func WithRetryBudget(p BudgetPolicy) Option { return resilience.WithRetryBudget(p) }

// WithBreaker sets the policy of the client's breakers, one for each group of
// operations; see [BreakerPolicy].
func WithBreaker(p BreakerPolicy) Option { return resilience.WithBreaker(p) }

// WithLogger logs failed attempts (Debug), retries and changes of breakers
// (Warn). No header, body or query is ever logged. Default: no log.
func WithLogger(l *slog.Logger) Option { return resilience.WithLogger(l) }

// WithTimeout bounds a whole call: all attempts, all waits, and the reading of
// the body; default 30 s, for CreateShipment 60 s. For a stream it ends at the
// headers. Zero is the default, a negative value switches it off. The caller's
// context bounds the call as well.
func WithTimeout(d time.Duration) SharedOption { return resilience.WithTimeout(d) }

// WithAttemptTimeout bounds one attempt, from asking for a connection to the
// last byte of the body; default 10 s, for CreateShipment 30 s. It may be
// longer than the total, which then rules. Zero is the default, a negative
// value switches it off.
func WithAttemptTimeout(d time.Duration) SharedOption { return resilience.WithAttemptTimeout(d) }

// WithIdleTimeout bounds each wait for the next bytes of a [Stream]; default
// 30 s. Zero is the default, a negative value switches it off.
func WithIdleTimeout(d time.Duration) SharedOption { return resilience.WithIdleTimeout(d) }

// WithRetry sets the retry policy; see [RetryPolicy].
func WithRetry(p RetryPolicy) SharedOption { return resilience.WithRetry(p) }

// WithoutRetry makes a call a single attempt; one that is refused because its
// access token has ended is still sent again with a new one, once.
func WithoutRetry() SharedOption { return resilience.WithoutRetry() }

// WithoutBreaker sends without asking a breaker, and tells it nothing.
func WithoutBreaker() SharedOption { return resilience.WithoutBreaker() }

// WithMaxResponseBytes bounds a decompressed answer, in bytes; default 8 MiB.
// More is [ErrResponseTooLarge]. A stream has no limit, unless its call is given
// this option. Zero is the default, a negative value switches it off.
func WithMaxResponseBytes(n int64) SharedOption { return resilience.WithMaxResponseBytes(n) }

// WithHeader adds a header, for example X-Request-Id, If-None-Match, Prefer or
// Accept-Language. A call's replaces the client's. Host, Content-Length and
// other framing, Accept-Encoding, the idempotency key and the credentials are
// refused with [ErrInvalidRequest].
func WithHeader(name, value string) SharedOption { return resilience.WithHeader(name, value) }

// WithIdempotencyKey sets the key of a call of a keyed operation: 1 to 255
// printable ASCII characters. Make one with [DeriveIdempotencyKey], so that a
// restarted process uses the same. Without it a random UUIDv4 is made, once for
// all attempts. For any other operation it is [ErrInvalidRequest].
//
// Two calls with the same key at the same time are one request, and get the
// same result; with other bytes the second is [ErrKeyReused].
func WithIdempotencyKey(key string) CallOption { return resilience.WithIdempotencyKey(key) }

// WithCallInfo fills info when the call ends, whether it failed or not.
func WithCallInfo(info *CallInfo) CallOption { return resilience.WithCallInfo(info) }

// DeriveIdempotencyKey returns the key of a business operation, the same in
// every process: a UUIDv5 over operation, businessID and revision.
//
//	carrier.DeriveIdempotencyKey("createShipment", "order-1001", 1)
//
// A changed order is a new intent, and needs the next revision. An empty
// operation or businessID gives "", which no call accepts.
func DeriveIdempotencyKey(operation, businessID string, revision int) string {
	return resilience.DeriveIdempotencyKey(operation, businessID, revision)
}
