package resilience

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OAuth2Config says how an access token is had: by the client credentials
// grant of OAuth 2.0 (RFC 6749, section 4.4). TokenURL must be set; every other
// zero field means its default.
type OAuth2Config struct {
	// TokenURL is the token endpoint: absolute, or relative to the base URL,
	// where "/oauth/token" is below its host. It is trusted as given, like the
	// base URL, unless [WithEgressGuard] is on. Plain http is refused unless the
	// base URL is http as well.
	TokenURL string
	// Scopes are asked for; empty means that the server chooses.
	Scopes []string
	// Parameters are added to the form: an audience, a resource. Secrets do not
	// belong here; see [WithTokenSource] for other grants.
	Parameters url.Values
	// SecretInBody sends id and secret in the form, for servers that do not take
	// basic authentication.
	SecretInBody bool
	// Timeout bounds one request for a token; default 10 s. It cannot be switched off.
	Timeout time.Duration
}

// oauth2Config is an OAuth2Config with whose it is.
type oauth2Config struct {
	OAuth2Config
	id, secret string
}

// WithOAuth2 gets access tokens for a client's id and secret, and sends them
// as "Authorization: Bearer" to the origin of the base URL, and to no other.
// They are renewed as told at [WithTokenSource]. What goes wrong at the token
// endpoint is a [TokenError], and the call was not sent.
func WithOAuth2(clientID, clientSecret string, o OAuth2Config) Option {
	o.Scopes = slices.Clone(o.Scopes)
	form := url.Values{}
	for name, values := range o.Parameters {
		form[name] = slices.Clone(values)
	}
	o.Parameters = form
	return clientOption(func(c *config) error {
		switch {
		case clientID == "" || clientSecret == "":
			return invalid("WithOAuth2: the client's id or secret is empty")
		case o.TokenURL == "":
			return invalid("OAuth2Config.TokenURL is empty")
		case o.Timeout < 0:
			return invalid("OAuth2Config.Timeout cannot be switched off")
		}
		for _, name := range []string{"grant_type", "scope", "client_id", "client_secret"} {
			if form.Has(name) {
				return invalid("OAuth2Config.Parameters: %s has an option of its own", name)
			}
		}
		c.oauth2, c.tokenSource = &oauth2Config{o, clientID, clientSecret}, nil
		c.secrets = append(c.secrets, clientSecret, basicPair(clientID, clientSecret))
		return nil
	})
}

// basicPair is id and secret as the header has them (RFC 6749, section 2.3.1).
func basicPair(id, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id) + ":" + url.QueryEscape(secret)))
}

// exchange asks the token endpoint.
type exchange struct {
	d       *Doer
	url     url.URL
	header  http.Header
	form    string
	timeout time.Duration
}

func newExchange(d *Doer, o *oauth2Config) (*exchange, error) {
	u, err := url.Parse(o.TokenURL)
	if err == nil && d.baseURL != nil {
		base := *d.baseURL
		base.Path += "/"
		u = base.ResolveReference(u)
	}
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return nil, invalid("OAuth2Config.TokenURL: not a valid URL, or relative without a base URL, or with user info or a fragment")
	case u.Scheme == "http" && (d.baseURL == nil || d.baseURL.Scheme != "http"):
		return nil, invalid("OAuth2Config.TokenURL: plain http would show the client's secret")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, invalid("OAuth2Config.TokenURL: the scheme is not https")
	}
	if g := d.config.guard; g != nil {
		if err := g.check(u); err != nil {
			return nil, fmt.Errorf("OAuth2Config.TokenURL: %w", err)
		}
	}
	x := &exchange{d: d, url: *u, timeout: o.Timeout}
	if x.timeout == 0 {
		x.timeout = defaultTokenTimeout
	}
	x.header = http.Header{
		"Accept": {"application/json"}, "User-Agent": d.userAgent,
		"Content-Type": {"application/x-www-form-urlencoded"},
	}
	form := maps.Clone(o.Parameters)
	form.Set("grant_type", "client_credentials")
	if len(o.Scopes) > 0 {
		form.Set("scope", strings.Join(o.Scopes, " "))
	}
	if o.SecretInBody {
		form.Set("client_id", o.id)
		form.Set("client_secret", o.secret)
	} else {
		x.header.Set("Authorization", "Basic "+basicPair(o.id, o.secret))
	}
	x.form = form.Encode()
	return x, nil
}

const maxTokenAnswer = 64 << 10

