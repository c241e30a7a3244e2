// Package undertest is the adapter that puts carrier.Client before the
// conformance suite: for the suite's own tests, and for the comparison.
package undertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// Client is the adapter.
type Client struct{ *carrier.Client }

// New makes a client as in production, but for the attempt time limit and a
// breaker that reopens soon. Options come behind; it panics over one that is wrong.
func New(baseURL string, opts ...carrier.Option) Client {
	client, err := carrier.New(baseURL, append([]carrier.Option{
		carrier.WithAPIKey(conformance.APIKey),
		carrier.WithAttemptTimeout(conformance.AttemptTimeout),
		carrier.WithBreaker(carrier.BreakerPolicy{OpenFor: 300 * time.Millisecond}),
	}, opts...)...)
	if err != nil {
		panic(err)
	}
	return Client{client}
}

// Track tracks a parcel.
func (c Client) Track(ctx context.Context, number string) conformance.Result {
	var info carrier.CallInfo
	t, err := c.GetTracking(ctx, number, carrier.WithCallInfo(&info))
	r := result(err, info)
	if err == nil {
		r.Value = string(t.Status)
	}
	return r
}

// Ship buys a shipment.
func (c Client) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	var request carrier.ShipmentRequest
	if err := json.Unmarshal(order, &request); err != nil {
		return conformance.Result{Err: err}
	}
	var info carrier.CallInfo
	opts := []carrier.CallOption{carrier.WithCallInfo(&info)}
	if key != "" {
		opts = append(opts, carrier.WithIdempotencyKey(key))
	}
	shipment, err := c.CreateShipment(ctx, request, opts...)
	r := result(err, info)
	if err == nil {
		r.Value = shipment.ID
	}
	return r
}

// Label downloads a label.
func (c Client) Label(ctx context.Context, shipmentID string, w io.Writer) conformance.Result {
	var info carrier.CallInfo
	stream, err := c.GetLabel(ctx, shipmentID, carrier.GetLabelParams{}, carrier.WithCallInfo(&info))
	if err == nil {
		_, err = io.Copy(w, stream)
		err = errors.Join(err, stream.Close())
	}
	return result(err, info)
}

var outcomes = map[carrier.Outcome]conformance.Outcome{
	carrier.OutcomeNotSent: conformance.NotSent, carrier.OutcomeRejected: conformance.Rejected,
	carrier.OutcomeUnknown: conformance.Unknown, carrier.OutcomeDone: conformance.Done,
}

// result copies what the SDK tells.
func result(err error, info carrier.CallInfo) conformance.Result {
	r := conformance.Result{
		Err: err, StatusCode: info.StatusCode, RequestID: info.RequestID, Key: info.IdempotencyKey,
		Attempts: info.Attempts, Sends: info.Sends,
	}
	var e *carrier.Error
	if errors.As(err, &e) {
		r.Outcome, r.RetryAfter = outcomes[e.Outcome], e.RetryAfter
	}
	return r
}
