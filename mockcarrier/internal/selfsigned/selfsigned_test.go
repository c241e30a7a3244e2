package selfsigned_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/selfsigned"
)

func TestCertificate(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate, err := selfsigned.New(now, "carrier.test", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(selfsigned.PEM(certificate)) {
		t.Fatal("the PEM has no certificate")
	}
	for name, tc := range map[string]struct {
		host string
		at   time.Time
		good bool
	}{
		"localhost":       {"localhost", now, true},
		"loopback":        {"127.0.0.1", now, true},
		"loopback 6":      {"::1", now, true},
		"a name":          {"carrier.test", now, true},
		"an address":      {"192.0.2.7", now, true},
		"nine years on":   {"localhost", now.AddDate(9, 0, 0), true},
		"another name":    {"carrier.example", now, false},
		"another address": {"192.0.2.8", now, false},
		"eleven years on": {"localhost", now.AddDate(11, 0, 0), false},
		"the day before":  {"localhost", now.AddDate(0, 0, -1), false},
	} {
		_, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: tc.host, Roots: pool, CurrentTime: tc.at})
		if (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := selfsigned.New(now)
	if err != nil {
		t.Fatal(err)
	}
	if other.Leaf.SerialNumber.Cmp(certificate.Leaf.SerialNumber) == 0 || other.Leaf.Equal(certificate.Leaf) {
		t.Error("two certificates are the same")
	}
}
