package resilience

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
)

func readTable[T any](t *testing.T, name string, least int) []T {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < least {
		t.Fatalf("%s has %d rows, and at least %d belong there", name, len(rows), least)
	}
	return rows
}

func TestGuardAddresses(t *testing.T) {
	type row struct {
		Address          string
		Allowed          bool
		Why              string
		Prefixes, Denied []netip.Prefix
	}
	for _, r := range readTable[row](t, "guard_addresses.json", 80) {
		addr, err := netip.ParseAddr(r.Address)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGuard(EgressPolicy{Prefixes: r.Prefixes, Denied: r.Denied})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.addresses.permit(addr); got != r.Allowed {
			t.Errorf("%s (%s): allowed %v, want %v", r.Address, r.Why, got, r.Allowed)
		}
		network := "tcp4"
		if addr.Is6() {
			network = "tcp6"
		}
		refusal := g.checkDial(network, netip.AddrPortFrom(addr, 443).String())
		if (refusal == nil) != r.Allowed {
			t.Errorf("connecting to %s (%s): %v, want allowed %v", r.Address, r.Why, refusal, r.Allowed)
		}
		if refusal != nil && !errors.Is(refusal, ErrBlocked) {
			t.Errorf("connecting to %s: %v is not ErrBlocked", r.Address, refusal)
		}
		if b := g.checkDial(network, netip.AddrPortFrom(addr, 8080).String()); b == nil {
			t.Errorf("connecting to port 8080 of %s is allowed", r.Address)
		}
	}
}

func TestGuardRefusesOtherNetworks(t *testing.T) {
	g, _ := newGuard(EgressPolicy{})
	for _, network := range []string{"udp4", "udp6", "tcp", "unix", ""} {
		if b := g.checkDial(network, "8.8.8.8:443"); b == nil {
			t.Errorf("%q is allowed", network)
		}
	}
	if b := g.checkDial("tcp4", "labels.example:443"); b == nil {
		t.Error("a name is allowed where an address belongs")
	}
}

func TestGuardURLs(t *testing.T) {
	type row struct{ Base, Link, Leads, Why, URL string }
	for _, r := range readTable[row](t, "guard_urls.json", 40) {
		if r.Base == "" {
			r.Base = "https://api.carrier.example/v1"
		}
		d, err := New(WithBaseURL(r.Base))
		if err != nil {
			t.Fatal(err)
		}
		leads, got := "", ""
		u, own, err := d.resolveLink(r.Link)
		if err == nil && !own {
			g, _ := newGuard(EgressPolicy{})
			err = g.check(u)
		}
		switch {
		case errors.Is(err, ErrBlocked):
			leads = "blocked"
		case err != nil:
			leads = "invalid"
		case own:
			leads, got = "own", u.String()
		default:
			leads, got = "foreign", u.String()
		}
		if leads != r.Leads {
			t.Errorf("%q (%s): leads to %s (%s, %v), want %s", printable(r.Link, 100), r.Why, leads, got, err, r.Leads)
		}
		if r.URL != "" && got != r.URL {
			t.Errorf("%q (%s): is %s, want %s", r.Link, r.Why, got, r.URL)
		}
	}
}

// Whatever a link is, it leads to the origin of the base URL as that is
// written, or to another origin with a plain host, or nowhere.
func FuzzLink(f *testing.F) {
	raw, err := os.ReadFile("testdata/guard_urls.json")
	if err != nil {
		f.Fatal(err)
	}
	var rows []struct{ Link string }
	if err := json.Unmarshal(raw, &rows); err != nil {
		f.Fatal(err)
	}
	for _, r := range rows {
		f.Add(r.Link)
	}
	d, err := New(WithBaseURL("https://api.carrier.example/v1"))
	if err != nil {
		f.Fatal(err)
	}
	g, _ := newGuard(EgressPolicy{})
	f.Fuzz(func(t *testing.T, link string) {
		u, own, err := d.resolveLink(link)
		if err != nil {
			return
		}
		if u.User != nil || u.Opaque != "" || u.Fragment != "" {
			t.Fatalf("%q leads to %s", link, u)
		}
		again, err := url.Parse(u.String())
		if err != nil || sameOrigin(d.baseURL, again) != own {
			t.Fatalf("%q leads to %s, which is of the own origin: %v; %v", link, u, !own, err)
		}
		if own {
			if u.Scheme != "https" || u.Host != "api.carrier.example" {
				t.Fatalf("%q leads home by %s", link, u)
			}
			return
		}
		if g.check(u) != nil {
			return
		}
		host, addr, err := parseHost(u.Hostname())
		if err != nil || u.Scheme != "https" || addr.IsValid() && !g.addresses.permit(addr) {
			t.Fatalf("%q is let through to %s (%s, %v)", link, u, host, err)
		}
		for i := 0; i < len(u.Host); i++ {
			if u.Host[i] <= ' ' || u.Host[i] >= 0x7f {
				t.Fatalf("%q is let through to %q", link, u.Host)
			}
		}
	})
}

func TestGuardHosts(t *testing.T) {
	g, err := newGuard(EgressPolicy{
		Hosts: []string{"Labels.Carrier.example.", "*.cdn.example", "192.0.2.7"}, Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"labels.carrier.example": true, "cdn.example": false, "a.cdn.example": true, "a.b.cdn.example": true,
		"xcdn.example": false, "labels.carrier.example.evil.example": false, "192.0.2.7": true, "192.0.2.8": false,
	} {
		if err := g.check(&url.URL{Scheme: "https", Host: host}); (err == nil) != want || err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v, want allowed %v", host, err, want)
		}
	}
}

func TestGuardPolicyIsChecked(t *testing.T) {
	for name, p := range map[string]EgressPolicy{
		"no host":          {Hosts: []string{""}},
		"a URL for a host": {Hosts: []string{"https://labels.example"}},
		"host with a port": {Hosts: []string{"labels.example:443"}},
		"a star inside":    {Hosts: []string{"labels.*.example"}},
		"a zero prefix":    {Prefixes: []netip.Prefix{{}}},
		"a mapped prefix":  {Denied: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		"port 0":           {Ports: []uint16{443, 0}},
	} {
		for option, make := range map[string]func(EgressPolicy) Option{"WithEgressGuard": WithEgressGuard, "WithLinkGuard": WithLinkGuard} {
			if _, err := New(make(p)); !errors.Is(err, ErrInvalidRequest) {
				t.Errorf("%s with %s: %v, want ErrInvalidRequest", option, name, err)
			}
		}
	}
}

// The longest names that there can be, and one more; every letter that a name can have.
func TestLongestHosts(t *testing.T) {
	label := strings.Repeat("a", 63)
	name := label + "." + label + "." + label + "." + label // 255
	for _, test := range []struct {
		host  string
		valid bool
	}{
		{"abcdefghijklmnopqrstuvwxyz.example", true},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZ.example", true},
		{"0123456789-_.example", true},
		{"a`.example", false}, {"a{.example", false}, {"a@.example", false}, {"a[.example", false}, {"a/.example", false},
		{label + ".example", true}, {label + "a.example", false},
		{name[:253], true}, {name[:254], false}, {name[:253] + ".", true},
		{"", false}, {".", false}, {"a..b", false},
	} {
		host, _, err := parseHost(test.host)
		if (err == nil) != test.valid {
			t.Errorf("%d letters, %q: %v, want valid %v", len(test.host), test.host, err, test.valid)
		}
		if want := strings.ToLower(strings.TrimSuffix(test.host, ".")); test.valid && host != want {
			t.Errorf("%q is read as %q, want %q", test.host, host, want)
		}
	}
}
