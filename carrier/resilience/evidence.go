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
	hooked bool         // the transport is net/http's
	mutual atomic.Int32 // what its handshake did when asked for a client certificate
	conn   atomic.Pointer[countingConn]
	before atomic.Int64 // bytes written on conn when the attempt got it
	twice  atomic.Bool  // net/http has sent again what may have arrived

	stop    func()      // ends the attempt before net/http sends again what must not be; nil if it may
	stopped atomic.Bool // it did
	h2      atomic.Bool // the connection is one of HTTP/2
	wroteH2 atomic.Bool // and headers went out on it
}

// watch returns ctx with the hooks of e.
func (e *evidence) watch(ctx context.Context) context.Context {
	e.trace.GetConn = e.onGetConn
	e.trace.GotConn = e.onGotConn
	if e.stop != nil {
		e.trace.WroteHeaders = e.onWroteHeaders
	}
	return httptrace.WithClientTrace(ctx, &e.trace)
}

func (e *evidence) onGetConn(string) { e.asked.Add(1) }

func (e *evidence) onGotConn(info httptrace.GotConnInfo) {
	if e.wroteH2.Load() {
		// Without a body, net/http sends any request again after some faults of
		// HTTP/2. It looks at the context before it does.
		e.stopped.Store(true)
		e.stop()
		return
	}
	if e.got.Add(1) > 1 && !e.untouched() {
		e.twice.Store(true)
	}
	conn := info.Conn
	if t, ok := conn.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			e.h2.Store(true)
			e.conn.Store(nil)
			return // many requests share the connection's bytes
		}
		conn = t.NetConn()
	}
	if c, ok := conn.(*countingConn); ok {
		e.before.Store(c.written.Load())
		e.conn.Store(c)
	}
}

// onWroteHeaders is hooked only where a second sending must be stopped.
func (e *evidence) onWroteHeaders() { e.wroteH2.Store(e.h2.Load()) }

// notConnected holds if provably no connection was got: one was asked for, or
// the transport is one that never sends without its hooks.
func (e *evidence) notConnected() bool {
	return e.got.Load() == 0 && (e.hooked || e.asked.Load() > 0)
}

// neverAsked holds if not even a connection was asked for. A request on a known
// HTTP/2 connection may have got one unasked.
func (e *evidence) neverAsked() bool { return e.asked.Load() == 0 && e.got.Load() == 0 }

// notSent holds if provably not one byte of the request was sent.
func (e *evidence) notSent() bool {
	return e.notConnected() || !e.twice.Load() && e.untouched()
}

// untouched holds if provably not one byte was sent on the newest connection.
func (e *evidence) untouched() bool {
	c := e.conn.Load()
	return c != nil && c.written.Load() == e.before.Load()
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
