package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	roleStaff    = "staff"
	roleCustomer = "customer"

	shortestToken = 16
)

// person is who sent a request.
type person struct{ name, role string }

// directory knows people by their tokens. It keeps digests only, which all have
// the same length, so that comparing them takes the same time for every token.
type directory []entry

type entry struct {
	person
	digest [sha256.Size]byte
}

// parseTokens reads "name:role:token,…". Its errors do not repeat what it reads.
func parseTokens(text string) (directory, error) {
	if text == "" {
		return nil, errors.New("not set")
	}
	var d directory
	for i, part := range strings.Split(text, ",") {
		fields := strings.SplitN(strings.TrimSpace(part), ":", 3)
		if len(fields) != 3 || fields[0] == "" {
			return nil, fmt.Errorf("entry %d is not name:role:token", i+1)
		}
		name, role, token := fields[0], fields[1], fields[2]
		switch {
		case role != roleStaff && role != roleCustomer:
			return nil, fmt.Errorf("entry %d: the role is neither %s nor %s", i+1, roleStaff, roleCustomer)
		case len(token) < shortestToken:
			return nil, fmt.Errorf("entry %d: the token is shorter than %d characters", i+1, shortestToken)
		}
		if _, taken := d.find(token); taken {
			return nil, fmt.Errorf("entry %d: the token is that of another entry", i+1)
		}
		d = append(d, entry{person{name, role}, sha256.Sum256([]byte(token))})
	}
	return d, nil
}

// find compares token with every entry, and does not stop at the right one.
func (d directory) find(token string) (who person, ok bool) {
	digest := sha256.Sum256([]byte(token))
	for _, e := range d {
		if subtle.ConstantTimeCompare(digest[:], e.digest[:]) == 1 {
			who, ok = e.person, true
		}
	}
	return who, ok
}

// requireRole lets people of one role through, and tells the others how to
// become one (RFC 6750).
func (s *shop) requireRole(role string, next http.Handler) http.Handler {
	const challenge = `Bearer realm="bookstore"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, given := bearer(r.Header)
		who, known := s.tokens.find(token)
		switch {
		case !given:
			newProblem(http.StatusUnauthorized, "unauthorized", "This needs a bearer token.").
				header("WWW-Authenticate", challenge).write(w, r)
		case !known:
			newProblem(http.StatusUnauthorized, "unauthorized", "The bearer token is not valid.").
				header("WWW-Authenticate", challenge+`, error="invalid_token"`).write(w, r)
		case who.role != role:
			visitOf(r.Context()).user = who.name
			newProblem(http.StatusForbidden, "forbidden", "This is for the role "+role+" only.").
				header("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+role+`"`).write(w, r)
		default:
			visitOf(r.Context()).user = who.name
			next.ServeHTTP(w, r)
		}
	})
}

// bearer returns the token of the one Authorization header that there is.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}
