package carrier

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// WithRootCAs sets the certificate authorities that the client's own transport
// trusts, in place of the system's. To add one to those, begin with
// [x509.SystemCertPool]. Together with [WithTransport] it is an error.
func WithRootCAs(pool *x509.CertPool) Option { return resilience.WithRootCAs(pool) }

// WithClientCertificates sets the certificates that the client's own transport
// shows to the carrier (mutual TLS), and to nobody else. Together with
// [WithTransport] it is an error.
func WithClientCertificates(certificates ...tls.Certificate) Option {
	return resilience.WithClientCertificates(certificates...)
}
