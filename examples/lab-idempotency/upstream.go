package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// upstream is a mockcarrier on loopback. It makes the first shipment of each
// order, and never answers: the client cannot tell that from a slow answer.
type upstream struct {
	*mockcarrier.Carrier
	url    string
	server *httptest.Server
}

func startUpstream() *upstream {
	u := &upstream{Carrier: mockcarrier.New()}
	for _, order := range []string{freshKey, oneKey, randomKey, derivedKey} {
		u.Inject(mockcarrier.StallAfter().On("createShipment").ForReference(order).Times(1))
	}
	u.server = httptest.NewUnstartedServer(u)
	u.server.Config.ConnContext = u.ConnContext
	u.server.Start()
	u.url = u.server.URL + "/v1"
	return u
}

func (u *upstream) stop() {
	u.Close()
	u.server.Close()
}

// charges are the shipments that were made of an order.
func (u *upstream) charges(order string) (charges []mockcarrier.Charge) {
	for _, c := range u.Ledger() {
		if c.Reference == order {
			charges = append(charges, c)
		}
	}
	return charges
}

// bought waits until the first shipment of an order is made.
func (u *upstream) bought(ctx context.Context, order string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for len(u.charges(order)) == 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not bought: %w", order, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
