package resilience

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// WithBasicAuth sends user and password by basic authentication (RFC 7617) with
// every request to the origin of the base URL, and to no other.
func WithBasicAuth(user, password string) Option {
	return clientOption(func(c *config) error {
		pair := user + ":" + password
		switch {
		case user == "" && password == "":
			return invalid("WithBasicAuth: user and password are empty")
		case strings.Contains(user, ":"):
			return invalid("WithBasicAuth: the user has a colon")
		case !validHeaderValue(pair) || strings.Contains(pair, "\t"):
			return invalid("WithBasicAuth: user or password has control characters")
		}
		c.addCredential("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
		c.secrets = append(c.secrets, password)
		return nil
	})
}

// pairOf is what is secret in the value of basic authentication, once it is
// decoded: the pair, and the password, or the user who stands alone for a key.
func pairOf(value string) []string {
	scheme, encoded, _ := strings.Cut(value, " ")
	pair, err := base64.StdEncoding.DecodeString(encoded)
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return nil
	}
	user, password, _ := strings.Cut(string(pair), ":")
	if password == "" {
		password = user
	}
	return []string{string(pair), password}
}

// WithBearerToken sends a token that does not change as "Authorization: Bearer"
// (RFC 6750) with every request to the origin of the base URL, and to no other.
// For tokens that expire see [WithOAuth2] and [WithTokenSource].
func WithBearerToken(token string) Option {
	if strings.TrimSpace(token) == "" {
		return clientOption(func(*config) error { return invalid("WithBearerToken: the token is empty") })
	}
	return WithCredential("Authorization", "Bearer "+token)
}

func (c *config) addCredential(name, value string) {
	c.credentials = append(c.credentials, header{name, []string{value}})
}

// WithSigner calls sign with each attempt's own request, as the last thing
// before it is sent to the origin of the base URL: for schemes that sign what
// is sent, or add a credential that no other option fits. A retry is signed anew.
//
// sign sees the final header, and may set header fields and the query. It must
// not change method, host, body or idempotency key. Where there is a body, it
// reads it by GetBody and leaves Body alone; GetBody is nil for a body of a
// caller of [Doer.Do] that can be read only once. It may block until the
// request's context ends; that time is the attempt's. An error from it ends the
// call: nothing is sent, and errors.Is finds it in the [Error].
//
// What sign sets never shows in an error, nor in any log of this package.
func WithSigner(sign func(*http.Request) error) Option {
	return clientOption(func(c *config) error {
		if sign == nil {
			return invalid("WithSigner: the function is nil")
		}
		c.sign = sign
		return nil
	})
}

// setUpAuth gets ready what requests are authorized by.
func (d *Doer) setUpAuth() error {
	c := d.config
	if c.tokenSource == nil && c.oauth2 == nil {
		return nil
	}
	if slices.ContainsFunc(c.credentials, func(h header) bool { return h.name == "Authorization" }) {
		return invalid("two options would set Authorization: give an access token, or one of basic authentication, bearer token and credential")
	}
	source, timeout := c.tokenSource, defaultTokenTimeout
	if c.oauth2 != nil {
		exchange, err := newExchange(d, c.oauth2)
		if err != nil {
			return err
		}
		source, timeout = exchange.token, exchange.timeout
	}
	d.redactor.live = newLiveSecrets(d.redactor.known())
	d.tokens = &tokens{fetch: source, timeout: timeout, redactor: d.redactor}
	return nil
}

