package resilience_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// certAuthority signs certificates.
type certAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *certAuthority {
	t.Helper()
	a := &certAuthority{}
	a.cert, a.key = newCertificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a
}

func (a *certAuthority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// issue makes a certificate for a host, or for a client if host is empty.
func (a *certAuthority) issue(t *testing.T, host string, from, to time.Time) tls.Certificate {
	t.Helper()
	return a.issueFor(t, host, from, to, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// issueFor makes a certificate for some uses alone.
func (a *certAuthority) issueFor(t *testing.T, host string, from, to time.Time, uses ...x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, NotBefore: from, NotAfter: to,
		ExtKeyUsage: uses,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else if host != "" {
		template.DNSNames = []string{host}
	}
	cert, key := newCertificate(t, template, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func newCertificate(t *testing.T, template *x509.Certificate, by *certAuthority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// serveTLS is an API that answers every call, and counts them.
func serveTLS(t *testing.T, config *tls.Config) (baseURL string, calls func() int) {
	t.Helper()
	s := newCountedServer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Certificates", strings.Repeat("c", len(r.TLS.PeerCertificates)))
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	s.server.TLS = config
	s.server.Config.ErrorLog = newQuietLog()
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s.server.URL + "/v1", s.count
}

type countedServer struct {
	server *httptest.Server
	calls  chan struct{}
}

func newCountedServer(h http.HandlerFunc) *countedServer {
	s := &countedServer{calls: make(chan struct{}, 1000)}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls <- struct{}{}
		h(w, r)
	}))
	return s
}

func (s *countedServer) count() int { return len(s.calls) }

func TestTLS(t *testing.T) {
	ca, stranger := newAuthority(t, "one"), newAuthority(t, "another")
	now := time.Now()
	hour := time.Hour
	good := ca.issue(t, "127.0.0.1", now.Add(-hour), now.Add(hour))
	client := ca.issue(t, "", now.Add(-hour), now.Add(hour))
	ended := ca.issue(t, "", now.Add(-2*hour), now.Add(-hour))
	foreign := stranger.issue(t, "", now.Add(-hour), now.Add(hour))
	one := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	mutual := func(version uint16) *tls.Config {
		c := one(good)
		c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, ca.pool(), version
		return c
	}
	refusing := func(version uint16) *tls.Config {
		c := one(good)
		c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, version
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return errors.New("not that one") }
		return c
	}
	old := one(good)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	trusting := resilience.WithRootCAs(ca.pool())
	with := func(certs ...tls.Certificate) []resilience.Option {
		return []resilience.Option{trusting, resilience.WithClientCertificates(certs...)}
	}
	for _, test := range []struct {
		name   string
		server *tls.Config
		opts   []resilience.Option
		text   string // of the error; "": it works
		late   bool   // the server's verdict comes after the handshake, and may get lost
	}{
		{"trusted", one(good), []resilience.Option{trusting}, "", false},
		{"unknown authority", one(good), nil, "TLS: the server's certificate is of an authority that is not trusted here", false},
		{"expired", one(ca.issue(t, "127.0.0.1", now.Add(-48*hour), now.Add(-24*hour))), []resilience.Option{trusting}, "TLS: the server's certificate expired on " + now.Add(-24*hour).UTC().Format(time.DateOnly), false},
		{"not yet valid", one(ca.issue(t, "127.0.0.1", now.Add(24*hour), now.Add(48*hour))), []resilience.Option{trusting}, "TLS: the server's certificate is not valid before " + now.Add(24*hour).UTC().Format(time.DateOnly), false},
		{"another host", one(ca.issue(t, "api.carrier.example", now.Add(-hour), now.Add(hour))), []resilience.Option{trusting}, "TLS: the server's certificate is not for 127.0.0.1", false},
		{"TLS 1.1", old, []resilience.Option{trusting}, "TLS: the server speaks no version of TLS from 1.2 on", false},
		{"mutual", mutual(0), with(client), "", false},
		{"mutual, TLS 1.2", mutual(tls.VersionTLS12), with(client), "", false},
		{"mutual, no certificate", mutual(0), []resilience.Option{trusting}, "TLS: the server asks for a client certificate, and there is none that fits", true},
		{"mutual, no certificate, TLS 1.2", mutual(tls.VersionTLS12), []resilience.Option{trusting}, "TLS: the", false},
		{"mutual, an expired certificate", mutual(0), with(ended), "client certificate", true},
		{"for clients alone", one(ca.issueFor(t, "127.0.0.1", now.Add(-hour), now.Add(hour), x509.ExtKeyUsageClientAuth)), []resilience.Option{trusting}, "TLS: the server's certificate is not valid: ", false},
		{"mutual, refused by the server", refusing(0), with(client), "client certificate", true},
		{"mutual, refused by the server, TLS 1.2", refusing(tls.VersionTLS12), with(client), "TLS: the server did not accept the client certificate", true},
		{"mutual, of another authority", mutual(0), with(foreign), "TLS: the server asks for a client certificate, and there is none that fits", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, calls := serveTLS(t, test.server)
			d := connectTo(t, base, test.opts...)
			for name, call := range map[string]func() error{
				"GET":  func() error { _, err := track(t.Context(), d); return err },
				"POST": func() error { _, err := ship(t.Context(), d, `{}`); return err },
			} {
				err := call()
				if test.text == "" {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				e := failureOf(t, err)
				is(t, err, resilience.ErrUnavailable)
				if !test.late && errors.Is(err, resilience.ErrOutcomeUnknown) {
					t.Errorf("%s: %v", name, err)
				}
				if !test.late && e.Attempts != 1 || !test.late && e.Outcome != resilience.OutcomeNotSent {
					t.Errorf("%s: %d attempts, %v; want 1, not sent", name, e.Attempts, e.Outcome)
				}
				if text := err.Error(); !strings.Contains(text, test.text) || strings.Contains(text, "\n") {
					t.Errorf("%s: %q does not say %q in one line", name, text, test.text)
				}
			}
			if n := calls(); (n > 0) != (test.text == "") {
				t.Errorf("%d calls arrived", n)
			}
		})
	}
}

func TestTLSToPlainServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	d := connectTo(t, strings.Replace(s.URL, "http:", "https:", 1)+"/v1")
	_, err := track(t.Context(), d)
	if e := failureOf(t, err); e.Attempts != 1 || !strings.Contains(err.Error(), "TLS: the server does not speak TLS on this port") {
		t.Errorf("%d attempts: %v", e.Attempts, err)
	}
}

// A client certificate is a credential: it is not for other origins.
func TestClientCertificateStaysAtTheOrigin(t *testing.T) {
	ca := newAuthority(t, "one")
	now := time.Now()
	ask := &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "127.0.0.1", now.Add(-time.Hour), now.Add(time.Hour))},
		ClientAuth:   tls.RequestClientCert,
	}
	client := ca.issue(t, "", now.Add(-time.Hour), now.Add(time.Hour))
	own, _ := serveTLS(t, ask)
	other, _ := serveTLS(t, ask)
	port := netip.MustParseAddrPort(strings.TrimSuffix(strings.TrimPrefix(other, "https://"), "/v1")).Port()
	links := resilience.WithLinkGuard(resilience.EgressPolicy{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{port}})

	mine := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{client}}}
	defer mine.CloseIdleConnections()
	for name, opts := range map[string][]resilience.Option{
		"own transport":    {links, resilience.WithRootCAs(ca.pool()), resilience.WithClientCertificates(client)},
		"user's transport": {links, resilience.WithTransport(mine)},
	} {
		d := connectTo(t, own, opts...)
		for link, want := range map[string]string{own + "/x": "c", other + "/x": ""} {
			s, err := d.Fetch(t.Context(), link)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := s.Header.Get("X-Certificates"); got != want {
				t.Errorf("%s: %s was shown %d certificates, want %d", name, link, len(got), len(want))
			}
			_ = s.Close()
		}
	}

	// Nor is the trust that a user places in the API without looking.
	d := connectTo(t, own, links, resilience.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}))
	_, err := d.Fetch(t.Context(), other+"/x")
	if err == nil || !strings.Contains(err.Error(), "authority that is not trusted") {
		t.Errorf("another origin without a trusted certificate: %v", err)
	}
}

func TestTLSOptionsAreChecked(t *testing.T) {
	ca := newAuthority(t, "one")
	rt := resilience.WithTransport(always(200, `{}`))
	for name, opts := range map[string][]resilience.Option{
		"no pool":                        {resilience.WithRootCAs(nil)},
		"an empty certificate":           {resilience.WithClientCertificates(tls.Certificate{})},
		"a certificate without its key":  {resilience.WithClientCertificates(tls.Certificate{Certificate: ca.issue(t, "", time.Now(), time.Now()).Certificate})},
		"a key without its certificate":  {resilience.WithClientCertificates(tls.Certificate{PrivateKey: ca.key})},
		"roots with a transport":         {resilience.WithRootCAs(ca.pool()), rt},
		"a certificate with a transport": {rt, resilience.WithClientCertificates(ca.issue(t, "", time.Now(), time.Now().Add(time.Hour)))},
	} {
		_, err := resilience.New(opts...)
		if is(t, err, resilience.ErrInvalidRequest); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
