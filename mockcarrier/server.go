package mockcarrier

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/memnet"
)

// Server is a carrier that is being served to a test. Use [Start] or
// [StartInMemory] to make one.
type Server struct {
	*Carrier

	// URL is the base URL of the API: "http://127.0.0.1:49812/v1".
	URL string

	host     string // of URL
	addr     net.Addr
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	identity *identity // nil without TLS
	http     *http.Server
	ended    chan struct{} // closed once the listener is done with

	mu         sync.Mutex
	transports []*http.Transport
}

// Start serves a carrier on a free port of the loopback interface until the
// test ends. It then fails the test, with tables, for each expectation that was
// not met and each request that was not expected (see [Carrier.Expect]), for each
// fault that never struck and each request that matched no operation.
//
// For tests in virtual time use [StartInMemory].
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("mockcarrier: no loopback interface: %v", err)
	}
	return start(tb, opts, listener, listener.Addr().String(), new(net.Dialer).DialContext)
}

// StartInMemory is [Start] on a network in memory, which behaves as TCP does:
// connections are buffered, closed and reset, and dials refused. Inside a
// testing/synctest bubble all of it runs in virtual time; the server must be
// started in the bubble that uses it.
//
// Only [Server.Client], [Server.Transport] and [Server.DialContext] reach it.
func StartInMemory(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	listener := memnet.Listen(80)
	return start(tb, opts, listener, memoryHost, listener.DialContext)
}

const memoryHost = "carrier.test"

func start(tb testing.TB, opts []Option, listener net.Listener, host string,
	dial func(context.Context, string, string) (net.Conn, error),
) *Server {
	tb.Helper()
	c, err := newCarrier(opts)
	if err != nil {
		_ = listener.Close()
		tb.Fatal(err)
	}
	s := &Server{Carrier: c, URL: "http://" + host + basePath, host: host, addr: listener.Addr(), dial: dial, ended: make(chan struct{})}
	s.http = &http.Server{
		Handler:     c,
		ConnContext: c.ConnContext,
		ConnState:   c.connState,
		Protocols:   s.protocols(),
		ErrorLog:    slog.NewLogLogger(c.config.logger.Handler(), slog.LevelDebug),
	}
	if c.config.tls {
		s.URL = "https://" + host + basePath
		s.identity, err = newIdentity(time.Now())
		if err != nil {
			_ = listener.Close()
			tb.Fatal(err)
		}
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{s.identity.certificate}}
	}
	go func() {
		defer close(s.ended)
		if c.config.tls {
			_ = s.http.ServeTLS(c.Listener(listener), "", "")
		} else {
			_ = s.http.Serve(c.Listener(listener))
		}
	}()
	tb.Cleanup(func() {
		tb.Helper()
		s.Close()
		s.verify(tb)
	})
	return s
}

// connState counts connections until they are closed or taken over.
func (c *Carrier) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.running.enter()
	case http.StateClosed, http.StateHijacked:
		c.running.leave()
	}
}

func (s *Server) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!s.config.http2)
	p.SetHTTP2(s.config.http2 && s.config.tls)
	p.SetUnencryptedHTTP2(s.config.http2 && !s.config.tls)
	return p
}

// Close ends all requests, closes the connections and returns once nothing is
// left running. Later dials are refused. The end of the test does it too; twice
// is fine.
func (s *Server) Close() {
	s.running.close()
	_ = s.http.Close()
	<-s.ended
	s.mu.Lock()
	transports := s.transports
	s.transports = nil
	s.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	s.running.wait()
}

// Client returns a client that reaches this server and refuses, with an error
// that says so, every other host. It does not follow redirects to one either.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Transport is what [Server.Client] sends with: a fresh [*http.Transport] that
// dials the server and trusts its certificate, behind a check of the host. It
// is for carrier.WithTransport.
func (s *Server) Transport() http.RoundTripper {
	t := &http.Transport{DialContext: s.DialContext, Protocols: s.protocols(), MaxIdleConnsPerHost: 256}
	if s.identity != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.identity.pool}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transports = append(s.transports, t)
	return onlyHost{s.host, t}
}

// DialContext opens a connection to the server. It refuses every other address.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); address != s.host && (err != nil || host != s.host) {
		return nil, elsewhere(address, s.host)
	}
	return s.dialFaulty(ctx, network, address)
}

// CertPool returns a pool with the server's certificate, or nil without
// [WithTLS].
func (s *Server) CertPool() *x509.CertPool {
	if s.identity == nil {
		return nil
	}
	return s.identity.pool
}

// onlyHost refuses requests to other hosts.
type onlyHost struct {
	host string
	*http.Transport
}

// RoundTrip sends a request, if it is for the host.
func (o onlyHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != o.host {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, elsewhere(r.URL.Host, o.host)
	}
	return o.Transport.RoundTrip(r)
}

func elsewhere(to, host string) error {
	return fmt.Errorf("mockcarrier: refused to reach %s: this client reaches only the mock carrier at %s", to, host)
}
