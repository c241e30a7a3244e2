package mockcarrier

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/label"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// labelLife is how long a label is kept.
const labelLife = 90 * 24 * time.Hour

// GetLabel answers with the labels of a shipment, whole or the range that is
// asked for.
func (h handlers) GetLabel(ctx context.Context, req server.GetLabelRequestObject) (server.GetLabelResponseObject, error) {
	if r := parameters(api.NewGetLabelRequest(req.ShipmentID, req.Params)); r != nil {
		return nil, r
	}
	x := exchangeOf(ctx)
	s, r := h.world.get(x.account, req.ShipmentID)
	if r != nil {
		return nil, r
	}
	now := h.now()
	ready := s.ready.Add(h.config.labelTime)
	if named(s.request.Reference, referenceLabelPending) {
		ready = ready.Add(labelWait)
	}
	switch {
	case !s.cancelledAt.IsZero():
		return nil, refuse(http.StatusConflict, "shipment_cancelled", "Shipment cancelled",
			"%s was cancelled at %s.", s.id, s.cancelledAt.UTC().Format(time.RFC3339))
	case now.Before(ready):
		wait := strconv.Itoa(seconds(ready.Sub(now)))
		return server.GetLabel202JSONResponse{
			Body:    api.DocumentPending{Status: api.DocumentStatusPending, ReadyAt: moment(ready)},
			Headers: server.GetLabel202ResponseHeaders{RetryAfter: &wait},
		}, nil
	case now.After(s.ready.Add(labelLife)):
		return nil, refuse(http.StatusGone, "label_expired", "Label no longer available",
			"The label of %s was removed 90 days after it was made.", s.id)
	}
	format := api.LabelFormatPdf
	if req.Params.Format != nil {
		format = *req.Params.Format
	}
	return newDocument(x.r, s, format)
}

// document is a label, or a proof of delivery, in one of its formats.
type document struct {
	request     *http.Request
	contentType string
	content     []byte
}

func newDocument(r *http.Request, s shipment, format api.LabelFormat) (document, error) {
	labels := make([]label.Label, len(s.parcels))
	for i, number := range s.parcels {
		labels[i] = label.Label{
			TrackingNumber: number, Service: s.request.Service, Reference: s.request.Reference,
			From: addressLines(s.request.From), To: addressLines(s.request.To),
			Weight: weightText(s.request.Parcels[i].Weight), Parcel: i + 1, Of: len(s.parcels),
			Blank: named(s.request.Reference, referenceLabelBlank),
		}
	}
	switch format {
	case api.LabelFormatZpl:
		return document{r, "application/zpl", label.ZPL(labels)}, nil
	case api.LabelFormatPng:
		content, err := label.PNG(labels)
		return document{r, "image/png", content}, err
	}
	return document{r, "application/pdf", label.PDF(labels)}, nil
}

// VisitGetLabelResponse writes the label.
func (d document) VisitGetLabelResponse(w http.ResponseWriter) error { return d.write(w) }

// VisitGetProofOfDeliveryResponse writes the proof.
func (d document) VisitGetProofOfDeliveryResponse(w http.ResponseWriter) error { return d.write(w) }

// write writes the document, or what conditions and ranges in the request leave
// of it. For HEAD it does so too: its length is to be known.
func (d document) write(w http.ResponseWriter) error {
	r := *d.request
	r.Method = http.MethodGet
	w.Header().Set("Content-Type", d.contentType)
	w.Header().Set("ETag", etagOf(d.content))
	http.ServeContent(w, &r, "", time.Time{}, bytes.NewReader(d.content))
	return nil
}
