package resilience

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

const redacted = "[REDACTED]"

// redactor takes secrets out of what a carrier may echo: error bodies, headers
// and texts. It knows each secret in the forms that an echo can have. The zero
// value knows none.
type redactor struct {
	replacer *strings.Replacer
	headers  map[string]bool // names of headers that carry a credential
}

func newRedactor(secrets, headers []string) redactor {
	r := redactor{headers: map[string]bool{
		"Authorization": true, "Proxy-Authorization": true,
		"Set-Cookie": true, "Set-Cookie2": true, "Cookie": true,
	}}
	for _, h := range headers {
		r.headers[http.CanonicalHeaderKey(h)] = true
	}
	var pairs []string
	seen := map[string]bool{}
	for _, secret := range secrets {
		for _, form := range []string{
			secret, jsonText(secret), url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)),
			base64.RawURLEncoding.EncodeToString([]byte(secret)),
		} {
			if form != "" && !seen[form] {
				seen[form] = true
				pairs = append(pairs, form, redacted)
			}
		}
	}
	if pairs != nil {
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil || len(b) < 2 {
		return ""
	}
	return string(b[1 : len(b)-1])
}

func (r redactor) text(s string) string {
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// header returns a copy of h without credentials, and nil for an empty one.
func (r redactor) header(h http.Header) http.Header {
	if len(h) == 0 {
		return nil
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		if r.headers[http.CanonicalHeaderKey(name)] {
			continue
		}
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = r.text(v)
		}
		out[name] = clean
	}
	return out
}

// body returns a copy of b without secrets, cut after max bytes. The cut comes
// last, so that it cannot leave half a secret behind.
func (r redactor) body(b []byte, max int) []byte {
	if len(b) == 0 {
		return nil
	}
	clean := r.text(string(b))
	if len(clean) > max {
		clean = clean[:max]
	}
	return []byte(clean)
}

// printable returns s on one line, of printable ASCII and at most max bytes.
func printable(s string, max int) string {
	if len(s) > max {
		s = s[:max]
	}
	return strings.Map(func(c rune) rune {
		if c < 0x20 || c > 0x7e {
			return -1
		}
		return c
	}, s)
}

// oneLine folds every run of white space and control characters into a space.
func oneLine(s string, max int) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c < 0x20 || c == ' ' || c == 0x7f }), " ")
	if len(s) > max {
		s = s[:max] + "…"
	}
	return s
}
