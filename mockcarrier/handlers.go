package mockcarrier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// handlers are the operations, on the interface that is generated from the
// spec. What the spec has and they do not is answered with 501.
type handlers struct {
	server.Unimplemented
	*Carrier
}

func newHandlers(c *Carrier) http.Handler {
	write := func(w http.ResponseWriter, r *http.Request, err error) {
		var known *refusal
		if !errors.As(err, &known) {
			panic(err)
		}
		a := known.answer(exchangeOf(r.Context()).requestID)
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body)
	}
	bodies := newBodyTypes()
	strict := server.NewStrictHandlerWithOptions(handlers{Carrier: c},
		[]server.StrictMiddlewareFunc{bodies.middleware},
		server.StrictHTTPServerOptions{
			RequestErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, _ error) {
				write(w, r, bodies.unreadable(exchangeOf(r.Context())))
			},
			ResponseErrorHandlerFunc: write,
		})
	return server.HandlerWithOptions(strict, server.StdHTTPServerOptions{
		BaseURL: basePath,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			write(w, r, malformedParameter(err))
		},
	})
}

// malformedParameter refuses what the generated code could not read.
func malformedParameter(err error) *refusal {
	var format *server.InvalidParamFormatError
	var required *server.RequiredParamError
	var header *server.RequiredHeaderError
	var many *server.TooManyValuesForParamError
	switch {
	case errors.As(err, &format):
		return malformed(format.ParamName, "type", "cannot be read")
	case errors.As(err, &required):
		return malformed(required.ParamName, "required", "is missing")
	case errors.As(err, &header):
		return malformed(header.ParamName, "required", "is missing")
	case errors.As(err, &many):
		return malformed(many.ParamName, "maxItems", "comes too often")
	}
	return refuseStatus(http.StatusBadRequest)
}

// parameters refuses parameters that break the spec's limits, for which it asks
// the request builder that is generated from the spec.
func parameters(_ resilience.Request, err error) *refusal {
	var fields resilience.FieldErrors
	if !errors.As(err, &fields) {
		return nil
	}
	r := malformed(fields[0].Pointer, fields[0].Rule, fields[0].Message)
	r.fields = fields
	return r
}

// GetTracking answers with one parcel.
func (h handlers) GetTracking(ctx context.Context, req server.GetTrackingRequestObject) (server.GetTrackingResponseObject, error) {
	if r := parameters(api.NewGetTrackingRequest(req.TrackingNumber)); r != nil {
		return nil, r
	}
	now := h.now()
	a, r := h.answerTracking(req.TrackingNumber, now)
	if r != nil {
		return nil, r
	}
	if notModified(exchangeOf(ctx).r, a.etag) {
		return server.GetTracking304Response{Headers: server.NotModifiedResponseHeaders{ETag: &a.etag}}, nil
	}
	return a, nil
}

func (h handlers) answerTracking(number string, now time.Time) (trackingAnswer, *refusal) {
	version, steady := h.versionOf(number, now)
	if steady {
		if a, ok := h.rendered.get(version); ok {
			return a, nil
		}
	}
	found, r := h.track(number, now)
	if r != nil {
		return trackingAnswer{}, r
	}
	body := encode(found[0])
	a := trackingAnswer{body, etagOf(body)}
	if steady {
		h.rendered.put(version, a)
	}
	return a, nil
}

// trackingAnswer is a Tracking that was encoded for its ETag already.
type trackingAnswer struct {
	body []byte
	etag string
}

// VisitGetTrackingResponse writes the answer.
func (a trackingAnswer) VisitGetTrackingResponse(w http.ResponseWriter) error {
	header := w.Header()
	header["Content-Type"], header["Etag"] = []string{jsonType}, []string{a.etag}
	_, err := w.Write(a.body)
	return err
}

