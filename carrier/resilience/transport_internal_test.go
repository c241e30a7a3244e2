package resilience

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the end of a connection means after the server had asked for a client
// certificate. When it ends is a race of the server's, so it is not tried here
// over a socket.
func TestSilenceAfterAClientCertificate(t *testing.T) {
	const never = "http2: client conn could not be established"
	for _, test := range []struct {
		mutual int32
		err    string
		class  class
		text   string
	}{
		{notAsked, never, classNotSent, never},
		{noneOffered, never, classRefused, noCertificate},
		{oneOffered, never, classRefused, "TLS: the connection ended after a client certificate was shown: " + never},
		{notAsked, "EOF", classUnknown, "EOF"},
		{noneOffered, "EOF", classUnknown, noCertificate},
		{oneOffered, "EOF", classUnknown, "TLS: the connection ended after a client certificate was shown: EOF"},
	} {
		a := &attempt{sending: true, err: errors.New(test.err)}
		a.asked.Store(1)
		a.got.Store(1)
		a.mutual.Store(test.mutual)
		a.judgeSilence(&call{doer: &Doer{evident: true}})
		if a.class != test.class || !strings.HasPrefix(a.cause.Error(), test.text) || !errors.Is(a.cause, a.err) {
			t.Errorf("%d, %s: class %d, %v; want %d, %s", test.mutual, test.err, a.class, a.cause, test.class, test.text)
		}
	}
}

// What a handshake did is told to the attempt that it was made for, if there is one.
func TestOfferOfAClientCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		want         int32
	}{"none": {nil, noneOffered}, "one": {s.TLS.Certificates, oneOffered}} {
		var e evidence
		for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), evidenceKey{}, &e)} {
			raw, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, &tls.Config{
				RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
				GetClientCertificate: offer(test.certificates),
			})
			if err := conn.HandshakeContext(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			_ = conn.Close()
		}
		if got := e.mutual.Load(); got != test.want {
			t.Errorf("%s: noted %d, want %d", name, got, test.want)
		}
	}
}

func TestHeaderLimitOfTransports(t *testing.T) {
	for name, test := range map[string]struct {
		opts []Option
		want int64
	}{
		"our own":                        {nil, 256 << 10},
		"our own, guarded":               {[]Option{WithEgressGuard(EgressPolicy{})}, 256 << 10},
		"the user's, guarded":            {[]Option{WithEgressGuard(EgressPolicy{}), WithTransport(&http.Transport{MaxResponseHeaderBytes: 1 << 10})}, 1 << 10},
		"the user's, as net/http has it": {[]Option{WithTransport(&http.Transport{})}, 10 << 20},
	} {
		d, err := New(test.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.headerLimit(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
		_ = d.Close()
	}
}
