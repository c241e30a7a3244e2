package resilience

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"time"
)

// WithRootCAs sets the certificate authorities that our own transport trusts,
// in place of the system's: for the API, the token endpoint and links alike. To
// add one to those of the system, begin with [x509.SystemCertPool]. pool is
// copied. Together with [WithTransport] it is an error.
//
// Our own transport speaks TLS 1.2 or newer. To pin keys, give a transport with
// a tls.Config of your own.
func WithRootCAs(pool *x509.CertPool) Option {
	if pool != nil {
		pool = pool.Clone()
	}
	return clientOption(func(c *config) error {
		if pool == nil {
			return invalid("WithRootCAs: the pool is nil")
		}
		c.rootCAs = pool
		return nil
	})
}

// WithClientCertificates sets the certificates that our own transport shows to
// the API, and to the token endpoint, if they ask for one (mutual TLS); never
// to another origin behind a link. Together with [WithTransport] it is an error.
func WithClientCertificates(certificates ...tls.Certificate) Option {
	certificates = slices.Clone(certificates)
	return clientOption(func(c *config) error {
		for _, cert := range certificates {
			if len(cert.Certificate) == 0 || cert.PrivateKey == nil {
				return invalid("WithClientCertificates: a certificate is empty, or has no private key")
			}
		}
		c.certificates = certificates
		return nil
	})
}

// What an attempt's handshake did when the server asked for a client certificate.
const (
	notAsked = iota
	noneOffered
	oneOffered
)

// offer returns the first certificate that a server takes, as crypto/tls does,
// and notes it: with TLS 1.3 the server's verdict comes after the handshake, and
// often as no more than the end of the connection.
func offer(certificates []tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		e, ok := asked.Context().Value(evidenceKey{}).(*evidence)
		if !ok {
			e = new(evidence)
		}
		for i := range certificates {
			if asked.SupportsCertificate(&certificates[i]) == nil {
				e.mutual.Store(oneOffered)
				return &certificates[i], nil
			}
		}
		e.mutual.Store(noneOffered)
		return &tls.Certificate{}, nil
	}
}

// explainMutual returns why there is no answer: in plain words if the
// connection ended after the server had asked for a client certificate.
func (a *attempt) explainMutual() error {
	switch a.mutual.Load() {
	case noneOffered:
		return &tlsError{noCertificate, a.err}
	case oneOffered:
		return &tlsError{"TLS: the connection ended after a client certificate was shown: " + oneLine(a.err.Error(), 120), a.err}
	default:
		return a.err
	}
}

const noCertificate = "TLS: the server asks for a client certificate, and there is none that fits"

// neverOpened holds for an HTTP/2 connection that ended before its first
// stream: nothing of the request was sent. net/http has no type for it.
func neverOpened(err error) bool {
	return strings.Contains(err.Error(), "http2: client conn could not be established")
}

// tlsError says in plain words what is wrong with a certificate. What the
// library said of it can be found inside.
type tlsError struct {
	what string
	err  error
}

func (e *tlsError) Error() string { return e.what }
func (e *tlsError) Unwrap() error { return e.err }

// explainTLS returns err, in plain words if it is about certificates or TLS itself.
func explainTLS(err error) error {
	if what := tlsTrouble(err); what != "" {
		return &tlsError{what, err}
	}
	return err
}

func tlsTrouble(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		if time.Now().Before(invalid.Cert.NotBefore) {
			return "TLS: the server's certificate is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.DateOnly)
		}
		return "TLS: the server's certificate expired on " + invalid.Cert.NotAfter.UTC().Format(time.DateOnly)
	case errors.As(err, &authority):
		return "TLS: the server's certificate is of an authority that is not trusted here"
	case errors.As(err, &hostname):
		return "TLS: the server's certificate is not for " + printable(hostname.Host, 80)
	case errors.As(err, &invalid):
		return "TLS: the server's certificate is not valid: " + oneLine(invalid.Error(), 120)
	case errors.As(err, &record), err.Error() == "http: server gave HTTP response to HTTPS client":
		return "TLS: the server does not speak TLS on this port"
	}
	return alertTrouble(err)
}

// handshakeAlerts are what a server ends a handshake with that no repeat will
// mend. crypto/tls has no exported type for them.
var handshakeAlerts = map[string]string{
	"tls: certificate required":           noCertificate,
	"tls: bad certificate":                "TLS: the server did not accept the client certificate, or there was none",
	"tls: unsupported certificate":        "TLS: the server does not support the client certificate",
	"tls: revoked certificate":            "TLS: the client certificate was revoked",
	"tls: expired certificate":            "TLS: the client certificate has expired",
	"tls: unknown certificate":            "TLS: the server did not accept the client certificate",
	"tls: unknown certificate authority":  "TLS: the server does not know the authority of the client certificate",
	"tls: access denied":                  "TLS: the server denied access to the client certificate",
	"tls: protocol version not supported": "TLS: the server speaks no version of TLS from 1.2 on",
	"tls: insufficient security level":    "TLS: the server and the client have no secure cipher in common",
	"tls: handshake failure":              "TLS: the handshake failed: no cipher in common, or a client certificate is missing",
	"tls: unrecognized name":              "TLS: the server does not know the name it was asked by",
}

func alertTrouble(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" && op.Err != nil {
		return handshakeAlerts[op.Err.Error()]
	}
	return ""
}

// shakenOff holds for an alert by which the server ended the handshake. In TLS
// 1.3 it can come after the request was written, which was then not read.
func shakenOff(err error) bool { return alertTrouble(err) != "" }
