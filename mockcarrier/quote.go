package mockcarrier

import (
	"context"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// ValidateShipment answers with what CreateShipment would make of a request, and
// makes nothing.
func (h handlers) ValidateShipment(ctx context.Context, req server.ValidateShipmentRequestObject) (server.ValidateShipmentResponseObject, error) {
	x := exchangeOf(ctx)
	s, r := h.world.draft(x.account, *req.Body, h.now(), workOn(x.r, *req.Body), h.config.uniqueReferences)
	if r != nil {
		return nil, r
	}
	return server.ValidateShipment200JSONResponse{Body: api.ShipmentQuote{
		Service: s.request.Service, Charge: &s.charge, EstimatedDelivery: s.estimate(), Warnings: warnings(s.request),
	}}, nil
}
