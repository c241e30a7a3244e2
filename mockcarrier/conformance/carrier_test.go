package conformance_test

import (
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/internal/undertest"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

type sdk = undertest.Client

func newSDK(baseURL string, opts ...carrier.Option) sdk { return undertest.New(baseURL, opts...) }

func TestCarrierClient(t *testing.T) {
	conformance.Run(t, func(baseURL string) conformance.Client { return newSDK(baseURL) })
}
