package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/carrier-sdk/carrier-go/carrier"
)

const (
	buyers = 8 // orders bought at the same time
	passes = 5 // over what is not bought yet
)

// purchase is what became of one order.
type purchase struct {
	*carrier.Shipment      // nil until it is bought
	attempts          int  // on all passes
	replayed          bool // the answer is that of an earlier attempt, which had been lost
}

// buyAll buys every order. What fails is bought on a later pass, with the same
// key: whether the carrier had acted the first time does not matter.
func buyAll(ctx context.Context, client *carrier.Client, orders []carrier.ShipmentRequest, stdout io.Writer) ([]purchase, error) {
	bought := make([]purchase, len(orders))
	for pass := 1; ; pass++ {
		errs := buyPass(ctx, client, orders, bought)
		done, failed := 0, 0
		for i := range orders {
			switch {
			case bought[i].Shipment != nil:
				done++
			case errs[i] != nil:
				failed++
				fmt.Fprintf(stdout, "  %s: %v\n", orders[i].Reference, errs[i])
			}
		}
		fmt.Fprintf(stdout, "Pass %d: %d of %d bought.\n", pass, done, len(orders))
		switch {
		case failed == 0:
			return bought, nil
		case pass == passes || ctx.Err() != nil:
			return nil, fmt.Errorf("%d orders are not bought: %w", failed, errors.Join(errs...))
		}
	}
}

func buyPass(ctx context.Context, client *carrier.Client, orders []carrier.ShipmentRequest, bought []purchase) []error {
	errs := make([]error, len(orders))
	places := make(chan struct{}, buyers)
	var wg sync.WaitGroup
	for i, order := range orders {
		if bought[i].Shipment != nil {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = buy(ctx, client, order, &bought[i])
		})
	}
	wg.Wait()
	return errs
}

// buy buys one order. The key is derived from the order, so that it is the same
// on every attempt, on every pass, and in every process.
func buy(ctx context.Context, client *carrier.Client, order carrier.ShipmentRequest, p *purchase) (err error) {
	key := carrier.DeriveIdempotencyKey("createShipment", order.Reference, 1)
	var info carrier.CallInfo
	p.Shipment, err = client.CreateShipment(ctx, order, carrier.WithIdempotencyKey(key), carrier.WithCallInfo(&info))
	p.attempts += info.Attempts
	p.replayed = info.Replayed
	return err
}
