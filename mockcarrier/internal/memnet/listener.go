package memnet

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
)

// Listener accepts the connections that its DialContext opens. Its mutex is
// never held by anyone who waits.
type Listener struct {
	addr *net.TCPAddr

	mu      sync.Mutex
	queue   []*Conn
	dialled int
	closed  bool
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// Listen returns a listener that says that its address is 127.0.0.1 and port.
// No other listener, and no port of the machine, is in its way.
func Listen(port int) *Listener {
	return &Listener{addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return l.addr }

// Accept waits for the next connection. It fails with [net.ErrClosed] once the
// listener is closed.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed {
		if len(l.queue) > 0 {
			conn := l.queue[0]
			l.queue = l.queue[1:]
			return conn, nil
		}
		l.wait()
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
}

// Close refuses later dials, resets the connections that were not accepted yet
// and leaves the others alone. It returns nil, also when called again.
func (l *Listener) Close() error {
	l.mu.Lock()
	waiting := l.queue
	l.queue, l.closed = nil, true
	l.wake()
	l.mu.Unlock()
	for _, conn := range waiting {
		_ = conn.Reset()
	}
	return nil
}

// DialContext opens a connection to the listener, whatever the address given.
// It does not wait for Accept. It fails with syscall.ECONNREFUSED once the
// listener is closed, and with the context's error if that has ended.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: l.addr, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	const firstPort, ports = 49152, 16384 // the dynamic ports
	client := &net.TCPAddr{IP: l.addr.IP, Port: firstPort + l.dialled%ports}
	l.dialled++
	near, far := pair(client, l.addr)
	l.queue = append(l.queue, far)
	l.wake()
	return near, nil
}

// wait returns after the next change. It is called with the mutex held, and
// gives it up meanwhile.
func (l *Listener) wait() {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	changed := l.changed
	l.mu.Unlock()
	<-changed
	l.mu.Lock()
}

func (l *Listener) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
