package mockcarrier_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func address(s *mockcarrier.Server) string {
	_, rest, _ := strings.Cut(s.URL, "://")
	return strings.TrimSuffix(rest, "/v1")
}

// onBoth runs a test on TCP, and in memory in virtual time.
func onBoth(t *testing.T, test func(t *testing.T, s *mockcarrier.Server), opts ...mockcarrier.Option) {
	t.Run("TCP", func(t *testing.T) { test(t, mockcarrier.Start(t, opts...)) })
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, mockcarrier.StartInMemory(t, opts...)) })
	})
}

func TestRefusedConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, s *mockcarrier.Server) {
		s.Inject(mockcarrier.RefuseConnection().Times(2))
		for i := range 3 {
			conn, err := s.DialContext(t.Context(), "tcp", address(s))
			if refused := errors.Is(err, syscall.ECONNREFUSED); refused != (i < 2) {
				t.Errorf("dial %d: %v", i+1, err)
			}
			var op *net.OpError
			if err != nil && (!errors.As(err, &op) || op.Op != "dial") {
				t.Errorf("%T is not as net's", err)
			}
			if err == nil {
				_ = conn.Close()
			}
		}
		// A connection that is there already goes on being used.
		a := newAPI(s)
		a.get(t, "/status").want(t, 200)
		s.Inject(mockcarrier.RefuseConnection().MayNotFire())
		a.get(t, "/status").want(t, 200)
		if _, err := newAPI(s).try("GET", "/status", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
		if len(s.Requests()) != 2 {
			t.Errorf("the journal is %v", s.Requests())
		}
	})
}

func TestBlackHole(t *testing.T) {
	onBoth(t, func(t *testing.T, s *mockcarrier.Server) {
		s.Inject(mockcarrier.Blackhole())
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		defer cancel()
		_, err := s.DialContext(ctx, "tcp", address(s))
		var netErr net.Error
		if !errors.As(err, &netErr) || !netErr.Timeout() || time.Since(start) < moment {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		go func() {
			time.Sleep(moment)
			s.Close()
		}()
		if _, err := s.DialContext(context.Background(), "tcp", address(s)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("when the server closes: %v", err)
		}
	})
}

func TestTLSHandshakeThatFails(t *testing.T) {
	for _, version := range [][]mockcarrier.Option{nil, {mockcarrier.WithHTTP2()}} {
		onBoth(t, func(t *testing.T, s *mockcarrier.Server) {
			s.Inject(mockcarrier.Sequence(mockcarrier.None(), mockcarrier.FailHandshake()))
			a, b, c := newAPI(s), newAPI(s), newAPI(s)
			a.get(t, "/status").want(t, 200)
			if _, err := b.try("GET", "/status", ""); err == nil || !strings.Contains(err.Error(), "handshake failure") {
				t.Errorf("got %v", err)
			}
			c.get(t, "/status").want(t, 200)
		}, append(version, mockcarrier.WithTLS())...)
	}
}

// What a client on the machine meets that does not dial by the server's methods.
func TestConnectionFaultsForOthers(t *testing.T) {
	s := mockcarrier.Start(t, mockcarrier.WithTLS())
	knock := func() (string, error) {
		conn, err := net.Dial("tcp", address(s))
		if err != nil {
			return "", err // a reset can be as quick as that
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("\x16\x03\x01")); err != nil {
			return "", err // the kernel tells of a reset once
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * moment))
		all, err := io.ReadAll(conn)
		return string(all), err
	}
	s.Inject(mockcarrier.Sequence(mockcarrier.RefuseConnection(), mockcarrier.Blackhole(), mockcarrier.FailHandshake(), mockcarrier.None()))
	if got, err := knock(); got != "" || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("refused: got %q, %v", got, err)
	}
	if got, err := knock(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("black hole: got %q, %v", got, err)
	}
	if got, err := knock(); got != "\x15\x03\x03\x00\x02\x02\x28" || err != nil {
		t.Errorf("handshake: got %q, %v", got, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.CertPool()}, DisableKeepAlives: true}}
	resp, err := client.Get(s.URL + "/status")
	if err != nil || resp.StatusCode != 401 {
		t.Errorf("got %v, %v", resp, err)
	}
	_ = resp.Body.Close()
}

// A program that serves the carrier itself has the faults of connections too.
func TestListener(t *testing.T) {
	c := mockcarrier.New()
	defer c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: c, ConnContext: c.ConnContext}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(c.Listener(l)) }()
	c.Inject(mockcarrier.RefuseConnection().Times(1))
	var got []string
	for range 2 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + l.Addr().String() + "/v1/status")
		if err == nil {
			got = append(got, fmt.Sprint(resp.StatusCode))
			_ = resp.Body.Close()
		} else {
			got = append(got, "failed")
		}
	}
	if fmt.Sprint(got) != "[failed 401]" {
		t.Errorf("got %v", got)
	}
	_ = server.Close()
	<-ended
}
