package mockcarrier

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
)

// dials are the connections that [Server.DialContext] is making: what is to
// become of each was decided when it was dialled, and the listener is not to
// decide again.
type dials struct {
	mu      sync.Mutex
	decided []*Fault
}

func (d *dials) push(f *Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decided = append(d.decided, f)
}

// pop returns what was decided for the connection that has come, or nil if
// somebody else has dialled.
func (d *dials) pop() *Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.decided) == 0 {
		return nil
	}
	f := d.decided[0]
	d.decided = d.decided[1:]
	return f
}

// drop takes back a decision whose dial has failed.
func (d *dials) drop(f *Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.decided, f); i >= 0 {
		d.decided = slices.Delete(d.decided, i, i+1)
	}
}

// dialFaulty makes a connection to the server, unless a fault is in its way.
func (s *Server) dialFaulty(ctx context.Context, network, address string) (net.Conn, error) {
	f, _ := s.rules.pickConnection(s.now())
	switch f.Kind {
	case KindRefuse:
		return nil, s.dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	case KindBlackhole:
		select {
		case <-ctx.Done():
			return nil, s.dialError(ctx.Err())
		case <-s.running.closing:
			return nil, s.dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))
		}
	}
	s.dials.push(&f)
	conn, err := s.dial(ctx, network, address)
	if err != nil {
		s.dials.drop(&f)
	}
	return conn, err
}

func (s *Server) dialError(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: s.addr, Err: err}
}

// Listener returns l with the faults of connections in force on what it
// accepts; see [RefuseConnection]. It is for an [net/http.Server] that has the
// carrier as its handler. [Start] and [StartInMemory] have done it.
func (c *Carrier) Listener(l net.Listener) net.Listener { return faultyListener{l, c} }

type faultyListener struct {
	net.Listener
	carrier *Carrier
}

// Accept returns the next connection that no fault keeps back.
func (l faultyListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var f Fault
		if decided := l.carrier.dials.pop(); decided != nil {
			f = *decided
		} else {
			f, _ = l.carrier.rules.pickConnection(l.carrier.now())
		}
		switch f.Kind {
		case KindRefuse:
			end(conn, true)
		case KindBlackhole:
			l.carrier.running.adopt(conn)
		case KindHandshake:
			return alertingConn{conn}, nil
		default:
			return conn, nil
		}
	}
}

// alertingConn answers the first bytes that come with a fatal TLS alert.
type alertingConn struct{ net.Conn }

// handshakeFailure is a TLS record (RFC 8446, sections 5.1 and 6): an alert,
// fatal, handshake_failure.
var handshakeFailure = []byte{21, 3, 3, 0, 2, 2, 40}

// Read takes the first bytes, sends the alert and closes.
func (c alertingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		_, _ = c.Conn.Write(handshakeFailure)
		n, err = 0, io.EOF
	}
	_ = c.Conn.Close()
	return n, err
}
