package resilience

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// nameServer answers every question for an address with the next of its
// answers, and then with the last one again and again: as a name server of an
// attacker's would, to show one address to who checks and another to who connects.
type nameServer struct {
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   int
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go s.serve(server)
		return client, nil
	}}
}

func (s *nameServer) serve(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		answer := s.answer(question)
		binary.BigEndian.PutUint16(size[:], uint16(len(answer)))
		if _, err := c.Write(append(size[:], answer...)); err != nil {
			return
		}
	}
}

// answer is in the format of RFC 1035, section 4.
func (s *nameServer) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	kind := binary.BigEndian.Uint16(question[end+1:])
	end += 5
	out := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end]...)
	if kind != 1 { // A
		return out
	}
	s.mu.Lock()
	addrs := s.answers[min(s.asked, len(s.answers)-1)]
	s.asked++
	s.mu.Unlock()
	out[7] = byte(len(addrs))
	for _, addr := range addrs {
		ip := addr.As4()
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ip[0], ip[1], ip[2], ip[3])
	}
	return out
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// witness counts what arrives at it, on an address of loopback.
func witness(t *testing.T, host string) (port uint16, hits func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("%s cannot be listened on: %v", host, err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		_, _ = io.WriteString(w, "arrived at "+r.Host)
	})}}
	s.Start()
	t.Cleanup(s.Close)
	return uint16(l.Addr().(*net.TCPAddr).Port), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// onlyLoopback2 stands for the public internet.
var onlyLoopback2 = netip.MustParsePrefix("127.0.0.2/32")

// fetcher returns a client whose links of other origins look names up at ns.
func fetcher(t *testing.T, ns *nameServer, p EgressPolicy, opts ...Option) *Doer {
	t.Helper()
	d, err := New(append([]Option{WithBaseURL("https://api.carrier.example/v1"), WithLinkGuard(p)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	l, err := d.foreign()
	if err != nil {
		t.Fatal(err)
	}
	l.guarded.guard.resolver = ns.resolver()
	return d
}

func TestRebindingDoesNotPass(t *testing.T) {
	port, hits := witness(t, "127.0.0.2")
	internal, internalHits := witness(t, "127.0.0.1")
	for _, test := range []struct {
		name    string
		port    uint16
		answers [][]netip.Addr
		arrives bool
	}{
		{"an allowed address", port, [][]netip.Addr{addrs("127.0.0.2")}, true},
		{"an internal address", internal, [][]netip.Addr{addrs("127.0.0.1")}, false},
		{"metadata", port, [][]netip.Addr{addrs("169.254.169.254")}, false},
		{"several internal addresses", internal, [][]netip.Addr{addrs("10.0.0.1", "127.0.0.1", "192.168.0.1")}, false},
		{"an internal and an allowed address", port, [][]netip.Addr{addrs("127.0.0.1", "127.0.0.2")}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, beforeInternal := hits(), internalHits()
			d := fetcher(t, &nameServer{answers: test.answers}, EgressPolicy{
				Prefixes: []netip.Prefix{onlyLoopback2}, Ports: []uint16{port, internal}, PlainHTTP: true,
			})
			link := (&url.URL{Scheme: "http", Host: net.JoinHostPort("labels.example", itoa(test.port)), Path: "/x"}).String()
			s, err := d.Fetch(t.Context(), link)
			if test.arrives {
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(s)
				_ = s.Close()
				if !strings.HasPrefix(string(body), "arrived at labels.example:") || hits() != before+1 {
					t.Errorf("got %q, and %d requests arrived", body, hits()-before)
				}
			} else if !errors.Is(err, ErrBlocked) {
				t.Errorf("got %v, want ErrBlocked", err)
			}
			if internalHits() != beforeInternal {
				t.Error("a request arrived at an internal address")
			}
		})
	}

	t.Run("the address changes between two fetches", func(t *testing.T) {
		ns := &nameServer{answers: [][]netip.Addr{addrs("127.0.0.2"), addrs("127.0.0.1")}}
		d := fetcher(t, ns, EgressPolicy{Prefixes: []netip.Prefix{onlyLoopback2}, Ports: []uint16{port}, PlainHTTP: true})
		d.linked.guarded.direct.DisableKeepAlives = true
		link := "http://rebind.example:" + itoa(port) + "/x"
		s, err := d.Fetch(t.Context(), link)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if _, err := d.Fetch(t.Context(), link); !errors.Is(err, ErrBlocked) {
			t.Errorf("after the name was bound anew: %v, want ErrBlocked", err)
		}
	})
}

func itoa(port uint16) string { return netip.AddrPortFrom(netip.IPv4Unspecified(), port).String()[8:] }

// A dialer of the user's is given addresses that were judged, and no names: one
// that looks a name up itself could be told another address.
func TestUsersDialerIsGivenAddresses(t *testing.T) {
	port, _ := witness(t, "127.0.0.2")
	var mu sync.Mutex
	var dialed []string
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialed = append(dialed, address)
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	ns := &nameServer{answers: [][]netip.Addr{addrs("10.0.0.1", "127.0.0.2"), addrs("10.0.0.1")}}
	d := fetcher(t, ns, EgressPolicy{Prefixes: []netip.Prefix{onlyLoopback2}, Ports: []uint16{port}, PlainHTTP: true}, WithTransport(transport))
	s, err := d.Fetch(t.Context(), "http://labels.example:"+itoa(port)+"/x")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, s)
	_ = s.Close()
	if want := "127.0.0.2:" + itoa(port); len(dialed) != 1 || dialed[0] != want {
		t.Errorf("the dialer was given %v, want %s alone", dialed, want)
	}
	d.linked.guarded.CloseIdleConnections()
	if _, err := d.Fetch(t.Context(), "http://labels.example:"+itoa(port)+"/x"); !errors.Is(err, ErrBlocked) {
		t.Errorf("with an internal address alone: %v, want ErrBlocked", err)
	}
}

// proxyServer is a forward proxy that notes what it is asked for. Whatever that
// is, it answers plain http itself, and leads a tunnel to the server behind.
func proxyServer(t *testing.T, behind string) (at *url.URL, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Method+" "+r.Host)
		mu.Unlock()
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "from the proxy")
			return
		}
		out, err := net.Dial("tcp", behind)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(out, in)
			_ = out.Close()
		}()
		_, _ = io.Copy(in, out)
	}))
	t.Cleanup(s.Close)
	at, _ = url.Parse(s.URL)
	return at, func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), seen...) }
}

