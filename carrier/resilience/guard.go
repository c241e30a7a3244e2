package resilience

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// EgressPolicy says where the egress guard lets the client connect to. The
// guard judges the address that a name leads to, at the moment of connecting:
// no answer of a name server, redirect or odd spelling gets around it. What it
// refuses Is [ErrBlocked], was not sent, is not repeated, and counts neither for
// the breaker nor for the retry budget.
//
// The zero value allows https on port 443 of every public address. Addresses
// that are not public are those of IANA's special-purpose registries: loopback,
// private networks, link-local ones with the metadata services of the clouds,
// multicast, and so on.
//
// Behind a proxy (of the environment, or of the user's transport) the name is
// looked up here, its addresses are judged, and the proxy is asked to connect to
// an address and not to the name. The proxy itself is the user's choice, and not
// judged. See TrustProxy for where that cannot work.
type EgressPolicy struct {
	// Hosts are the only hosts that are allowed, by name or address, or by
	// "*.carrier.example" for all names below one. Empty means any. A host on
	// the list must still have an address that is allowed.
	Hosts []string
	// Prefixes are allowed though they are not public: 10.20.0.0/16.
	Prefixes []netip.Prefix
	// Denied are refused though they are public, or in Prefixes.
	Denied []netip.Prefix
	// Ports are the only ports that are allowed. Empty means 443, and 80 if
	// PlainHTTP is set.
	Ports []uint16
	// PlainHTTP allows http beside https.
	PlainHTTP bool
	// TrustProxy hands names to the proxy, where there is one, without looking
	// them up: for a network in which only the proxy can, or whose proxy has
	// a list of names. The proxy must then be the guard: only scheme, port,
	// Hosts and literal addresses are judged here. Without it, a proxy that is
	// itself spoken to by https, and plain http behind any proxy, are refused.
	TrustProxy bool
}

// WithEgressGuard puts everything that the client connects to under the guard:
// the base URL, the token endpoint, links, and whatever goes through [Doer.Do].
// By default only links of other origins are (see [Doer.Fetch]), and the base
// URL is trusted as given. A base URL that p does not allow is an error of [New].
//
// Together with [WithTransport] it needs an *http.Transport that has neither
// DialTLS, DialTLSContext nor Dial: a copy of it is guarded, and its DialContext
// is given addresses in place of names. Any other RoundTripper is an error.
func WithEgressGuard(p EgressPolicy) Option {
	g, err := newGuard(p)
	return clientOption(func(c *config) error { c.guard = g; return err })
}

// WithLinkGuard sets what links of other origins may lead to (see
// [Doer.Fetch]); default: the policy of [WithEgressGuard], else the zero
// [EgressPolicy].
//
// With [WithTransport] and a RoundTripper that cannot be guarded, such links
// are refused. This option lets them through, by a transport of our own.
func WithLinkGuard(p EgressPolicy) Option {
	g, err := newGuard(p)
	return clientOption(func(c *config) error { c.linkGuard = g; return err })
}

// guard is an EgressPolicy at work.
type guard struct {
	hosts      []string // lower case, without a dot at the end
	addresses  addressRules
	ports      []uint16
	plainHTTP  bool
	trustProxy bool
	resolver   *net.Resolver // nil: the system's
}

func newGuard(p EgressPolicy) (*guard, error) {
	g := &guard{
		addresses: newAddressRules(p.Prefixes, p.Denied),
		ports:     slices.Clone(p.Ports), plainHTTP: p.PlainHTTP, trustProxy: p.TrustProxy,
	}
	for _, h := range p.Hosts {
		name, below := strings.CutPrefix(h, "*.")
		host, _, err := parseHost(name)
		if err != nil {
			return nil, invalid("EgressPolicy.Hosts: %q is neither a host name, an address nor \"*.\" and a name", printable(h, 80))
		}
		if below {
			host = "*." + host
		}
		g.hosts = append(g.hosts, host)
	}
	for _, p := range slices.Concat(p.Prefixes, p.Denied) {
		if !p.IsValid() || p.Addr().Is4In6() {
			return nil, invalid("EgressPolicy: a prefix is not valid; write IPv4 prefixes as such")
		}
	}
	if slices.Contains(g.ports, 0) {
		return nil, invalid("EgressPolicy.Ports: 0 is not a port")
	}
	if len(g.ports) == 0 {
		g.ports = []uint16{443}
		if p.PlainHTTP {
			g.ports = append(g.ports, 80)
		}
	}
	return g, nil
}

// blockedError is a refusal of the guard.
type blockedError struct{ reason string }

func (e *blockedError) Error() string        { return ErrBlocked.Error() + ": " + e.reason }
func (e *blockedError) Is(target error) bool { return target == ErrBlocked }

