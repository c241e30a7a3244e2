package resilience

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
)

// guarded sends requests behind the guard.
type guarded struct {
	guard  *guard
	direct *http.Transport                       // connects to what the guard lets through
	behind *http.Transport                       // connects to proxies
	proxy  func(*http.Request) (*url.URL, error) // nil: there is none

	mu     sync.Mutex
	pinned map[string]*http.Transport // by host: as behind, but asks the proxy for addresses
}

// maxPinned is for how many hosts connections through a proxy are kept.
const maxPinned = 16

// guardable returns the transport that can be guarded, or nil. Hooks that dial
// and speak TLS at once would have to be given the name.
func guardable(rt http.RoundTripper) *http.Transport {
	t, ok := rt.(*http.Transport)
	//lint:ignore SA1019 net/http still honours them
	if !ok || t == nil || t.DialTLSContext != nil || t.DialTLS != nil || t.Dial != nil {
		return nil
	}
	return t
}

// newGuarded guards a copy of the user's transport, or our own. It returns nil
// if the user's cannot be guarded.
func newGuarded(g *guard, c *config) *guarded {
	var (
		t    *http.Transport
		dial dialFunc
	)
	if c.transport == nil {
		t = newTransport(c)
	} else if user := guardable(c.transport); user != nil {
		t = user.Clone()
		dial = user.DialContext
		if len(t.TLSNextProto) > 0 { // its HTTP/2 connections are its own
			t.TLSNextProto, t.ForceAttemptHTTP2 = nil, true
		}
	} else {
		return nil
	}
	s := &guarded{guard: g, direct: t, behind: t.Clone(), proxy: t.Proxy}
	t.Proxy = nil
	switch {
	case c.transport == nil:
		t.DialContext = counted(g.dial)
	case dial != nil:
		t.DialContext = g.dialBy(dial)
	default:
		t.DialContext = g.dial
	}
	return s
}

// withoutIdentity takes off what belongs to the API alone: the client's
// certificates, and a trust that the user placed in it.
func (t *guarded) withoutIdentity() {
	for _, tr := range []*http.Transport{t.direct, t.behind} {
		if c := tr.TLSClientConfig; c != nil {
			c.Certificates, c.GetClientCertificate = nil, nil
			c.ServerName, c.InsecureSkipVerify = "", false
		}
	}
}

// RoundTrip sends r, if the guard lets it through.
func (t *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	next, r, err := t.route(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return next.RoundTrip(r)
}

// route returns what r goes through, and r as it goes there.
func (t *guarded) route(r *http.Request) (*http.Transport, *http.Request, error) {
	if err := t.guard.check(r.URL); err != nil {
		return nil, r, err
	}
	if t.proxy == nil {
		return t.direct, r, nil
	}
	via, err := t.proxy(r)
	switch {
	case err != nil:
		return nil, r, err
	case via == nil:
		return t.direct, r, nil
	case t.guard.trustProxy:
		return t.behind, r, nil
	case r.URL.Scheme != "https":
		return nil, r, blocked("plain http behind a proxy needs EgressPolicy.TrustProxy")
	case via.Scheme == "https":
		return nil, r, blocked("a proxy that is spoken to by https needs EgressPolicy.TrustProxy")
	}
	host := r.URL.Hostname()
	addrs, err := t.guard.lookup(r.Context(), host)
	if err != nil {
		if e, ok := r.Context().Value(evidenceKey{}).(*evidence); ok {
			e.asked.Add(1) // it stands for the connection, which is not got
		}
		return nil, r, err
	}
	return t.pin(host), aimedAt(r, addrs), nil
}

// aimedAt returns r with an address in place of the host: IPv4 if there is
// one, since a proxy may have no other.
func aimedAt(r *http.Request, addrs []netip.Addr) *http.Request {
	addr := addrs[max(slices.IndexFunc(addrs, netip.Addr.Is4), 0)]
	aimed := r.WithContext(r.Context())
	u := *r.URL
	u.Host = net.JoinHostPort(addr.String(), portOf(r.URL))
	aimed.URL = &u
	if aimed.Host == "" {
		aimed.Host = r.URL.Host
	}
	return aimed
}

// pin returns a transport that verifies certificates for host, although the
// requests name an address.
func (t *guarded) pin(host string) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pinned[host]; p != nil {
		return p
	}
	p := t.behind.Clone()
	if p.TLSClientConfig == nil {
		p.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if p.TLSClientConfig.ServerName == "" {
		p.TLSClientConfig.ServerName = host
	}
	if len(t.pinned) >= maxPinned {
		p.DisableKeepAlives = true
		return p
	}
	if t.pinned == nil {
		t.pinned = map[string]*http.Transport{}
	}
	t.pinned[host] = p
	return p
}

// CloseIdleConnections closes those of our own making.
func (t *guarded) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.behind.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pinned {
		p.CloseIdleConnections()
	}
}