// tlsWitness is a server with a certificate for example.com.
func tlsWitness(t *testing.T) (address string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "arrived at "+r.Host)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.Listener.Addr().String(), roots
}

func TestGuardBehindProxy(t *testing.T) {
	server, roots := tlsWitness(t)
	plain := EgressPolicy{PlainHTTP: true}
	trusting := EgressPolicy{PlainHTTP: true, TrustProxy: true}
	for _, test := range []struct {
		name    string
		answers []netip.Addr
		policy  EgressPolicy
		link    string
		want    string // what the proxy is asked for; "": the link is blocked
		body    string
	}{
		{"a public name", addrs("93.184.216.34"), EgressPolicy{}, "https://example.com/x", "CONNECT 93.184.216.34:443", "arrived at example.com"},
		{"a name with an internal address as well", addrs("10.0.0.1", "93.184.216.34"), EgressPolicy{}, "https://example.com/x", "CONNECT 93.184.216.34:443", "arrived at example.com"},
		{"a public address, without a certificate for it", nil, EgressPolicy{}, "https://93.184.216.34/x", "CONNECT 93.184.216.34:443", ""},
		{"another name than the certificate's", addrs("93.184.216.34"), EgressPolicy{}, "https://labels.example/x", "CONNECT 93.184.216.34:443", ""},
		{"an internal name", addrs("10.0.0.1"), EgressPolicy{}, "https://example.com/x", "", ""},
		{"an internal address", nil, EgressPolicy{}, "https://10.0.0.1/x", "", ""},
		{"plain http", addrs("93.184.216.34"), plain, "http://labels.example/x", "", ""},
		{"metadata, although the proxy is trusted", nil, trusting, "http://169.254.169.254/x", "", ""},
		{"any name, if the proxy is trusted", addrs("10.0.0.1"), trusting, "http://labels.example/x", "GET labels.example", "from the proxy"},
		{"any name by https, if the proxy is trusted", addrs("10.0.0.1"), trusting, "https://example.com/x", "CONNECT example.com:443", "arrived at example.com"},
	} {
		t.Run(test.name, func(t *testing.T) {
			at, asked := proxyServer(t, server)
			transport := &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots}}
			d := fetcher(t, &nameServer{answers: [][]netip.Addr{test.answers}}, test.policy, WithTransport(transport), WithoutRetry())
			s, err := d.Fetch(t.Context(), test.link)
			body := ""
			if err == nil {
				b, _ := io.ReadAll(s)
				_ = s.Close()
				body = string(b)
			}
			if (test.want == "") != errors.Is(err, ErrBlocked) || body != test.body {
				t.Errorf("got %q, %v", body, err)
			}
			if got := strings.Join(asked(), "; "); got != test.want {
				t.Errorf("the proxy was asked for %q, want %q", got, test.want)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProxyByHTTPSNeedsTrust(t *testing.T) {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "https", Host: "127.0.0.1:1"})}
	d := fetcher(t, &nameServer{answers: [][]netip.Addr{addrs("93.184.216.34")}}, EgressPolicy{}, WithTransport(transport))
	if _, err := d.Fetch(t.Context(), "https://labels.example/x"); !errors.Is(err, ErrBlocked) || !strings.Contains(err.Error(), "TrustProxy") {
		t.Errorf("got %v, want ErrBlocked that names TrustProxy", err)
	}
}

