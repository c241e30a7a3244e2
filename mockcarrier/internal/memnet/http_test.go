package memnet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/memnet"
)

// serve runs handler on the network in memory, and returns a client for it.
func serve(t *testing.T, scheme string, http2 bool, handler http.HandlerFunc) *http.Client {
	t.Helper()
	l := memnet.Listen(80)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2 && scheme == "https")
	protocols.SetUnencryptedHTTP2(http2 && scheme == "http")
	server := &http.Server{Handler: handler, Protocols: protocols}
	transport := &http.Transport{DialContext: l.DialContext, Protocols: protocols}
	ended := make(chan error, 1)
	if scheme == "https" {
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1),
			NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			DNSNames: []string{"mock.test"},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, _ := x509.ParseCertificate(der)
		roots := x509.NewCertPool()
		roots.AddCert(cert)
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		go func() { ended <- server.ServeTLS(l, "", "") }()
	} else {
		go func() { ended <- server.Serve(l) }()
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-ended
	})
	return &http.Client{Transport: transport}
}

func TestHTTPInVirtualTime(t *testing.T) {
	for _, tc := range []struct {
		name, scheme string
		http2        bool
		proto        string
	}{
		{"HTTP 1.1", "http", false, "HTTP/1.1"},
		{"HTTP 1.1 over TLS", "https", false, "HTTP/1.1"},
		{"HTTP 2 over TLS", "https", true, "HTTP/2.0"},
		{"HTTP 2 in the clear", "http", true, "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := serve(t, tc.scheme, tc.http2, func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					time.Sleep(30 * time.Second)
					_, _ = w.Write(body)
				})
				start := time.Now()
				const size = 1 << 20
				for range 2 {
					resp, err := client.Post(tc.scheme+"://mock.test/", "text/plain", strings.NewReader(strings.Repeat("x", size)))
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err != nil || len(body) != size || resp.Proto != tc.proto {
						t.Errorf("got %d bytes over %s, %v", len(body), resp.Proto, err)
					}
				}
				if took := time.Since(start); took != time.Minute {
					t.Errorf("two waits of 30s took %v", took)
				}
			})
		})
	}
}

func TestHTTPClientTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		client := serve(t, "http", false, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(gone)
		})
		client.Timeout = 10 * time.Second
		start := time.Now()
		_, err := client.Get("http://mock.test/")
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		<-gone
	})
}

func TestHTTPResetIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, "http", false, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.(*memnet.Conn).Reset()
		})
		_, err := client.Post("http://mock.test/", "text/plain", strings.NewReader("x"))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want ECONNRESET", err)
		}
	})
}
