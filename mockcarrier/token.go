package mockcarrier

import (
	"crypto/subtle"
	"encoding/hex"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// ClientID and ClientSecret are the OAuth2 client that the carrier accepts by
// default at POST /oauth/token, by the client credentials grant (RFC 6749,
// section 4.4).
const (
	ClientID     = "mock-client"
	ClientSecret = "mock-secret"
)

// TokenOperation is how the requests for a token are called in the journal,
// in expectations and in faults. They are no operation of the API: a rule strikes
// them only if it names them.
const TokenOperation = "issueToken"

const tokenPath = "/oauth/token"

var tokenOperation = &resilience.Operation{ID: TokenOperation, Method: http.MethodPost, Path: tokenPath}

// tokens are the access tokens that were issued.
type tokens struct {
	seed uint64

	mu      sync.Mutex
	issued  int
	expires map[string]time.Time // on the carrier's clock; zero if it was revoked
}

func (t *tokens) issue(expires time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued++
	source := rand.NewPCG(t.seed, uint64(t.issued)|1<<63)
	var raw [16]byte
	for i := 0; i < len(raw); i += 8 {
		n := source.Uint64()
		for j := range 8 {
			raw[i+j] = byte(n >> (8 * j))
		}
	}
	token := "at_" + hex.EncodeToString(raw[:])
	t.expires[token] = expires
	return token
}

func (t *tokens) lookUp(token string) (expires time.Time, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	expires, known = t.expires[token]
	return expires, known && !expires.IsZero()
}

func (t *tokens) revoke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for token := range t.expires {
		t.expires[token] = time.Time{}
	}
}

func (t *tokens) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expires = make(map[string]time.Time)
}

// RevokeTokens makes all access tokens that were issued so far useless, as if
// somebody had changed the client's secret: the next request with one gets 401.
func (c *Carrier) RevokeTokens() { c.tokens.revoke() }

const (
	codeTokenExpired = "token_expired"
	expiredChallenge = `Bearer realm="carrier", error="invalid_token", error_description="The access token expired"`
	unknownChallenge = `Bearer realm="carrier", error="invalid_token", error_description="The access token is not known"`
)

// checkToken returns the account of a bearer token, which is that of the first
// API key.
func (c *Carrier) checkToken(token string) (string, *refusal) {
	expires, known := c.tokens.lookUp(token)
	switch {
	case !known:
		return "", refuse(http.StatusUnauthorized, "invalid_token", "Invalid credentials",
			"The bearer token is not known, or was revoked.").with("Www-Authenticate", unknownChallenge)
	case !c.now().Before(expires):
		return "", refuse(http.StatusUnauthorized, codeTokenExpired, "Token expired",
			"The bearer token expired at %s.", expires.UTC().Format(time.RFC3339)).with("Www-Authenticate", expiredChallenge)
	}
	return c.config.apiKeys[0], nil
}

// issueToken answers a request for a token.
func (c *Carrier) issueToken(r *http.Request, body []byte) answer {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form, formErr := url.ParseQuery(string(body))
	if err != nil || mediaType != "application/x-www-form-urlencoded" || formErr != nil {
		return tokenError(http.StatusBadRequest, "invalid_request", "The body must be a form.")
	}
	for name, values := range form {
		if len(values) > 1 {
			return tokenError(http.StatusBadRequest, "invalid_request", "The parameter "+name+" comes twice.")
		}
	}
	basic := r.Header.Get("Authorization") != ""
	id, secret := form.Get("client_id"), form.Get("client_secret")
	switch {
	case basic && form.Has("client_secret"):
		return tokenError(http.StatusBadRequest, "invalid_request", "The client must use one way to identify itself.")
	case basic:
		id, secret = basicClient(r)
	}
	if !c.knowsClient(id, secret) {
		a := tokenError(http.StatusUnauthorized, "invalid_client", "The client is not known, or its secret is wrong.")
		if basic {
			a.Header.Set("Www-Authenticate", `Basic realm="carrier"`)
		}
		return a
	}
	switch form.Get("grant_type") {
	case "client_credentials":
	case "":
		return tokenError(http.StatusBadRequest, "invalid_request", "The parameter grant_type is missing.")
	default:
		return tokenError(http.StatusBadRequest, "unsupported_grant_type", "The grant must be client_credentials.")
	}
	life := c.config.tokenLife
	document := map[string]any{"access_token": c.tokens.issue(c.now().Add(life)), "token_type": "Bearer", "expires_in": seconds(life)}
	if c.config.expiresInText {
		document["expires_in"] = strconv.Itoa(seconds(life))
	}
	if scope := form.Get("scope"); scope != "" {
		document["scope"] = scope
	}
	return tokenAnswer(http.StatusOK, document)
}

// basicClient reads HTTP's basic authentication, in which both parts are form
// encoded (RFC 6749, section 2.3.1).
func basicClient(r *http.Request) (id, secret string) {
	id, secret, _ = r.BasicAuth()
	for _, part := range []*string{&id, &secret} {
		plain, err := url.QueryUnescape(*part)
		if err != nil {
			return "", ""
		}
		*part = plain
	}
	return id, secret
}

func (c *Carrier) knowsClient(id, secret string) bool {
	known := false
	for _, client := range c.config.clients {
		same := subtle.ConstantTimeCompare([]byte(id), []byte(client.id)) &
			subtle.ConstantTimeCompare([]byte(secret), []byte(client.secret))
		known = known || same == 1
	}
	return known
}

// tokenError is an error as RFC 6749, section 5.2, has it.
func tokenError(status int, code, description string) answer {
	return tokenAnswer(status, map[string]any{"error": code, "error_description": description})
}

func tokenAnswer(status int, document map[string]any) answer {
	return answer{Status: status, Header: http.Header{
		"Content-Type": {jsonType}, "Cache-Control": {"no-store"}, "Pragma": {"no-cache"},
	}, Body: encode(document)}
}

// withoutSecret returns a form as the journal keeps it: of what is not known to
// be no secret, only that it was there.
func withoutSecret(form []byte) []byte {
	var kept []string
	for _, pair := range strings.Split(string(form), "&") {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "", "grant_type", "client_id", "scope":
		case "client_secret":
			pair = name + "=" + redacted
		default: // another parameter, or no form at all
			pair = redacted
		}
		kept = append(kept, pair)
	}
	return []byte(strings.Join(kept, "&"))
}
