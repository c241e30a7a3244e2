package resilience

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// evidence is what shows whether an attempt can have reached the carrier.
// WroteHeaders and WroteRequest prove nothing: both fire before the first byte
// leaves. What proves "not sent" is a connection that was asked for and never
// got, or an HTTP/1 connection on whose socket not one byte was written.
//
// Hooks can fire after the attempt has ended, so each attempt has its own.
type evidence struct {
	trace  httptrace.ClientTrace
	asked  atomic.Int32 // connections asked for
	got    atomic.Int32 // connections got: more than one is net/http sending again
	dialed atomic.Bool  // our own transport began to dial for it
	conn   atomic.Pointer[countingConn]
	before atomic.Int64 // bytes written on conn when the attempt got it
}

// watch returns ctx with the hooks of e.
func (e *evidence) watch(ctx context.Context) context.Context {
	e.trace.GetConn = e.onGetConn
	e.trace.GotConn = e.onGotConn
	return httptrace.WithClientTrace(ctx, &e.trace)
}

func (e *evidence) onGetConn(string) { e.asked.Add(1) }

func (e *evidence) onGotConn(info httptrace.GotConnInfo) {
	e.got.Add(1)
	conn := info.Conn
	if t, ok := conn.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return // many requests share the connection's bytes
		}
		conn = t.NetConn()
	}
	if c, ok := conn.(*countingConn); ok {
		e.before.Store(c.written.Load())
		e.conn.Store(c)
	}
}

// notConnected holds if a connection was asked for and none was got.
func (e *evidence) notConnected() bool { return e.asked.Load() > 0 && e.got.Load() == 0 }

// notSent holds if provably not one byte of the request was sent.
func (e *evidence) notSent() bool {
	if e.notConnected() {
		return true
	}
	c := e.conn.Load()
	return c != nil && e.got.Load() == 1 && c.written.Load() == e.before.Load()
}

// countingConn counts the bytes that a connection of our own transport wrote.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// ReadFrom keeps the way from a file to a socket without a copy open.
func (c *countingConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(c.Conn, r)
	c.written.Add(n)
	return n, err
}
