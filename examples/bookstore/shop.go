package main

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// shop is what the handlers share.
type shop struct {
	carrier  *carrier.Client
	orders   *orderBook
	tokens   directory
	cfg      config
	log      *slog.Logger
	stopping atomic.Bool
}

// handler returns the service: its routes, and what is around all of them.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api/shipments/{trackingNumber}", s.forStaff(s.cfg.trackTimeout, s.getParcel))
	mux.Handle("POST /api/orders/{orderId}/shipment", s.forStaff(s.cfg.buyTimeout, s.buyShipment))
	mux.Handle("GET /api/orders/{orderId}/shipment", s.forStaff(s.cfg.trackTimeout, s.getShipment))
	mux.HandleFunc("GET /livez", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	return withRequestID(s.logRequests(s.recoverPanics(unmatched(mux))))
}

// forStaff is what every route of staff has around it, the outermost first.
func (s *shop) forStaff(limit time.Duration, h action) http.Handler {
	return s.requireRole(roleStaff, within(limit, readBody(s.answer(h))))
}
