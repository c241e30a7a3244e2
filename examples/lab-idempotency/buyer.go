package main

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const buyCommand = "buy"

func isBuyer(args []string) bool { return len(args) == 5 && args[1] == buyCommand }

// buyer is the process that can be killed: buy URL ORDER random|derived. It
// keeps nothing on disk.
func buyer(ctx context.Context, args []string, stdout io.Writer) error {
	url, order := args[1], args[2]
	key := uuid.NewString()
	if args[3] == "derived" {
		key = carrier.DeriveIdempotencyKey("createShipment", order, 1)
	}
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		return err
	}
	defer client.Close()

	fmt.Fprintln(stdout, "buys with key", key)
	var info carrier.CallInfo
	shipment, err := client.CreateShipment(ctx, shipmentOf(order), carrier.WithIdempotencyKey(key), carrier.WithCallInfo(&info))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "has %s, %s\n", shipment.TrackingNumber, howBought(info))
	return nil
}

func howBought(info carrier.CallInfo) string {
	if info.Replayed {
		return "from the carrier's first answer, replayed"
	}
	return "bought just now"
}
