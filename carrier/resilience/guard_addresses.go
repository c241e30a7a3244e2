package resilience

import (
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// wireServer is Azure's, which has a public address and answers from within
// every virtual machine with what only that machine may know.
var wireServer = netip.MustParsePrefix("168.63.129.16/32")

// addressRules say which addresses may be connected to. By default these are
// the public ones: nothing of the special-purpose registries of IANA, hence no
// loopback, private, link-local (with the clouds' metadata), multicast,
// documentation, reserved, Teredo, 6to4 or IPv4-translated address.
type addressRules struct {
	denied   []netip.Prefix
	guardian *ssrf.Guardian
}

func newAddressRules(allowed, denied []netip.Prefix) addressRules {
	var v4, v6 []netip.Prefix
	for _, p := range allowed {
		if p.Addr().Is4() {
			v4 = append(v4, p.Masked())
		} else {
			v6 = append(v6, p.Masked())
		}
	}
	return addressRules{
		denied: slices.Clone(denied),
		guardian: ssrf.New(
			ssrf.WithAnyNetwork(), ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			ssrf.WithDeniedV4Prefixes(wireServer),
		),
	}
}

// permit reports whether addr may be connected to. An IPv4 address inside of an
// IPv6 one is judged as what it is: mapped ones are dialled as IPv4, and those
// of NAT64 lead to it. An address with a zone is of some local link.
func (r addressRules) permit(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if ssrf.IPv6NAT64Prefix.Contains(addr) {
		b := addr.As16()
		return r.permit(netip.AddrFrom4([4]byte(b[12:])))
	}
	if slices.ContainsFunc(r.denied, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return false
	}
	return r.guardian.SafeAddr(addr) == nil
}