// TrackBatch answers with several parcels, each of which is found or not.
func (h handlers) TrackBatch(_ context.Context, req server.TrackBatchRequestObject) (server.TrackBatchResponseObject, error) {
	var result api.BatchResult
	for _, number := range req.Body.TrackingNumbers {
		found, r := h.track(number, h.now())
		if r != nil {
			p := r.problem("")
			result.Results = append(result.Results, api.BatchEntry{TrackingNumber: number, Error: &p})
		}
		for i := range found {
			result.Results = append(result.Results, api.BatchEntry{TrackingNumber: number, Tracking: &found[i]})
		}
	}
	return server.TrackBatch200JSONResponse{Body: result}, nil
}

// track returns the parcels of a number, of which there is usually one.
func (c *Carrier) track(number string, now time.Time) ([]api.Tracking, *refusal) {
	if found, r := c.trackScenario(number); found != nil || r != nil {
		return found, r
	}
	if s, ok := c.world.find("", number); ok && !now.Before(s.ready) {
		return []api.Tracking{s.tracking(number, now)}, nil
	}
	return nil, noParcel(number)
}

// CreateShipment makes a shipment, which costs money. That it is done once for
// each key has been seen to before.
func (h handlers) CreateShipment(ctx context.Context, req server.CreateShipmentRequestObject) (server.CreateShipmentResponseObject, error) {
	x := exchangeOf(ctx)
	work := workOn(x.r, *req.Body)
	s, r := h.world.create(x.account, x.key, *req.Body, h.now(), work, h.config.uniqueReferences)
	if r != nil {
		return nil, r
	}
	body := h.present(x.r, s)
	location := basePath + "/shipments/" + s.id
	if work > 0 {
		wait := strconv.Itoa(seconds(work))
		return server.CreateShipment202JSONResponse{Body: body, Headers: server.CreateShipment202ResponseHeaders{
			Location: &location, RetryAfter: &wait,
		}}, nil
	}
	return server.CreateShipment201JSONResponse{Body: body, Headers: server.CreateShipment201ResponseHeaders{
		Location: &location,
	}}, nil
}

// asyncTime is how long a shipment is pending that was asked for by
// "Prefer: respond-async", and labelWait how long a label is that takes its time.
const (
	asyncTime = 2 * time.Second
	labelWait = 2 * time.Second
)

// workOn is how long a shipment is pending.
func workOn(r *http.Request, request api.ShipmentRequest) time.Duration {
	if prefers(r, "respond-async") || named(request.Reference, referenceAsync) {
		return asyncTime
	}
	return 0
}

// GetShipment answers with one shipment.
func (h handlers) GetShipment(ctx context.Context, req server.GetShipmentRequestObject) (server.GetShipmentResponseObject, error) {
	if r := parameters(api.NewGetShipmentRequest(req.ShipmentID)); r != nil {
		return nil, r
	}
	x := exchangeOf(ctx)
	s, r := h.world.get(x.account, req.ShipmentID)
	if r != nil {
		return nil, r
	}
	return server.GetShipment200JSONResponse{Body: h.present(x.r, s)}, nil
}

// ListShipments answers with a page of shipments, the newest first. A cursor
// names the last shipment of the page before, so that shipments that are made
// meanwhile move nothing.
func (h handlers) ListShipments(ctx context.Context, req server.ListShipmentsRequestObject) (server.ListShipmentsResponseObject, error) {
	if r := parameters(api.NewListShipmentsRequest(req.Params)); r != nil {
		return nil, r
	}
	x := exchangeOf(ctx)
	f := filter{
		account: x.account, reference: value(req.Params.Reference), key: value(req.Params.IdempotencyKey), limit: 20,
	}
	if req.Params.Limit != nil {
		f.limit = *req.Params.Limit
	}
	// The run-time of the generated code binds no struct from a query.
	if after := x.r.URL.Query(); after.Has("createdAfter") {
		at, err := time.Parse(time.RFC3339, after.Get("createdAfter"))
		if err != nil {
			return nil, malformed("createdAfter", "format", "must be a date-time")
		}
		f.after = at
	}
	if cursor := req.Params.Cursor; cursor != nil && *cursor == endCursor {
		f.before = 1
	} else if cursor != nil {
		s, r := h.world.get(x.account, lastBefore(*cursor))
		if r != nil {
			return nil, noCursor()
		}
		f.before = s.seq
	}
	page, more := h.world.list(f)
	list := listing[api.Shipment]{Items: make([]api.Shipment, len(page))}
	for i, s := range page {
		list.Items[i] = h.present(x.r, s)
	}
	if more {
		list.NextCursor = cursorBehind(page[len(page)-1].id)
	}
	return list, nil
}

