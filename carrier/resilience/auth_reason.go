package resilience

import (
	"errors"
	"net/http"
	"strings"
)

// AuthReason says why credentials did not do, as far as the answer tells.
type AuthReason int

const (
	// AuthUnknown is the zero value: not a matter of credentials, or the answer does not tell.
	AuthUnknown AuthReason = iota
	// AuthMissing: none were sent, or they did not arrive.
	AuthMissing
	// AuthExpired: they were right once. Get new ones.
	AuthExpired
	// AuthWrong: they are not known, malformed or revoked. Correct them.
	AuthWrong
	// AuthNotEntitled: they are right, and do not allow this. Ask the carrier
	// for the right, or the scope. Some carriers answer so with 401.
	AuthNotEntitled
)

// String returns "unknown", "missing", "expired", "wrong" or "not entitled".
func (r AuthReason) String() string {
	switch r {
	case AuthMissing:
		return "missing"
	case AuthExpired:
		return "expired"
	case AuthWrong:
		return "wrong"
	case AuthNotEntitled:
		return "not entitled"
	default:
		return "unknown"
	}
}

// AuthReason tells why a 401 or 403, or the token endpoint, refused the
// credentials. It goes by the problem's code, then by WWW-Authenticate (RFC
// 6750, section 3.1), then by the status: 403 is AuthNotEntitled, 401 is
// AuthUnknown. It is AuthUnknown for every other error.
func (e *Error) AuthReason() AuthReason {
	var t *TokenError
	if errors.As(e, &t) {
		switch r := reasonOfCode(t.Code); {
		case r != AuthUnknown:
			return r
		case errors.Is(t, ErrForbidden):
			return AuthNotEntitled
		case errors.Is(t, ErrUnauthorized):
			return AuthWrong
		}
		return AuthUnknown
	}
	if e.StatusCode != http.StatusUnauthorized && e.StatusCode != http.StatusForbidden {
		return AuthUnknown
	}
	if e.Problem != nil {
		if r := reasonOfCode(e.Problem.Code); r != AuthUnknown {
			return r
		}
	}
	if r := reasonOfChallenges(e.Header.Values("Www-Authenticate")); r != AuthUnknown {
		return r
	}
	if e.StatusCode == http.StatusForbidden {
		return AuthNotEntitled
	}
	return AuthUnknown
}

// reasonOfCode reads the words that carriers make codes of, the plainest first.
func reasonOfCode(code string) AuthReason {
	code = strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(strings.ToLower(code))
	if code == "invalid_request" {
		return AuthUnknown // the request for a token, not the credentials
	}
	for _, r := range []struct {
		reason AuthReason
		words  []string
	}{
		{AuthExpired, []string{"expired"}},
		{AuthMissing, []string{"missing", "required", "no_credentials", "not_provided"}},
		{AuthNotEntitled, []string{
			"scope", "forbidden", "entitle", "permission", "not_allowed", "access_denied",
			"unauthorized_client", "privilege", "not_enabled", "not_subscribed",
		}},
		{AuthWrong, []string{"invalid", "unknown", "revoked", "wrong", "incorrect", "malformed", "bad_credentials"}},
	} {
		for _, word := range r.words {
			if strings.Contains(code, word) {
				return r.reason
			}
		}
	}
	return AuthUnknown
}

// reasonOfChallenges reads the error of a bearer challenge. That invalid_token
// means an expired one only the description tells.
func reasonOfChallenges(challenges []string) AuthReason {
	for _, c := range challenges {
		c = strings.ToLower(c)
		switch {
		case strings.Contains(c, `insufficient_scope`):
			return AuthNotEntitled
		case strings.Contains(c, `invalid_token`) && strings.Contains(c, "expired"):
			return AuthExpired
		case strings.Contains(c, `invalid_token`):
			return AuthWrong
		}
	}
	return AuthUnknown
}
