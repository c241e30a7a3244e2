package main

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// shipment is what was bought for an order, as staff see it.
type shipment struct {
	OrderID        string         `json:"orderId"`
	Status         string         `json:"status"`
	TrackingNumber string         `json:"trackingNumber,omitempty"`
	Parcel         string         `json:"parcel,omitempty"` // where this service follows it
	Charge         *carrier.Money `json:"charge,omitempty"`
}

func shipmentOf(o *order, s *carrier.Shipment) shipment {
	view := shipment{OrderID: o.ID, Status: string(s.Status), TrackingNumber: s.TrackingNumber, Charge: s.Charge}
	if s.TrackingNumber != "" {
		view.Parcel = "/api/shipments/" + s.TrackingNumber
	}
	return view
}

func location(o *order) string { return "/api/orders/" + o.ID + "/shipment" }

// buyShipment buys the shipment of an order, once, however often it is asked.
// The carrier knows a key again for a day: that is for answers that get lost,
// and for requests that come at the same time. Its list has what was bought at
// any time: that is for the request that is repeated next week.
func (s *shop) buyShipment(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	order, err := s.orders.find(r)
	if err != nil {
		return err
	}
	bought, err := s.lookUp(ctx, order)
	switch {
	case err != nil:
		return err
	case bought != nil:
		writeJSON(w, http.StatusOK, shipmentOf(order, bought))
		return nil
	}
	bought, err = s.carrier.CreateShipment(ctx, s.orders.request(order), carrier.WithIdempotencyKey(order.key()),
		carrier.WithAttemptTimeout(s.cfg.buyAttempt), passID(ctx))
	switch {
	case err == nil && bought.Status != carrier.ShipmentStatusPending:
		w.Header().Set("Location", location(order))
		writeJSON(w, http.StatusCreated, shipmentOf(order, bought))
	case err == nil:
		lookLater(w, order, shipmentOf(order, bought))
	case mayBeBought(err):
		s.logFailure(ctx, "outcome of a purchase unknown", err)
		lookLater(w, order, shipment{OrderID: order.ID, Status: "unknown"})
	default:
		s.logFailure(ctx, "purchase failed", err)
		return purchaseFailed(err)
	}
	return nil
}

// lookLater says where to find out what became of a purchase.
func lookLater(w http.ResponseWriter, o *order, view shipment) {
	w.Header().Set("Location", location(o))
	w.Header().Set("Retry-After", "5")
	writeJSON(w, http.StatusAccepted, view)
}

// getShipment finds out what was bought for an order, also where the answer to
// the purchase never came.
func (s *shop) getShipment(w http.ResponseWriter, r *http.Request) error {
	order, err := s.orders.find(r)
	if err != nil {
		return err
	}
	bought, err := s.lookUp(r.Context(), order)
	switch {
	case err != nil:
		return err
	case bought == nil:
		return newProblem(http.StatusNotFound, "not_bought", "The carrier has no shipment for this order. To buy one again is safe.")
	}
	writeJSON(w, http.StatusOK, shipmentOf(order, bought))
	return nil
}

// lookUp asks the carrier for the shipment that was bought with an order's key;
// nil if there is none. It takes no more than a reading request may, so that a
// purchase has time left for buying.
func (s *shop) lookUp(ctx context.Context, o *order) (*carrier.Shipment, error) {
	key := o.key()
	list, err := s.carrier.ListShipments(ctx, carrier.ListShipmentsParams{IdempotencyKey: &key},
		carrier.WithTimeout(s.cfg.trackTimeout), passID(ctx))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Items, func(s carrier.Shipment) bool { return s.IdempotencyKey == key })
	if i < 0 {
		return nil, nil
	}
	return &list.Items[i], nil
}

// mayBeBought holds if the carrier may have acted, and if it has but its answer
// is lost or cannot be read.
func mayBeBought(err error) bool {
	var e *carrier.Error
	return errors.As(err, &e) && (e.Outcome == carrier.OutcomeUnknown || e.Outcome == carrier.OutcomeDone)
}

// purchaseFailed adds to carrierFailed what is the order's fault.
func purchaseFailed(err error) error {
	switch {
	case errors.Is(err, carrier.ErrKeyReused):
		return newProblem(http.StatusConflict, "order_changed", "The order has changed since it was first sent to the carrier. It needs a new revision.")
	case errors.Is(err, carrier.ErrInvalidRequest):
		return newProblem(http.StatusUnprocessableEntity, "order_refused", "The carrier does not take this order as it is. Correct the order; repeating it does not help.")
	default:
		return carrierFailed(err)
	}
}
