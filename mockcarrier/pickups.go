package mockcarrier

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

const (
	firstPickup   = 3001
	confirmTime   = 2 * time.Second // from the order to the confirmation
	pickupAtLeast = time.Hour       // the length of its window
)

// pickupFails is how the instructions of a pickup begin that comes to nothing.
const pickupFails = "FAULT-PICKUP-FAILED"

// pickup is a driver who comes. Only CancelledAt changes.
type pickup struct {
	Account     string            `json:"account"` // see accountName
	ID          string            `json:"id"`
	Seq         int               `json:"seq"`
	Key         string            `json:"idempotencyKey"`
	Request     api.PickupRequest `json:"request"`
	Made        time.Time         `json:"made"`
	CancelledAt time.Time         `json:"cancelledAt,omitzero"`
}

func pickupID(seq int) string { return fmt.Sprintf("pck_%d", seq) }

// pickupWindow is when the driver comes.
func pickupWindow(r api.PickupRequest) (from, to time.Time) {
	at := func(clock string) time.Time {
		t, _ := time.ParseInLocation("2006-01-02 15:04", r.Date+" "+clock, localZone())
		return t
	}
	return at(r.From), at(r.To)
}

func (p pickup) status(now time.Time) api.PickupStatus {
	_, ends := pickupWindow(p.Request)
	switch {
	case !p.CancelledAt.IsZero():
		return api.PickupStatusCancelled
	case !now.Before(ends) && named(value(p.Request.Instructions), pickupFails):
		return api.PickupStatusFailed
	case !now.Before(ends):
		return api.PickupStatusPickedUp
	case now.Before(p.Made.Add(confirmTime)):
		return api.PickupStatusRequested
	}
	return api.PickupStatusConfirmed
}

func (p pickup) present(now time.Time) api.Pickup {
	address, free := placeAddress(p.Request.Address), euros(0)
	body := api.Pickup{
		ID: p.ID, Status: p.status(now), Address: &address, Date: p.Request.Date, From: p.Request.From, To: p.Request.To,
		ParcelCount: p.Request.ParcelCount, ShipmentIds: p.Request.ShipmentIds, Charge: &free, CreatedAt: moment(p.Made),
	}
	if until := cmp.Or(p.CancelledAt, now); !until.Before(p.Made.Add(confirmTime)) {
		const scatter = 7919 // so that it is not the id again
		body.Confirmation = strings.ToUpper(strconv.FormatInt(int64(p.Seq)*scatter, 36))
	}
	if !p.CancelledAt.IsZero() {
		body.CancelledAt = moment(p.CancelledAt)
	}
	return body
}

// CreatePickup orders a driver, who costs nothing.
func (h handlers) CreatePickup(ctx context.Context, req server.CreatePickupRequestObject) (server.CreatePickupResponseObject, error) {
	x := exchangeOf(ctx)
	now := h.now()
	p, r := h.world.orderPickup(x.account, x.key, *req.Body, now)
	if r != nil {
		return nil, r
	}
	location := basePath + "/pickups/" + p.ID
	return server.CreatePickup201JSONResponse{
		Body: p.present(now), Headers: server.CreatePickup201ResponseHeaders{Location: &location},
	}, nil
}

// GetPickup answers with one pickup.
func (h handlers) GetPickup(ctx context.Context, req server.GetPickupRequestObject) (server.GetPickupResponseObject, error) {
	if r := parameters(api.NewGetPickupRequest(req.PickupID)); r != nil {
		return nil, r
	}
	p, r := h.world.pickup(exchangeOf(ctx).account, req.PickupID, func(*pickup) *refusal { return nil })
	if r != nil {
		return nil, r
	}
	return server.GetPickup200JSONResponse{Body: p.present(h.now())}, nil
}

// CancelPickup cancels a pickup, once or again.
func (h handlers) CancelPickup(ctx context.Context, req server.CancelPickupRequestObject) (server.CancelPickupResponseObject, error) {
	if r := parameters(api.NewCancelPickupRequest(req.PickupID)); r != nil {
		return nil, r
	}
	now := h.now()
	p, r := h.world.pickup(exchangeOf(ctx).account, req.PickupID, func(p *pickup) *refusal {
		begins, _ := pickupWindow(p.Request)
		switch {
		case !p.CancelledAt.IsZero():
		case !now.Before(begins):
			return refuse(http.StatusConflict, "already_picked_up", "Pickup already made",
				"%s has begun and can no longer be cancelled.", p.ID)
		default:
			p.CancelledAt = now
		}
		return nil
	})
	if r != nil {
		return nil, r
	}
	return server.CancelPickup200JSONResponse{Body: p.present(now)}, nil
}

// orderPickup makes a pickup.
func (w *world) orderPickup(account, key string, request api.PickupRequest, now time.Time) (pickup, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var wrong resilience.FieldErrors
	isDay := checkDay(request.Date, now, &wrong)
	begins, ends := pickupWindow(request)
	switch {
	case !isDay:
	case ends.Sub(begins) < pickupAtLeast:
		wrong.Add("/to", "window_too_short", "must be at least an hour after from")
	case request.Date == day(now) && !now.Before(ends):
		wrong.Add("/to", "past", "must not be in the past")
	}
	for i, id := range request.ShipmentIds {
		switch s := w.byID[id]; {
		case s == nil || s.account != account:
			wrong.Add(resilience.Index("/shipmentIds", i), "not_found", "is no shipment of yours")
		case !s.cancelledAt.IsZero():
			wrong.Add(resilience.Index("/shipmentIds", i), "cancelled", "is cancelled")
		}
	}
	if len(wrong) > 0 {
		return pickup{}, invalid(wrong)
	}
	seq := firstPickup
	if n := len(w.pickups); n > 0 {
		seq = w.pickups[n-1].Seq + 1
	}
	p := &pickup{Account: account, ID: pickupID(seq), Seq: seq, Key: key, Request: request, Made: now}
	w.pickups = append(w.pickups, p)
	return *p, nil
}

// pickup returns an account's pickup as it is after a change.
func (w *world) pickup(account, id string, change func(*pickup) *refusal) (pickup, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pickups, func(p *pickup) bool { return p.ID == id && p.Account == account })
	if i < 0 {
		return pickup{}, refuse(http.StatusNotFound, "pickup_not_found", "Pickup not found", "There is no pickup %s.", id)
	}
	r := change(w.pickups[i])
	return *w.pickups[i], r
}
