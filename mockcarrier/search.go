package mockcarrier

import (
	"context"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// SearchTracking answers with a page of the parcels of a reference, those of the
// newest shipment first.
func (h handlers) SearchTracking(ctx context.Context, req server.SearchTrackingRequestObject) (server.SearchTrackingResponseObject, error) {
	if r := parameters(api.NewSearchTrackingRequest(req.Params)); r != nil {
		return nil, r
	}
	list := listing[api.Tracking]{Items: []api.Tracking{}}
	f := filter{account: exchangeOf(ctx).account, reference: req.Params.Reference, limit: 20}
	if req.Params.Limit != nil {
		f.limit = *req.Params.Limit
	}
	last := ""
	if cursor := req.Params.Cursor; cursor != nil {
		if *cursor == endCursor {
			return list, nil
		}
		last = lastBefore(*cursor)
		s, ok := h.world.find("", last)
		if !ok || s.account != f.account {
			return nil, noCursor()
		}
		f.before = s.seq + 1
	}
	now := h.now()
	found, more := h.world.search(f, last, now)
	for _, p := range found {
		list.Items = append(list.Items, p.of.tracking(p.number, now))
	}
	if more {
		list.NextCursor = cursorBehind(found[len(found)-1].number)
	}
	return list, nil
}

// parcel is one of a shipment's.
type parcel struct {
	of     shipment
	number string
}

// search returns parcels of the filter's shipments that can be tracked, the
// newest shipment first, from the one behind last on, and whether there are
// more.
func (w *world) search(f filter, last string, now time.Time) (page []parcel, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.shipments) {
		if !f.takes(s) || now.Before(s.ready) {
			continue
		}
		for _, number := range s.parcels[slices.Index(s.parcels, last)+1:] {
			if len(page) == f.limit {
				return page, true
			}
			page = append(page, parcel{*s, number})
		}
	}
	return page, false
}