// A name that cannot be looked up behind a proxy is no fault of the request.
func TestLookupBehindProxyFails(t *testing.T) {
	at, asked := proxyServer(t, "")
	d := fetcher(t, &nameServer{answers: [][]netip.Addr{nil}}, EgressPolicy{}, WithTransport(&http.Transport{Proxy: http.ProxyURL(at)}))
	_, err := d.Fetch(t.Context(), "https://labels.example/x")
	var e *Error
	if !errors.As(err, &e) || errors.Is(err, ErrInvalidRequest) || e.Outcome != OutcomeNotSent || !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable, not sent", err)
	}
	if got := asked(); got != nil {
		t.Errorf("the proxy was asked for %q", got)
	}
}

func TestManyHostsBehindProxy(t *testing.T) {
	server, _ := tlsWitness(t)
	at, asked := proxyServer(t, server)
	d := fetcher(t, &nameServer{answers: [][]netip.Addr{addrs("93.184.216.34")}}, EgressPolicy{}, WithoutBreaker(),
		WithTransport(&http.Transport{Proxy: http.ProxyURL(at)}))
	const hosts = 2 * maxPinned
	for i := range hosts {
		if _, err := d.Fetch(t.Context(), "https://h"+itoa(uint16(i+1))+".example/x"); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Fatal(err)
		}
	}
	if n := len(asked()); n != hosts {
		t.Errorf("the proxy was asked %d times, want %d", n, hosts)
	}
	if n := len(d.linked.guarded.pinned); n > maxPinned {
		t.Errorf("connections for %d hosts are kept, want at most %d", n, maxPinned)
	}
}

// A host has several addresses so that one may be down. The dialer is given
// each that the guard lets through, and the first error is the one that counts.
func TestUsersDialerIsGivenEachAddress(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		down    string // addresses that do not answer, and why
		dialed  string
		err     string
	}{
		"the first answers":     {"labels.example:443", "", "93.184.216.34:443", ""},
		"the second answers":    {"labels.example:443", "93.184.216.34:443", "93.184.216.34:443 93.184.216.35:443", ""},
		"none answers":          {"labels.example:443", "93.184.216.34:443 93.184.216.35:443", "93.184.216.34:443 93.184.216.35:443", "93.184.216.34:443 is down"},
		"a blocked address":     {"10.0.0.1:443", "", "", "blocked"},
		"no port":               {"labels.example", "", "", "missing port"},
		"an address of its own": {"93.184.216.36:8443", "", "93.184.216.36:8443", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGuard(EgressPolicy{})
			if err != nil {
				t.Fatal(err)
			}
			g.resolver = (&nameServer{answers: [][]netip.Addr{addrs("93.184.216.34", "10.0.0.1", "93.184.216.35")}}).resolver()
			var dialed []string
			conn, err := g.dialBy(func(_ context.Context, _, address string) (net.Conn, error) {
				dialed = append(dialed, address)
				if strings.Contains(test.down, address) {
					return nil, errors.New(address + " is down")
				}
				return &net.TCPConn{}, nil
			})(t.Context(), "tcp", test.address)
			if got := strings.Join(dialed, " "); got != test.dialed {
				t.Errorf("dialled %q, want %q", got, test.dialed)
			}
			if (err == nil) != (test.err == "") || (conn == nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, %v; want %q", conn, err, test.err)
			}
		})
	}
}