// token makes one request. It is never sent twice by itself, since a token
// endpoint may have narrower limits than the API: who calls decides.
func (x *exchange) token(ctx context.Context) (Token, error) {
	u := x.url
	req := (&http.Request{
		Method: http.MethodPost, URL: &u, Header: x.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: newBytesReader([]byte(x.form)), ContentLength: int64(len(x.form)),
	}).WithContext(ctx)
	begun := time.Now()
	resp, err := x.d.base.RoundTrip(req)
	if err != nil {
		return Token{}, &TokenError{err: newTransportError(explainTLS(stripURL(err)), x.d.redactor)}
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	body, err := readBody(resp.Body, resp.ContentLength, maxTokenAnswer)
	switch {
	case resp.StatusCode != http.StatusOK:
		return Token{}, x.refusal(resp, body)
	case err != nil:
		return Token{}, &TokenError{err: newTransportError(fmt.Errorf("the answer was cut: %w", err), x.d.redactor)}
	}
	token, err := readToken(body, begun)
	if err != nil {
		return Token{}, &TokenError{StatusCode: resp.StatusCode, err: fmt.Errorf("%w: %w", ErrMalformedResponse, err)}
	}
	return token, nil
}

// refusal reads an error of the token endpoint: RFC 6749, section 5.2, or any
// of the shapes that the API's own errors have.
func (x *exchange) refusal(resp *http.Response, body []byte) *TokenError {
	r := x.d.redactor
	clean := []byte(r.text(string(body)))
	e := &TokenError{StatusCode: resp.StatusCode}
	e.RetryAfter, _ = retryAfter(resp.Header, time.Now())
	members := object(clean)
	e.Code, e.Description = text(members, "error"), text(members, "error_description")
	if p := parseProblem("application/json", clean, nil, r); p != nil && !codeToken.MatchString(e.Code) {
		e.Code, e.Description = p.Code, p.Detail
	}
	if !codeToken.MatchString(e.Code) {
		e.Code = ""
	}
	e.Description = printable(r.text(e.Description), 200)
	if resp.StatusCode < 400 {
		e.err = redirected(&x.url, r.text(resp.Header.Get("Location")))
	}
	return e
}

// readToken reads an access token answer (RFC 6749, section 5.1). expires_in
// comes as a number or as a string; where it is missing or makes no sense, the
// token is used until it is refused.
func readToken(body []byte, begun time.Time) (Token, error) {
	members := object(body)
	if members == nil {
		return Token{}, errors.New("no JSON object")
	}
	t := Token{Value: text(members, "access_token"), Type: text(members, "token_type")}
	switch {
	case t.Value == "":
		return Token{}, errors.New("no access_token")
	case strings.EqualFold(t.Type, "Bearer"):
		t.Type = ""
	case t.Type != "":
		return Token{}, errors.New("the token is of another type than Bearer")
	}
	if life := tokenLife(members["expires_in"]); life > 0 {
		t.Expires = begun.Add(life)
	}
	return t, nil
}

// tokenLife reads a number, or a string with one in it; 0 if it is neither.
func tokenLife(raw json.RawMessage) time.Duration {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	const year = 366 * 24 * 3600
	return time.Duration(math.Min(f, year) * float64(time.Second))
}

// TokenError is why there is no access token: errors.As finds it in an [Error],
// whose call was then not sent. By what the token endpoint said it Is
// [ErrUnauthorized] (the client is not known, or its secret is wrong),
// [ErrForbidden] (the client may not have such a token), [ErrRateLimited],
// [ErrInvalidRequest], [ErrUnavailable] or [ErrTimeout].
type TokenError struct {
	// StatusCode is that of the token endpoint; 0 if it did not answer.
	StatusCode int
	// Code is its word for what is wrong: "invalid_client".
	Code string
	// Description is its text for people, on one line, without secrets.
	Description string
	// RetryAfter is how long it will not be asked again.
	RetryAfter time.Duration

	err error
}

// Error tells status and code, or what went wrong without an answer.
func (e *TokenError) Error() string {
	what := "no access token"
	if e.StatusCode != 0 && e.StatusCode != http.StatusOK {
		what += ": " + statusText(e.StatusCode)
	}
	if e.Code != "" {
		what += " (" + printable(e.Code, 64) + ")"
	}
	if e.err != nil {
		what += ": " + oneLine(e.err.Error(), 200)
	}
	return what
}

// Format writes Error for every verb.
func (e *TokenError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

// Unwrap returns what went wrong without an answer, or nil.
func (e *TokenError) Unwrap() error { return e.err }

// Is holds for the sentinels that are told at [TokenError].
func (e *TokenError) Is(target error) bool {
	refused := e.StatusCode == http.StatusBadRequest || e.StatusCode == http.StatusUnauthorized || e.StatusCode == http.StatusForbidden
	switch target {
	case ErrForbidden:
		return e.StatusCode == http.StatusForbidden || refused && e.notEntitled()
	case ErrUnauthorized:
		return e.StatusCode == http.StatusUnauthorized && !e.notEntitled() ||
			refused && (e.Code == "invalid_client" || e.Code == "invalid_grant")
	case ErrInvalidRequest:
		return e.StatusCode == http.StatusBadRequest && !e.Is(ErrUnauthorized) && !e.Is(ErrForbidden)
	case ErrUnavailable:
		var limit *limitError
		return e.StatusCode >= 500 || e.StatusCode < 300 && !errors.Is(e.err, ErrBlocked) && !errors.As(e.err, &limit)
	case ErrRateLimited, ErrTimeout:
		return e.StatusCode >= 400 && slices.Contains(statusSentinels(e.StatusCode), target)
	}
	return false
}

func (e *TokenError) notEntitled() bool {
	switch e.Code {
	case "unauthorized_client", "invalid_scope", "access_denied":
		return true
	}
	return false
}

// mayPass reports whether asking again soon may help.
func (e *TokenError) mayPass() bool {
	switch {
	case e.StatusCode == 0:
		return e.err == nil || !errors.Is(e.err, ErrBlocked) && !final(e.err)
	case e.StatusCode < 300:
		return true
	}
	return classifyStatus(e.StatusCode, SafetyRead) != classFinal
}

// remembered is the failure as those get it who come before it is asked again.
func (e *TokenError) remembered(left time.Duration) *TokenError {
	c := *e
	c.RetryAfter = max(left, 0)
	return &c
}

func asTokenError(err error, r redactor) *TokenError {
	var t *TokenError
	if errors.As(err, &t) {
		c := *t
		return &c
	}
	return &TokenError{err: newTransportError(err, r)}
}
