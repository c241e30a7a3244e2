package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const patience = 500 * time.Millisecond // of a client, with one attempt

// tryAgain is the first scene: the carrier buys, its answer does not come, and
// the client tries again.
func tryAgain(ctx context.Context, u *upstream, stdout io.Writer) error {
	fmt.Fprintf(stdout, "1. The carrier buys, and its answer is late. The client gives up after %v and tries again.\n", patience)

	fmt.Fprintf(stdout, "\n   %s, net/http with a fresh key for each try:\n", freshKey)
	for try := 1; ; try++ {
		key := uuid.NewString()
		number, err := buyOnce(ctx, u.url, freshKey, key)
		if err == nil {
			fmt.Fprintf(stdout, "     key %s   has %s, bought just now\n", key, number)
			break
		}
		if try == 3 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		fmt.Fprintf(stdout, "     key %s   no answer in %v\n", key, patience)
	}

	fmt.Fprintf(stdout, "\n   %s, carrier-go, one call:\n", oneKey)
	client, err := carrier.New(u.url, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithAttemptTimeout(patience))
	if err != nil {
		return err
	}
	defer client.Close()
	var info carrier.CallInfo
	shipment, err := client.CreateShipment(ctx, shipmentOf(oneKey), carrier.WithCallInfo(&info))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "     key %s   %d attempts: has %s, %s\n",
		info.IdempotencyKey, info.Attempts, shipment.TrackingNumber, howBought(info))
	return nil
}

// buyOnce is what many a service does: one POST with a time limit.
func buyOnce(ctx context.Context, url, order, key string) (trackingNumber string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(shipmentOf(order))
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/shipments", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var shipment carrier.Shipment
	if err := json.NewDecoder(resp.Body).Decode(&shipment); err != nil || resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return shipment.TrackingNumber, nil
}
