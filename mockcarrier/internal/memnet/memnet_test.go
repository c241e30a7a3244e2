package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/memnet"
)

// connect returns both ends of a connection, closed when the test ends.
func connect(t *testing.T) (client, server *memnet.Conn) {
	t.Helper()
	l := memnet.Listen(80)
	near, err := l.DialContext(t.Context(), "tcp", "ignored:1")
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
		_ = l.Close()
	})
	return near.(*memnet.Conn), far.(*memnet.Conn)
}

// wantOpError checks that err looks as TCP's does, and Is target.
func wantOpError(t *testing.T, err error, op string, target error) {
	t.Helper()
	var opErr *net.OpError
	if !errors.As(err, &opErr) {
		t.Fatalf("%s: got %v (%T), want a *net.OpError", op, err, err)
	}
	if opErr.Op != op || opErr.Net != "tcp" {
		t.Errorf("got op %q net %q, want %q tcp", opErr.Op, opErr.Net, op)
	}
	if !errors.Is(err, target) {
		t.Errorf("%s: got %v, want one that is %v", op, err, target)
	}
}

func TestBytesArriveInOrderWhateverTheSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		sent := make([]byte, 1<<20)
		random := rand.NewChaCha8([32]byte{1})
		_, _ = random.Read(sent)
		go func() {
			defer client.CloseWrite()
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+int(random.Uint64()%200_000))
				if _, err := client.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
		}()
		var got bytes.Buffer
		chunk := make([]byte, 40_001)
		for {
			n, err := server.Read(chunk[:1+random.Uint64()%40_000])
			got.Write(chunk[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Bytes(), sent) {
			t.Errorf("got %d bytes, not the %d that were sent", got.Len(), len(sent))
		}
	})
}

func TestWriteWaitsOnceTheBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		if n, err := client.Write(make([]byte, 64<<10)); n != 64<<10 || err != nil {
			t.Fatalf("64 KiB: wrote %d, %v", n, err)
		}
		written := make(chan struct{})
		go func() {
			_, _ = client.Write([]byte("x"))
			close(written)
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Fatal("a byte beyond 64 KiB did not wait")
		default:
		}
		_, _ = server.Read(make([]byte, 1))
		<-written
	})
}

func TestConcurrentWritesDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		const writers, size = 8, 100_000
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() { _, _ = client.Write(bytes.Repeat([]byte{byte('a' + i)}, size)) })
		}
		go func() {
			wg.Wait()
			_ = client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || len(got) != writers*size {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
		for at := 0; at < len(got); at += size {
			if run := got[at : at+size]; bytes.Count(run, run[:1]) != size {
				t.Fatalf("the write at byte %d is mixed with another", at)
			}
		}
	})
}

func TestEndsAsTheOtherEndSeesThem(t *testing.T) {
	cases := map[string]struct {
		end                  func(*memnet.Conn) error
		read                 error
		firstWrite, thenFail error
	}{
		"close":       {(*memnet.Conn).Close, io.EOF, nil, syscall.EPIPE},
		"reset":       {(*memnet.Conn).Reset, syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET},
		"close write": {(*memnet.Conn).CloseWrite, io.EOF, nil, nil},
		"close twice": {func(c *memnet.Conn) error { _ = c.Close(); return c.Close() }, io.EOF, nil, syscall.EPIPE},
		"close, then reset": {func(c *memnet.Conn) error { _ = c.Close(); return c.Reset() },
			io.EOF, nil, syscall.EPIPE},
		"close write, then reset": {func(c *memnet.Conn) error { _ = c.CloseWrite(); return c.Reset() },
			syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t)
			if _, err := server.Write([]byte("last words")); err != nil {
				t.Fatal(err)
			}
			if err := tc.end(server); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 100)
			if n, err := client.Read(buf); string(buf[:n]) != "last words" || err != nil {
				t.Errorf("what came before the end: got %q, %v", buf[:n], err)
			}
			_, err := client.Read(buf)
			if tc.read == io.EOF {
				if err != io.EOF {
					t.Errorf("read: got %v, want a bare EOF", err)
				}
			} else {
				wantOpError(t, err, "read", tc.read)
			}
			for i, want := range []error{tc.firstWrite, tc.thenFail, tc.thenFail} {
				_, err := client.Write([]byte("x"))
				if want == nil {
					if err != nil {
						t.Errorf("write %d: %v", i+1, err)
					}
					continue
				}
				wantOpError(t, err, "write", want)
			}
		})
	}
}