func blocked(format string, args ...any) *blockedError {
	return &blockedError{fmt.Sprintf(format, args...)}
}

// check judges a URL by itself, before anything is looked up.
func (g *guard) check(u *url.URL) error {
	switch {
	case strings.EqualFold(u.Scheme, "https"):
	case !strings.EqualFold(u.Scheme, "http"):
		return blocked("the scheme is not https")
	case !g.plainHTTP:
		return blocked("plain http is not allowed")
	}
	if u.User != nil {
		return blocked("the URL has user info")
	}
	host, addr, err := parseHost(u.Hostname())
	if err != nil {
		return err
	}
	if !g.allowsHost(host) {
		return blocked("the host %s is not on the list", host)
	}
	if addr.IsValid() && !g.addresses.permit(addr) {
		return blocked("%s is not an allowed address", addr)
	}
	port, err := strconv.ParseUint(portOf(u), 10, 16)
	if err != nil || !slices.Contains(g.ports, uint16(port)) {
		return blocked("port %s is not allowed", printable(portOf(u), 8))
	}
	return nil
}

func (g *guard) allowsHost(host string) bool {
	return len(g.hosts) == 0 || slices.ContainsFunc(g.hosts, func(allowed string) bool {
		if suffix, ok := strings.CutPrefix(allowed, "*"); ok {
			return strings.HasSuffix(host, suffix)
		}
		return host == allowed
	})
}

// parseHost returns a host in lower case and without a dot at its end, and the
// address if it is one. What is no plain name or address in its usual form is
// refused: other alphabets, which look like a name that they are not, and
// numbers in forms that only some resolvers take for an address.
func parseHost(host string) (string, netip.Addr, error) {
	none := netip.Addr{}
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return "", none, blocked("the host is not a valid IPv6 address")
		}
		return addr.String(), addr, nil
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 {
		return "", none, blocked("the host is empty, or too long")
	}
	for _, label := range strings.Split(host, ".") {
		if label == "" || len(label) > 63 {
			return "", none, blocked("the host is not a valid name")
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return "", none, blocked("the host has characters that a name cannot have")
			}
		}
	}
	host = strings.ToLower(host) // of ASCII: other alphabets have letters that would turn into it
	if !endsInNumber(host) {
		return host, none, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return "", none, blocked("the host is a number in an odd form")
	}
	return host, addr, nil
}

// endsInNumber holds for what may be taken for an IPv4 address: its last part
// is decimal, octal or hexadecimal.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if rest, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = rest, "0123456789abcdef"
	}
	return strings.Trim(last, digits) == ""
}

// dial connects to one of the addresses of a host that the guard lets through.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var refusal atomic.Pointer[blockedError]
	dialer := newDialer()
	dialer.Resolver = g.resolver
	dialer.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if b := g.checkDial(network, address); b != nil {
			refusal.Store(b)
			return b
		}
		return nil
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if b := refusal.Load(); err != nil && b != nil {
		return nil, b // also where another address of the host did not answer
	}
	return conn, err
}

// checkDial judges an address that is about to be connected to.
func (g *guard) checkDial(network, address string) *blockedError {
	to, err := netip.ParseAddrPort(address)
	switch {
	case err != nil, network != "tcp4" && network != "tcp6":
		return blocked("not an address of TCP")
	case !slices.Contains(g.ports, to.Port()):
		return blocked("port %d is not allowed", to.Port())
	case !g.addresses.permit(to.Addr()):
		return blocked("%s is not an allowed address", to.Addr())
	}
	return nil
}

// lookup returns the addresses of a host that the guard lets through, of which
// there is at least one.
func (g *guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := make([]netip.Addr, 1)
	var err error
	if addrs[0], err = netip.ParseAddr(host); err != nil {
		resolver := g.resolver
		if resolver == nil {
			resolver = net.DefaultResolver
		}
		if addrs, err = resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return nil, err
		}
	}
	var allowed []netip.Addr
	for _, addr := range addrs {
		if g.addresses.permit(addr) {
			allowed = append(allowed, addr.Unmap())
		}
	}
	if allowed == nil {
		return nil, blocked("%s has no allowed address", printable(host, 80))
	}
	return allowed, nil
}

// dialBy dials through a dialer of the user's, which is given the addresses
// that the guard lets through, one after the other, and never a name.
func (g *guard) dialBy(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addrs, err := g.lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		var first error
		for _, addr := range addrs {
			conn, err := dial(ctx, network, net.JoinHostPort(addr.String(), port))
			if err == nil {
				return conn, nil
			}
			if first == nil {
				first = err
			}
		}
		return nil, first
	}
}
