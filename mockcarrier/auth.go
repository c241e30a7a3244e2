package mockcarrier

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

const apiKeyHeader = "X-Api-Key"

// APIKey is the key that the carrier accepts by default.
const APIKey = "ck_test_mockcarrier"

// ForbiddenAPIKey is a key that is known but allows nothing: the answer is 403.
const ForbiddenAPIKey = "ck_test_forbidden"

// authenticate returns the account of a request. Each key is an account of its
// own, which has its own shipments and idempotency keys. A key goes before a
// bearer token.
func (c *Carrier) authenticate(r *http.Request) (string, *refusal) {
	given := r.Header.Get(apiKeyHeader)
	if given == "" {
		if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
			return c.checkToken(strings.TrimSpace(token))
		}
	}
	account := ""
	for _, key := range c.config.apiKeys {
		if subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1 {
			account = key
		}
	}
	switch {
	case account != "":
		return account, nil
	case given == ForbiddenAPIKey:
		return "", refuseStatus(http.StatusForbidden)
	case given == "":
		return "", refuse(http.StatusUnauthorized, "missing_api_key", "Credentials missing",
			"There is neither the header x-api-key nor a bearer token.").with("Www-Authenticate", `ApiKey realm="carrier"`)
	}
	return "", refuse(http.StatusUnauthorized, "invalid_api_key", "Invalid credentials",
		"The key in x-api-key is not known.").with("Www-Authenticate", `ApiKey realm="carrier"`)
}
