package resilience

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	defaultMaxConns   = 256
	dialTimeout       = 10 * time.Second
	handshakeTimeout  = 10 * time.Second
	idleConnTimeout   = 90 * time.Second
	maxResponseHeader = 1 << 20
)

// newTransport returns our own transport. It may open conns connections to a
// host, and keeps as many idle: net/http's default of 2 makes most calls of a
// busy client dial anew. Its limits on dialling are spare ropes: the attempt's
// own time limit rules.
func newTransport(conns int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if e, ok := ctx.Value(evidenceKey{}).(*evidence); ok {
				e.dialed.Store(true)
			}
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: c}, nil
		},
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    conns,
		MaxIdleConns:           0,
		IdleConnTimeout:        idleConnTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

type evidenceKey struct{}