// send gives the attempt's request its token and signature, and sends it.
func (a *attempt) send(c *call, r *http.Request) (*http.Response, error) {
	if d := c.doer; (d.tokens != nil || d.config.sign != nil) && d.trusts(&c.url) {
		if err := a.authorize(c, r); err != nil {
			a.unauthorized = err
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	a.sending = true
	return c.doer.base.RoundTrip(r)
}

func (a *attempt) authorize(c *call, r *http.Request) error {
	d := c.doer
	if d.tokens != nil {
		token, err := d.tokens.get(a)
		if err != nil {
			return err
		}
		a.token = token
		r.Header["Authorization"] = token.header
	}
	if d.config.sign == nil {
		return nil
	}
	return a.sign(c, r)
}

// sign lets the signer at the request, and looks at what it did.
func (a *attempt) sign(c *call, r *http.Request) error {
	u := c.url
	r.URL = &u // the query may be signed
	before := r.Header
	r.Header = before.Clone() // its values are shared with other attempts
	body := r.GetBody
	if c.body.open != nil {
		r.GetBody = c.body.open
		if c.adopted != nil {
			r.GetBody = c.adopted.GetBody
		}
	}
	err := c.doer.config.sign(r)
	r.GetBody = body
	c.noteSigned(before, r)
	switch {
	case err != nil:
		return &signError{fmt.Errorf("the request could not be signed: %w", err)}
	case r.URL == nil || r.URL.Scheme != c.url.Scheme || r.URL.Host != c.url.Host || r.Method != c.method || r.Host != c.host:
		return &signError{errors.New("the signer changed the request's method or host")}
	case c.keyValues != nil && !slices.Equal(r.Header[c.op.keyHeader], c.keyValues):
		return &signError{errors.New("the signer changed the idempotency key")}
	case c.keyValues == nil:
		if err := refuseKeys(c.op, r.Header); err != nil {
			return &signError{err}
		}
	}
	return nil
}

// signError is final: what cannot be signed now is not sent.
type signError struct{ err error }

func (e *signError) Error() string { return e.err.Error() }
func (e *signError) Unwrap() error { return e.err }

// noteSigned keeps what the signer added, for the redactor.
func (c *call) noteSigned(before http.Header, r *http.Request) {
	for name, values := range r.Header {
		if slices.Equal(before[name], values) {
			continue
		}
		c.signed.names = append(c.signed.names, name)
		for _, v := range values {
			c.signed.add(v)
		}
	}
	if r.URL == nil || r.URL.RawQuery == c.url.RawQuery {
		return
	}
	asked, _ := url.ParseQuery(c.url.RawQuery)
	signed, _ := url.ParseQuery(r.URL.RawQuery)
	for name, values := range signed {
		if !slices.Equal(asked[name], values) {
			for _, v := range values {
				c.signed.add(v)
			}
		}
	}
}

// leastSecret is how long what a signer sets must be to be taken for a secret:
// anything shorter stands in every other text.
const leastSecret = 8

// signedSecrets are what a signer set in the attempts of one call.
type signedSecrets struct{ values, names []string }

func (s *signedSecrets) add(v string) {
	_, token, _ := strings.Cut(v, " ")
	for _, secret := range []string{v, token} {
		if len(secret) >= leastSecret {
			s.values = append(s.values, secret)
		}
	}
}

// redactor is the client's, which also knows the secrets of this call: what was
// signed, and what is in the request.
func (c *call) redactor() redactor {
	r := c.doer.redactor
	secrets := append(secretsIn(c.model), c.signed.values...)
	if len(c.signed.names)+len(secrets) == 0 {
		return r
	}
	return r.with(secrets, c.signed.names)
}

// judgeUnauthorized is for an attempt that got no token, or no signature: not
// sent, and worth another try only if the token endpoint may do better.
func (a *attempt) judgeUnauthorized() {
	var (
		t      *TokenError
		signer *signError
	)
	if errors.As(a.unauthorized, &t) {
		a.retryAfter = t.RetryAfter
	}
	switch {
	case a.limit != nil && errors.As(a.unauthorized, &signer):
		a.as(classNotSent, fmt.Errorf("the request was not signed: %w", a.limit))
	case a.limit != nil:
		a.as(classNotSent, fmt.Errorf("no access token: %w", a.limit))
	case t != nil && t.mayPass():
		a.as(classNotSent, a.unauthorized)
	default:
		a.as(classRefused, a.unauthorized)
	}
}
