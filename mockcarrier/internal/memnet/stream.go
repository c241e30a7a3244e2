package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is how many bytes one direction of a connection holds before a
// write waits for a read.
const bufferSize = 64 << 10

// stream is one direction of a connection. Its mutex is never held by anyone
// who waits.
type stream struct {
	mu      sync.Mutex
	buf     []byte
	start   int           // of what is unread in buf
	changed chan struct{} // closed at the next change; nil if nobody waits

	readDeadline, writeDeadline time.Time

	readerClosed bool // the reading end was closed
	writerClosed bool // the writing end was closed
	finished     bool // no more bytes will come: EOF once all is read
	reset        bool // the connection was reset by one of its ends
	ignoredWrite bool // one write to a closed reader was taken, as TCP does
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readerClosed:
			return 0, net.ErrClosed
		case passed(s.readDeadline):
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.unread() > 0:
			return s.take(p), nil
		case s.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case s.finished:
			return 0, io.EOF
		}
		s.wait(s.readDeadline)
	}
}

func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.writerClosed:
			return written, net.ErrClosed
		case passed(s.writeDeadline):
			return written, os.ErrDeadlineExceeded
		case s.reset:
			return written, os.NewSyscallError("write", syscall.ECONNRESET)
		case s.finished:
			return written, os.NewSyscallError("write", syscall.EPIPE)
		case s.readerClosed && s.ignoredWrite:
			return written, os.NewSyscallError("write", syscall.EPIPE)
		case s.readerClosed:
			s.ignoredWrite = true
			return written + len(p), nil
		}
		if n := min(len(p), bufferSize-s.unread()); n > 0 {
			s.put(p[:n])
			p, written = p[n:], written+n
		}
		if len(p) == 0 {
			return written, nil
		}
		s.wait(s.writeDeadline)
	}
}

func (s *stream) unread() int { return len(s.buf) - s.start }

func (s *stream) take(p []byte) int {
	n := copy(p, s.buf[s.start:])
	s.start += n
	if s.unread() == 0 {
		s.drop()
	}
	s.wake()
	return n
}

func (s *stream) put(p []byte) {
	if s.start > 0 && len(s.buf)+len(p) > cap(s.buf) {
		s.buf = s.buf[:copy(s.buf, s.buf[s.start:])]
		s.start = 0
	}
	s.buf = append(s.buf, p...)
	s.wake()
}

func (s *stream) drop() { s.buf, s.start = s.buf[:0], 0 }

// update changes the stream and lets those that wait look at it again.
func (s *stream) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.wake()
}

// wait returns after the next change, or at the deadline if there is one. It is
// called with the mutex held, and gives it up meanwhile.
func (s *stream) wait(deadline time.Time) {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	if deadline.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

func (s *stream) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func passed(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}
