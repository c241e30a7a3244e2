package resilience

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	defaultMaxConns  = 256
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
)

// newTransport returns our own transport. It may open c.maxConns connections to
// a host, and keeps as many idle: net/http's default of 2 makes most calls of a
// busy client dial anew. Its limits on dialling are spare ropes: the attempt's
// own time limit rules.
func newTransport(c *config) *http.Transport {
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: counted(newDialer().DialContext),
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: c.rootCAs, GetClientCertificate: offer(c.certificates),
		},
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        c.maxConns,
		MaxIdleConnsPerHost:    c.maxConns,
		MaxIdleConns:           0,
		IdleConnTimeout:        idleConnTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: c.limits.headerBytes(),
	}
}

// setUpTransport chooses what requests go through.
func (d *Doer) setUpTransport() error {
	c := d.config
	switch {
	case c.guard != nil:
		if d.baseURL != nil {
			if err := c.guard.check(d.baseURL); err != nil {
				return fmt.Errorf("base URL: %w", err)
			}
		}
		if d.guarded = newGuarded(c.guard, c); d.guarded == nil {
			return invalid("WithEgressGuard: the RoundTripper of WithTransport cannot be guarded; only an *http.Transport without DialTLS, DialTLSContext and Dial can")
		}
		d.base, d.evident = d.guarded, true
		if c.transport == nil {
			d.own = d.guarded.direct
		}
	case c.transport != nil:
		d.base = c.transport
		_, d.evident = c.transport.(*http.Transport)
	default:
		d.own = newTransport(c)
		d.base, d.evident = d.own, true
	}
	return nil
}

// closeIdle closes the idle connections of what we made ourselves.
func (d *Doer) closeIdle() {
	switch {
	case d.guarded != nil:
		d.guarded.CloseIdleConnections()
	case d.own != nil:
		d.own.CloseIdleConnections()
	}
}

// headerLimit is what the transport takes of an answer's header.
func (d *Doer) headerLimit() int64 {
	t := d.own
	if t == nil {
		t, _ = d.config.transport.(*http.Transport)
	}
	if t == nil || t.MaxResponseHeaderBytes <= 0 {
		return 10 << 20 // net/http's own
	}
	return t.MaxResponseHeaderBytes
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
}

// counted notes the evidence: that dialling began, and what is written.
func counted(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if e, ok := ctx.Value(evidenceKey{}).(*evidence); ok {
			e.dialed.Store(true)
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countingConn{Conn: c}, nil
	}
}

type evidenceKey struct{}
