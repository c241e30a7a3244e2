package mockcarrier

import (
	"context"
	"net"
	"sync"
)

// running counts what is going on, so that a close can wait for its end.
type running struct {
	closing chan struct{}   // closed once the carrier closes
	ctx     context.Context // ends then
	cancel  context.CancelFunc

	mu    sync.Mutex
	count int
	conns map[net.Conn]struct{} // taken over from the HTTP server
	idle  chan struct{}         // closed when count reaches zero; nil if nobody waits
}

func newRunning() *running {
	ctx, cancel := context.WithCancel(context.Background())
	return &running{closing: make(chan struct{}), ctx: ctx, cancel: cancel, conns: make(map[net.Conn]struct{})}
}

func (r *running) closed() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

func (r *running) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	if r.count == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

func (r *running) adopt(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed() {
		_ = conn.Close()
		return
	}
	r.conns[conn] = struct{}{}
}

func (r *running) forget(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// close ends waits and stalls, and closes the connections that were taken over.
func (r *running) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed() {
		return
	}
	close(r.closing)
	r.cancel()
	for conn := range r.conns {
		_ = conn.Close()
	}
}

// wait returns once nothing is going on.
func (r *running) wait() {
	r.mu.Lock()
	if r.count == 0 {
		r.mu.Unlock()
		return
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	<-idle
}
