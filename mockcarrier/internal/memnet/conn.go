package memnet

import (
	"io"
	"net"
	"time"
)

// Conn is one end of a connection. Like a [net.TCPConn] it may be used by
// several goroutines, its errors are [*net.OpError], and its end can be told
// from its reset.
type Conn struct {
	in, out       *stream
	local, remote net.Addr
	writing       chan struct{} // one place: writes do not mix
}

func pair(client, server net.Addr) (*Conn, *Conn) {
	up, down := new(stream), new(stream)
	return &Conn{in: down, out: up, local: client, remote: server, writing: make(chan struct{}, 1)},
		&Conn{in: up, out: down, local: server, remote: client, writing: make(chan struct{}, 1)}
}

// Read waits for bytes. It returns [io.EOF] after the other end was closed, and
// syscall.ECONNRESET after it was reset; bytes that came before come first.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

// Write waits while 64 KiB are unread at the other end. After the other end was
// closed the first write is lost and the next fails with syscall.EPIPE; after
// it was reset, each fails with syscall.ECONNRESET.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// Close ends the connection in good order: the other end reads what was
// written, and then EOF. It returns nil, also when called again.
func (c *Conn) Close() error {
	c.out.update(func() { c.out.writerClosed, c.out.finished = true, true })
	c.in.update(func() {
		c.in.readerClosed = true
		c.in.drop()
	})
	return nil
}

// CloseWrite tells the other end that no more is coming, and goes on reading.
func (c *Conn) CloseWrite() error {
	c.out.update(func() { c.out.finished = true })
	return nil
}

// Reset ends the connection as a crashed process does: the other end gets
// syscall.ECONNRESET from its reads and writes, those that wait included. It
// returns nil, also when called again, and does nothing after Close.
func (c *Conn) Reset() error {
	c.out.update(func() {
		if !c.out.writerClosed {
			c.out.writerClosed, c.out.reset = true, true
		}
	})
	c.in.update(func() {
		if !c.in.readerClosed {
			c.in.readerClosed, c.in.reset = true, true
			c.in.drop()
		}
	})
	return nil
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines. The zero time means none.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline bounds reads, those that wait now included.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.update(func() { c.in.readDeadline = t })
	return nil
}

// SetWriteDeadline bounds writes, those that wait now included.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.update(func() { c.out.writeDeadline = t })
	return nil
}

func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