// A connection through a proxy is made once for a host, and used again.
func TestConnectionThroughProxyIsReused(t *testing.T) {
	server, roots := tlsWitness(t)
	for name, transport := range map[string]*http.Transport{
		"HTTP/2":   {ForceAttemptHTTP2: true},
		"HTTP/1.1": {TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}},
	} {
		t.Run(name, func(t *testing.T) {
			at, asked := proxyServer(t, server)
			transport.Proxy, transport.TLSClientConfig = http.ProxyURL(at), &tls.Config{RootCAs: roots}
			d := fetcher(t, &nameServer{answers: [][]netip.Addr{addrs("93.184.216.34")}}, EgressPolicy{}, WithTransport(transport))
			for range 3 {
				s, err := d.Fetch(t.Context(), "https://example.com/x")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, s)
				_ = s.Close()
			}
			if n := len(asked()); n != 1 {
				t.Errorf("the proxy was asked %d times, want once", n)
			}
		})
	}
}

func TestProxyThatCannotBeFound(t *testing.T) {
	transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("no proxy today") }}
	d := fetcher(t, &nameServer{}, EgressPolicy{}, WithTransport(transport), WithoutRetry())
	_, err := d.Fetch(t.Context(), "https://labels.example/x")
	if err == nil || errors.Is(err, ErrBlocked) || !strings.Contains(err.Error(), "no proxy today") {
		t.Errorf("got %v", err)
	}
}

// A host that is down is no refusal of the guard, unless another of its
// addresses was refused.
func TestGuardedHostThatIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("127.0.0.2 cannot be listened on: %v", err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close() // nobody is there now
	for name, test := range map[string]struct {
		addrs   []netip.Addr
		blocked bool
	}{
		"down":                      {addrs("127.0.0.2"), false},
		"refused":                   {addrs("127.0.0.1"), true},
		"refused, and another down": {addrs("127.0.0.1", "127.0.0.2"), true},
		"down, and another refused": {addrs("127.0.0.2", "127.0.0.1"), true},
	} {
		d := fetcher(t, &nameServer{answers: [][]netip.Addr{test.addrs}}, EgressPolicy{
			Prefixes: []netip.Prefix{onlyLoopback2}, Ports: []uint16{port}, PlainHTTP: true,
		}, WithoutRetry())
		_, err := d.Fetch(t.Context(), "http://labels.example:"+itoa(port)+"/x")
		var e *Error
		if !errors.As(err, &e) || e.Outcome != OutcomeNotSent || errors.Is(err, ErrBlocked) != test.blocked || errors.Is(err, ErrUnavailable) == test.blocked {
			t.Errorf("%s: %v, want blocked %v", name, err, test.blocked)
		}
	}
}

// The guarded copy of a transport speaks what the transport would, but over
// connections of its own.
func TestGuardedCopySpeaksTheSameProtocol(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	port := uint16(s.Listener.Addr().(*net.TCPAddr).Port)
	foreign := map[string]func(string, *tls.Conn) http.RoundTripper{"h2": func(string, *tls.Conn) http.RoundTripper {
		t.Error("a connection went to the user's own HTTP/2")
		return nil
	}}
	for name, test := range map[string]struct {
		transport *http.Transport
		proto     string
	}{
		"HTTP/2 of the user's":         {&http.Transport{TLSNextProto: foreign}, "HTTP/2.0"},
		"HTTP/2 asked for":             {&http.Transport{ForceAttemptHTTP2: true}, "HTTP/2.0"},
		"HTTP/2 switched off":          {&http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}, "HTTP/1.1"},
		"HTTP/1.1 for a configuration": {&http.Transport{}, "HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			test.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
			d := fetcher(t, &nameServer{answers: [][]netip.Addr{addrs("127.0.0.1")}}, EgressPolicy{
				Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Ports: []uint16{port},
			}, WithTransport(test.transport), WithoutRetry())
			stream, err := d.Fetch(t.Context(), "https://example.com:"+itoa(port)+"/x")
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(stream)
			if _ = stream.Close(); string(got) != test.proto {
				t.Errorf("it speaks %s, want %s", got, test.proto)
			}
		})
	}
}
