package resilience

import (
	"net/url"
	"strconv"
	"strings"
)

// parseBaseURL accepts an absolute http or https URL that names a host, and
// nothing that a path could not be added to. The path comes back without a
// slash at its end. Errors do not repeat the URL: it may hold a password.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, invalid("base URL: not a valid URL")
	}
	switch {
	case u.Scheme == "":
		return nil, invalid("base URL: no scheme; it begins with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("base URL: the scheme %q is neither https nor http", u.Scheme)
	case u.Opaque != "" || u.Hostname() == "":
		return nil, invalid("base URL: no host")
	case u.User != nil:
		return nil, invalid("base URL: user info is not allowed; give credentials by option")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, invalid("base URL: a query is not allowed")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return nil, invalid("base URL: a fragment is not allowed")
	}
	if strings.HasSuffix(u.Host, ":") {
		return nil, invalid("base URL: the port is empty")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, invalid("base URL: the port is not between 1 and 65535")
		}
	}
	for _, c := range u.Host {
		if c <= ' ' || c >= 0x7f {
			return nil, invalid("base URL: the host has characters that are not allowed")
		}
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, invalid("base URL: dot segments are not allowed in the path")
		}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// sameOrigin compares scheme, host and port, the default ports filled in.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) &&
		strings.EqualFold(strings.TrimSuffix(a.Hostname(), "."), strings.TrimSuffix(b.Hostname(), ".")) &&
		portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if strings.EqualFold(u.Scheme, "https") {
		return "443"
	}
	return "80"
}
