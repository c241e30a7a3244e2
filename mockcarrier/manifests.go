package mockcarrier

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

const firstManifest = 4001

// manifest is what was handed over together. It does not change.
type manifest struct {
	Account     string    `json:"account"` // see accountName
	ID          string    `json:"id"`
	Seq         int       `json:"seq"`
	Key         string    `json:"idempotencyKey"`
	Date        string    `json:"date"`
	ShipmentIDs []string  `json:"shipmentIds"`
	Parcels     int       `json:"parcels"`
	Made        time.Time `json:"made"`
}

func manifestID(seq int) string { return fmt.Sprintf("mft_%d", seq) }

func (m manifest) present() api.Manifest {
	return api.Manifest{
		ID: m.ID, Status: api.ManifestStatusClosed, Date: m.Date, ShipmentIds: m.ShipmentIDs,
		ShipmentCount: len(m.ShipmentIDs), ParcelCount: m.Parcels, CreatedAt: moment(m.Made),
	}
}

// CreateManifest puts shipments on a manifest.
func (h handlers) CreateManifest(ctx context.Context, req server.CreateManifestRequestObject) (server.CreateManifestResponseObject, error) {
	x := exchangeOf(ctx)
	m, r := h.world.closeDay(x.account, x.key, *req.Body, h.now())
	if r != nil {
		return nil, r
	}
	location := basePath + "/manifests/" + m.ID
	return server.CreateManifest201JSONResponse{
		Body: m.present(), Headers: server.CreateManifest201ResponseHeaders{Location: &location},
	}, nil
}

// GetManifest answers with one manifest.
func (h handlers) GetManifest(ctx context.Context, req server.GetManifestRequestObject) (server.GetManifestResponseObject, error) {
	if r := parameters(api.NewGetManifestRequest(req.ManifestID)); r != nil {
		return nil, r
	}
	m, r := h.world.manifest(exchangeOf(ctx).account, req.ManifestID)
	if r != nil {
		return nil, r
	}
	return server.GetManifest200JSONResponse{Body: m.present()}, nil
}

// closeDay makes a manifest of the shipments that are asked for, or of all that
// are open and to be dispatched until its day.
func (w *world) closeDay(account, key string, request api.ManifestRequest, now time.Time) (manifest, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var wrong resilience.FieldErrors
	checkDay(request.Date, now, &wrong)
	var taken []*shipment
	for i, id := range request.ShipmentIds {
		s := w.byID[id]
		if why := s.notOpen(account, now); why != nil {
			wrong.Add(resilience.Index("/shipmentIds", i), why.code, why.message)
			continue
		}
		taken = append(taken, s)
	}
	if len(wrong) > 0 {
		return manifest{}, invalid(wrong)
	}
	if request.ShipmentIds == nil {
		for _, s := range w.shipments {
			if s.notOpen(account, now) == nil && s.dispatched() <= request.Date {
				taken = append(taken, s)
			}
		}
	}
	if len(taken) == 0 {
		return manifest{}, refuse(http.StatusUnprocessableEntity, "nothing_to_manifest", "Nothing to manifest", "No shipment is open.")
	}
	seq := firstManifest
	if n := len(w.manifests); n > 0 {
		seq = w.manifests[n-1].Seq + 1
	}
	m := &manifest{Account: account, ID: manifestID(seq), Seq: seq, Key: key, Date: request.Date, Made: now}
	for _, s := range taken {
		s.manifest = m.ID
		m.ShipmentIDs = append(m.ShipmentIDs, s.id)
		m.Parcels += len(s.parcels)
	}
	w.manifests = append(w.manifests, m)
	return *m, nil
}

// reason is why something cannot be done, for programs and in words.
type reason struct{ code, message string }

// notOpen says why a shipment cannot be put on a manifest; nil if it can.
func (s *shipment) notOpen(account string, now time.Time) *reason {
	switch {
	case s == nil || s.account != account:
		return &reason{"not_found", "is no shipment of yours"}
	case !s.cancelledAt.IsZero():
		return &reason{"cancelled", "is cancelled"}
	case s.manifest != "":
		return &reason{"manifested", "is on " + s.manifest}
	case now.Before(s.ready):
		return &reason{"pending", "is still being made"}
	}
	return nil
}

// dispatched is the day on which the shipment is to leave.
func (s *shipment) dispatched() string { return cmp.Or(value(s.request.ShipDate), day(s.made)) }

// manifest returns an account's manifest.
func (w *world) manifest(account, id string) (manifest, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.manifests, func(m *manifest) bool { return m.ID == id && m.Account == account })
	if i < 0 {
		return manifest{}, refuse(http.StatusNotFound, "manifest_not_found", "Manifest not found", "There is no manifest %s.", id)
	}
	return *w.manifests[i], nil
}
