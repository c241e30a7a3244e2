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
	return all(params.Cursor, func(cursor *string) ([]Shipment, string, error) {
		page := params
		page.Cursor = cursor
		list, err := c.ListShipments(ctx, page, opts...)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.NextCursor, nil
	})
}

// AllTracking goes through [Client.SearchTracking] as [Client.AllShipments] goes
// through the shipments.
func (c *Client) AllTracking(ctx context.Context, params SearchTrackingParams, opts ...CallOption) iter.Seq2[Tracking, error] {
	return all(params.Cursor, func(cursor *string) ([]Tracking, string, error) {
		page := params
		page.Cursor = cursor
		list, err := c.SearchTracking(ctx, page, opts...)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.NextCursor, nil
	})
}

// AllSubscriptions goes through [Client.ListSubscriptions] as
// [Client.AllShipments] goes through the shipments.
func (c *Client) AllSubscriptions(ctx context.Context, params ListSubscriptionsParams, opts ...CallOption) iter.Seq2[Subscription, error] {
	return all(params.Cursor, func(cursor *string) ([]Subscription, string, error) {
		page := params
		page.Cursor = cursor
		list, err := c.ListSubscriptions(ctx, page, opts...)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.NextCursor, nil
	})
}

// all goes through the items of a list page by page, from a cursor on.
func all[T any](first *string, list func(cursor *string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		pages := resilience.Pages(0, func(cursor string) ([]T, string, error) {
			if cursor == "" {
				return list(first)
			}
			return list(&cursor)
		})
		for items, err := range pages {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}
