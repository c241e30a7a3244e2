package mockcarrier

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/selfsigned"
)

// identity is a certificate that was made for one server, and what trusts it.
type identity struct {
	certificate tls.Certificate
	pool        *x509.CertPool
}

func newIdentity(now time.Time) (*identity, error) {
	certificate, err := selfsigned.New(now, memoryHost)
	if err != nil {
		return nil, fmt.Errorf("mockcarrier: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate.Leaf)
	return &identity{certificate, pool}, nil
}
