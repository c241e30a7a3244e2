package carrier

import (
	"context"
	"net/http"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// TokenPath is the token endpoint of the carrier's API, relative to the host of
// the base URL.
const TokenPath = "/oauth/token"

// WithOAuth2 gets access tokens from the carrier's token endpoint for a
// client's id and secret (the client credentials grant), and sends them in
// place of an API key. A token is fetched once for all calls that wait for it,
// renewed before it ends, and once more if the carrier refuses it; the call is
// then sent again, once. What goes wrong at the token endpoint is a
// [TokenError], and the call was not sent.
//
// For another endpoint, or scopes, use [resilience.WithOAuth2].
func WithOAuth2(clientID, clientSecret string) Option {
	return resilience.WithOAuth2(clientID, clientSecret, resilience.OAuth2Config{TokenURL: TokenPath})
}

// WithBearerToken sends a token that does not change, in place of an API key.
func WithBearerToken(token string) Option { return resilience.WithBearerToken(token) }

// WithTokenSource sends tokens from fetch, for services that get them elsewhere:
// from a vault, or another process. It is called once at a time, and when it is
// called is told at [resilience.WithTokenSource].
func WithTokenSource(fetch func(context.Context) (Token, error)) Option {
	return resilience.WithTokenSource(fetch)
}

// WithSigner calls sign with each attempt's own request, as the last thing
// before it is sent to the carrier: for gateways that want a signature. An
// error from it ends the call, and nothing is sent. What sign may do is told at
// [resilience.WithSigner].
func WithSigner(sign func(*http.Request) error) Option { return resilience.WithSigner(sign) }

// Token is an access token; it is never printed.
type Token = resilience.Token

// TokenError is why there is no access token: errors.As finds it in an
// [*Error], whose call was then not sent.
type TokenError = resilience.TokenError

// AuthReason says why credentials did not do; see Error.AuthReason.
type AuthReason = resilience.AuthReason

// The reasons; AuthUnknown is the zero value.
const (
	AuthUnknown     = resilience.AuthUnknown     // the answer does not tell
	AuthMissing     = resilience.AuthMissing     // none were sent, or they did not arrive
	AuthExpired     = resilience.AuthExpired     // they were right once: get new ones
	AuthWrong       = resilience.AuthWrong       // not known, malformed or revoked: correct them
	AuthNotEntitled = resilience.AuthNotEntitled // right, but not allowed to do this
)
