package resilience

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const redacted = "[REDACTED]"

// redactor takes secrets out of what a carrier may echo: error bodies, headers
// and texts. It knows each secret in the forms that an echo can have. The zero
// value knows none.
type redactor struct {
	secrets  func() []string // behind a function, where fmt cannot follow; nil if there are none
	replacer *strings.Replacer
	headers  map[string]bool // names of headers that carry a credential
	live     *liveSecrets    // those that come and go, and the others; nil if none do
}

func newRedactor(secrets, headers []string) redactor {
	r := redactor{secrets: func() []string { return secrets }, replacer: newReplacer(secrets), headers: map[string]bool{
		"Authorization": true, "Proxy-Authorization": true,
		"Set-Cookie": true, "Set-Cookie2": true, "Cookie": true,
	}}
	for _, h := range headers {
		r.headers[http.CanonicalHeaderKey(h)] = true
	}
	return r
}

// newReplacer returns nil if there are no secrets. Where one begins with
// another, the longer one is found first.
func newReplacer(secrets []string) *strings.Replacer {
	secrets = slices.Clone(secrets)
	slices.SortStableFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	seen := map[string]bool{}
	for _, secret := range secrets {
		for _, form := range formsOf(secret) {
			if form != "" && !seen[form] {
				seen[form] = true
				pairs = append(pairs, form, redacted)
			}
		}
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...)
}

// with returns a redactor that knows more.
func (r redactor) with(secrets, headers []string) redactor {
	more := newRedactor(slices.Concat(r.known(), secrets), headers)
	for name := range r.headers {
		more.headers[name] = true
	}
	return more
}

// formsOf are the ways in which servers say a secret again: as it is, in JSON,
// in a URL, in HTML, in base64 (padded or not).
func formsOf(secret string) []string {
	inJSON := jsonText(secret)
	query, path := url.QueryEscape(secret), url.PathEscape(secret)
	return []string{
		secret, inJSON, strings.ReplaceAll(inJSON, "/", `\/`),
		strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(inJSON),
		query, path, lowerHex(query), lowerHex(path), html.EscapeString(secret),
		base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

func jsonText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)                // a string always encodes
	return b.String()[1 : b.Len()-2] // without its quotes and the new line
}

// lowerHex writes %2F as %2f, as some servers do.
func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// hidden reports whether JSON holds a secret behind escapes of its own.
func (r redactor) hidden(raw []byte) bool {
	var v any
	if bytes.IndexByte(raw, '\\') < 0 || json.Unmarshal(raw, &v) != nil {
		return false
	}
	text := fmt.Sprint(v)
	return r.text(text) != text
}

// problem takes out what text could not see before the JSON was decoded.
func (r redactor) problem(p *Problem) {
	members := []*string{&p.Type, &p.Title, &p.Detail, &p.Instance, &p.Code, &p.RequestID}
	for i := range p.Errors {
		members = append(members, &p.Errors[i].Pointer, &p.Errors[i].Code, &p.Errors[i].Message)
	}
	for _, m := range members {
		*m = r.text(*m)
	}
	for name, raw := range p.Extensions {
		if r.hidden(raw) {
			p.Extensions[name] = json.RawMessage(`"` + redacted + `"`)
		}
	}
}

func (r redactor) known() []string {
	if r.live != nil {
		return r.live.known()
	}
	if r.secrets == nil {
		return nil
	}
	return r.secrets()
}

func (r redactor) text(s string) string {
	replacer := r.replacer
	if r.live != nil {
		if live := r.live.replacer.Load(); live != nil {
			replacer = live
		}
	}
	if replacer == nil {
		return s
	}
	return replacer.Replace(s)
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
	const slack = 4 << 10 // what is beyond the cut is looked at for secrets that begin before it
	switch {
	case len(b) == 0:
		return nil
	case len(b) > max+slack:
		return r.cutBody(b[:max+slack], max)
	}
	clean := r.text(string(b))
	if r.hidden([]byte(clean)) {
		clean = redacted
	}
	if len(clean) > max {
		clean = clean[:max]
	}
	return []byte(clean)
}

// cutBody is body for one whose end is missing: half a secret may stand there.
func (r redactor) cutBody(b []byte, max int) []byte {
	const least = 4
	for _, secret := range r.known() {
		for n := min(len(secret)-1, len(b)); n >= least; n-- {
			if bytes.HasSuffix(b, []byte(secret[:n])) {
				return append(r.body(b[:len(b)-n], max-len(redacted)), redacted...)
			}
		}
	}
	return r.body(b, max)
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
