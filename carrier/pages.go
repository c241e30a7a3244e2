package carrier

import (
	"context"
	"iter"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// AllShipments goes through [Client.ListShipments] page by page, the newest
// shipment first. It makes the next call when its page is needed, and ends with
// the first error, which comes with a zero Shipment; at the latest after
// [resilience.DefaultMaxPages] pages.
//
//	for shipment, err := range client.AllShipments(ctx, carrier.ListShipmentsParams{}) {
//		if err != nil {
//			return err
//		}
//		…
//	}
func (c *Client) AllShipments(ctx context.Context, params ListShipmentsParams, opts ...CallOption) iter.Seq2[Shipment, error] {
	return func(yield func(Shipment, error) bool) {
		pages := resilience.Pages(0, func(cursor string) (*ShipmentList, string, error) {
			next := params
			if cursor != "" {
				next.Cursor = &cursor
			}
			list, err := c.ListShipments(ctx, next, opts...)
			if err != nil {
				return nil, "", err
			}
			return list, list.NextCursor, nil
		})
		for list, err := range pages {
			if err != nil {
				yield(Shipment{}, err)
				return
			}
			for _, s := range list.Items {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}
