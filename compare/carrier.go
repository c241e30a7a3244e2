package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// sdk is this module's client.
type sdk struct{ *carrier.Client }

func newCarrier(base string) conformance.Client {
	c, err := carrier.New(base, carrier.WithAPIKey(conformance.APIKey), carrier.WithAttemptTimeout(attemptTimeout),
		carrier.WithBreaker(carrier.BreakerPolicy{OpenFor: 300 * time.Millisecond}))
	if err != nil {
		panic(err)
	}
	return sdk{c}
}

func (c sdk) Track(ctx context.Context, number string) conformance.Result {
	var info carrier.CallInfo
	t, err := c.GetTracking(ctx, number, carrier.WithCallInfo(&info))
	r := result(err, info)
	if err == nil {
		r.Value = string(t.Status)
	}
	return r
}

func (c sdk) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	var request carrier.ShipmentRequest
	if err := json.Unmarshal(order, &request); err != nil {
		return conformance.Result{Err: err}
	}
	var info carrier.CallInfo
	opts := []carrier.CallOption{carrier.WithCallInfo(&info)}
	if key != "" {
		opts = append(opts, carrier.WithIdempotencyKey(key))
	}
	s, err := c.CreateShipment(ctx, request, opts...)
	r := result(err, info)
	if err == nil {
		r.Value = s.ID
	}
	return r
}

func (c sdk) Label(ctx context.Context, shipmentID string, w io.Writer) conformance.Result {
	var info carrier.CallInfo
	stream, err := c.GetLabel(ctx, shipmentID, carrier.GetLabelParams{}, carrier.WithCallInfo(&info))
	if err == nil {
		_, err = io.Copy(w, stream)
		err = errors.Join(err, stream.Close())
	}
	return result(err, info)
}

// result copies what the SDK tells.
func result(err error, info carrier.CallInfo) conformance.Result {
	r := conformance.Result{
		Err: err, StatusCode: info.StatusCode, RequestID: info.RequestID, Key: info.IdempotencyKey,
		Attempts: info.Attempts, Sends: info.Sends,
	}
	if e, ok := errors.AsType[*carrier.Error](err); ok {
		r.RetryAfter = e.RetryAfter
		r.Outcome = map[carrier.Outcome]conformance.Outcome{
			carrier.OutcomeNotSent: conformance.NotSent, carrier.OutcomeRejected: conformance.Rejected,
			carrier.OutcomeUnknown: conformance.Unknown, carrier.OutcomeDone: conformance.Done,
		}[e.Outcome]
	}
	return r
}
