package mockcarrier

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/label"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// GetProofOfDelivery answers with the proof of a delivery, whole or the range
// that is asked for. It begins to be made when it is first asked for, and takes
// as long as a label. The scenarios are asked as by getTracking.
func (h handlers) GetProofOfDelivery(ctx context.Context, req server.GetProofOfDeliveryRequestObject) (server.GetProofOfDeliveryResponseObject, error) {
	if r := parameters(api.NewGetProofOfDeliveryRequest(req.TrackingNumber, req.Params)); r != nil {
		return nil, r
	}
	now := h.now()
	found, r := h.track(req.TrackingNumber, now)
	if r != nil {
		return nil, r
	}
	parcel := found[0]
	if parcel.Status != api.TrackingStatusDelivered {
		return nil, refuse(http.StatusConflict, "not_delivered", "Not delivered", "%s is not delivered.", req.TrackingNumber)
	}
	if ready := h.proofReady(parcel, now); now.Before(ready) {
		wait := strconv.Itoa(seconds(ready.Sub(now)))
		return server.GetProofOfDelivery202JSONResponse{
			Body:    api.DocumentPending{Status: api.DocumentStatusPending, ReadyAt: moment(ready)},
			Headers: server.GetProofOfDelivery202ResponseHeaders{RetryAfter: &wait},
		}, nil
	}
	format := api.ProofFormatPdf
	if req.Params.Format != nil {
		format = *req.Params.Format
	}
	return newProof(exchangeOf(ctx).r, parcel, format)
}

// proofReady is when the proof of a delivery is made.
func (c *Carrier) proofReady(parcel api.Tracking, now time.Time) time.Time {
	takes := c.config.labelTime
	if named(parcel.Reference, referenceLabelPending) {
		takes += labelWait
	}
	if takes == 0 {
		return now
	}
	return c.world.proofAsked(parcel.TrackingNumber, now).Add(takes)
}

// proofAsked returns when the proof was first asked for, which may be now.
func (w *world) proofAsked(number string, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, ok := w.proofs[number]
	if !ok {
		if w.proofs == nil {
			w.proofs = make(map[string]time.Time)
		}
		asked = now
		w.proofs[number] = now
	}
	return asked
}

func newProof(r *http.Request, parcel api.Tracking, format api.ProofFormat) (document, error) {
	proof := label.Proof{
		TrackingNumber: parcel.TrackingNumber, Service: parcel.Service, Reference: parcel.Reference,
		DeliveredAt: parcel.DeliveredAt.String(), SignedBy: parcel.SignedBy,
	}
	if to := parcel.Destination; to != nil {
		proof.Place = strings.TrimSpace(to.PostalCode + " " + to.City + " " + to.Country)
	}
	if format == api.ProofFormatPng {
		content, err := proof.PNG()
		return document{r, "image/png", content}, err
	}
	return document{r, "application/pdf", proof.PDF()}, nil
}