// CancelShipment cancels a shipment, once or again.
func (h handlers) CancelShipment(ctx context.Context, req server.CancelShipmentRequestObject) (server.CancelShipmentResponseObject, error) {
	if r := parameters(api.NewCancelShipmentRequest(req.ShipmentID)); r != nil {
		return nil, r
	}
	x := exchangeOf(ctx)
	s, r := h.world.cancel(x.account, req.ShipmentID, h.now())
	if r != nil {
		return nil, r
	}
	body := h.present(x.r, s)
	if body.Status == api.ShipmentStatusRefundPending {
		return server.CancelShipment202JSONResponse{Body: body}, nil
	}
	return server.CancelShipment200JSONResponse{Body: body}, nil
}

// GetStatus answers that all is well, and that labels may be slow next Sunday.
func (h handlers) GetStatus(context.Context, server.GetStatusRequestObject) (server.GetStatusResponseObject, error) {
	now := h.now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	sunday := midnight.AddDate(0, 0, 7-int(now.Weekday()))
	return server.GetStatus200JSONResponse{Body: api.Status{
		State: api.ServiceStateOperational,
		Time:  moment(now),
		Maintenance: []api.MaintenanceWindow{{
			ID:       "mw_" + sunday.Format("20060102"),
			StartsAt: moment(sunday.Add(hours(1))), EndsAt: moment(sunday.Add(hours(3))),
			Groups: []string{"documents"}, Description: "Labels may take some minutes.",
		}},
	}}, nil
}

// present returns a shipment as the account that made it sees it.
func (c *Carrier) present(r *http.Request, s shipment) api.Shipment {
	now := c.now()
	charge := s.charge
	body := api.Shipment{
		ID: s.id, Status: s.status(now), Reference: s.request.Reference, Service: s.request.Service,
		Charge: &charge, IdempotencyKey: s.key, CreatedAt: moment(s.made),
		ServicePointID: value(s.request.ServicePointID), ShipDate: value(s.request.ShipDate),
	}
	if body.Status == api.ShipmentStatusPending {
		return body
	}
	body.TrackingNumber = s.number
	for i, number := range s.parcels {
		p := s.request.Parcels[i]
		body.Parcels = append(body.Parcels, api.ParcelResult{
			TrackingNumber: number, Reference: value(p.Reference), Weight: &p.Weight, Dimensions: p.Dimensions,
		})
	}
	body.Warnings = warnings(s.request)
	if !s.cancelledAt.IsZero() {
		body.CancelledAt = moment(s.cancelledAt)
		if body.Status == api.ShipmentStatusCancelled || body.Status == api.ShipmentStatusRefunded {
			*body.Charge = euros(0)
		}
		return body
	}
	body.EstimatedDelivery = s.estimate()
	format := api.LabelFormatPdf
	if s.request.LabelFormat != nil {
		format = *s.request.LabelFormat
	}
	body.Labels = []api.Label{{
		Format: format, ExpiresAt: moment(s.ready.Add(labelLife)),
		URL: fmt.Sprintf("%s%s/shipments/%s/label?format=%s", originOf(r), basePath, s.id, format),
	}}
	return body
}

// originOf returns where the client has reached the carrier.
func originOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// prefers says whether a preference is in the Prefer header (RFC 7240).
func prefers(r *http.Request, preference string) bool {
	for _, line := range r.Header.Values("Prefer") {
		for _, p := range strings.Split(line, ",") {
			name, _, _ := strings.Cut(p, ";")
			if strings.EqualFold(strings.TrimSpace(name), preference) {
				return true
			}
		}
	}
	return false
}

func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// notModified says whether If-None-Match has the version.
func notModified(r *http.Request, etag string) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for _, tag := range strings.Split(line, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == etag {
				return true
			}
		}
	}
	return false
}
