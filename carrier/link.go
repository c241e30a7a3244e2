package carrier

import (
	"context"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// Fetch gets what a link in one of the carrier's answers leads to. A link of
// the origin of the base URL is fetched like any other call. One of any other
// origin is fetched behind the egress guard: without API key, token, client
// certificate, or any header of [WithHeader] that the client has. Redirects are
// not followed: see [RedirectError]. A link that is refused Is [ErrBlocked].
//
// For a label prefer [Client.GetLabel], whose address does not expire.
func (c *Client) Fetch(ctx context.Context, link string, opts ...CallOption) (*Stream, error) {
	return c.doer.Fetch(ctx, link, opts...)
}

// FetchLabel fetches a label of a [Shipment] by its address; see [Client.Fetch].
// After ExpiresAt of the label the carrier answers 403, 404 or 410.
func (c *Client) FetchLabel(ctx context.Context, label Label, opts ...CallOption) (*Stream, error) {
	return c.doer.Fetch(ctx, label.URL, opts...)
}

// RedirectError is part of the [Error] for an answer that sends the client
// elsewhere. To go there on purpose, give its Location to [Client.Fetch].
type RedirectError = resilience.RedirectError