func TestOwnEndIsClosed(t *testing.T) {
	for name, end := range map[string]func(*memnet.Conn) error{"close": (*memnet.Conn).Close, "reset": (*memnet.Conn).Reset} {
		t.Run(name, func(t *testing.T) {
			client, _ := connect(t)
			_ = end(client)
			_, err := client.Read(make([]byte, 1))
			wantOpError(t, err, "read", net.ErrClosed)
			_, err = client.Write([]byte("x"))
			wantOpError(t, err, "write", net.ErrClosed)
		})
	}
}

// Whatever ends a connection also ends what waits on it.
func TestWaitingReadsAndWritesEnd(t *testing.T) {
	cases := map[string]struct {
		end         func(client, server *memnet.Conn)
		read, write error // of the client
	}{
		"other end closes": {func(_, s *memnet.Conn) { _ = s.Close() }, io.EOF, nil},
		"other end resets": {func(_, s *memnet.Conn) { _ = s.Reset() }, syscall.ECONNRESET, syscall.ECONNRESET},
		"own end closes":   {func(c, _ *memnet.Conn) { _ = c.Close() }, net.ErrClosed, net.ErrClosed},
		"deadline is set to the past": {func(c, _ *memnet.Conn) { _ = c.SetDeadline(time.Unix(1, 0)) },
			os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		"deadline passes": {func(c, _ *memnet.Conn) { _ = c.SetDeadline(time.Now().Add(time.Hour)) },
			os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := connect(t)
				reads, writes := make(chan error, 1), make(chan error, 1)
				go func() {
					_, err := client.Read(make([]byte, 1))
					reads <- err
				}()
				go func() {
					_, err := client.Write(make([]byte, 1<<20))
					writes <- err
				}()
				synctest.Wait()
				tc.end(client, server)
				if err := <-reads; !errors.Is(err, tc.read) {
					t.Errorf("read: got %v, want %v", err, tc.read)
				}
				if err := <-writes; !errors.Is(err, tc.write) {
					t.Errorf("write: got %v, want %v", err, tc.write)
				}
			})
		})
	}
}

func TestDeadlineIsExactAndCanBeMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		start := time.Now()
		_ = client.SetReadDeadline(start.Add(time.Second))
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = client.SetReadDeadline(start.Add(3 * time.Second))
		}()
		_, err := client.Read(make([]byte, 1))
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v, want a timeout", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
		_ = client.SetReadDeadline(time.Time{})
		_, _ = server.Write([]byte("x"))
		if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("without a deadline: read %d, %v", n, err)
		}
	})
}

func TestListener(t *testing.T) {
	t.Run("dial does not wait for accept", func(t *testing.T) {
		l := memnet.Listen(80)
		defer l.Close()
		for range 300 {
			if _, err := l.DialContext(t.Context(), "tcp", ""); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("accept waits for dial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := memnet.Listen(80)
			defer l.Close()
			go func() {
				time.Sleep(time.Minute)
				_, _ = l.DialContext(context.Background(), "tcp", "")
			}()
			start := time.Now()
			if _, err := l.Accept(); err != nil || time.Since(start) != time.Minute {
				t.Errorf("accepted after %v, %v", time.Since(start), err)
			}
		})
	})
	t.Run("close ends accept, resets the queue and refuses dials", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := memnet.Listen(80)
			accepted := make(chan error)
			go func() {
				_, _ = l.Accept()
				_, err := l.Accept()
				accepted <- err
			}()
			first, _ := l.DialContext(t.Context(), "tcp", "")
			synctest.Wait()
			_ = l.Close()
			wantOpError(t, <-accepted, "accept", net.ErrClosed)
			_, err := l.DialContext(t.Context(), "tcp", "")
			wantOpError(t, err, "dial", syscall.ECONNREFUSED)
			if _, err := first.Write([]byte("x")); err != nil {
				t.Errorf("a connection that was accepted: %v", err)
			}

			l = memnet.Listen(80)
			queued, _ := l.DialContext(t.Context(), "tcp", "")
			_ = l.Close()
			_ = l.Close()
			_, err = queued.Read(make([]byte, 1))
			wantOpError(t, err, "read", syscall.ECONNRESET)
		})
	})
	t.Run("dial under a context that has ended", func(t *testing.T) {
		l := memnet.Listen(80)
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.DialContext(ctx, "tcp", "")
		wantOpError(t, err, "dial", context.Canceled)
	})
	t.Run("addresses", func(t *testing.T) {
		client, server := connect(t)
		if client.RemoteAddr().String() != "127.0.0.1:80" || server.LocalAddr().String() != "127.0.0.1:80" {
			t.Errorf("got %v and %v", client.RemoteAddr(), server.LocalAddr())
		}
		if client.LocalAddr().String() != server.RemoteAddr().String() {
			t.Errorf("the ends disagree: %v, %v", client.LocalAddr(), server.RemoteAddr())
		}
	})
}
