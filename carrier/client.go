package carrier

import (
	"fmt"
	"io"
	"slices"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// Client calls the carrier's API. It has one method for each operation of the
// spec. It is safe for use by many goroutines. Make one with [New].
type Client struct {
	doer *resilience.Doer
}

// New returns a client for the API at baseURL, like
// "https://api.carrier.example/v1": scheme http or https, a host, perhaps a
// path, and neither query, fragment nor user info. It does not connect.
//
// Without options everything is on, with its defaults, and no credentials are
// sent. What is wrong with baseURL or an option Is [ErrInvalidRequest].
func New(baseURL string, opts ...Option) (*Client, error) {
	all := slices.Concat([]Option{
		resilience.WithBaseURL(baseURL),
		resilience.WithOperations(api.Operations()...),
		resilience.WithUserAgent(defaultUserAgent),
	}, opts)
	doer, err := resilience.New(all...)
	if err != nil {
		return nil, err
	}
	return &Client{doer: doer}, nil
}

// Close closes the idle connections of the client's own transport, never of
// one that was given by [WithTransport]. Calls after it are
// [ErrInvalidRequest]; those under way go on. Twice is fine.
func (c *Client) Close() error { return c.doer.Close() }

// BreakerState returns where the breaker of a group of operations stands, such
// as "tracking" or "shipments": the tag that the operation has in the spec. It is
// a look without effects, fit for a readiness check.
func (c *Client) BreakerState(group string) BreakerState { return c.doer.BreakerState(group) }

// Doer returns the pipeline behind the client, for requests that the spec does
// not have: its Do and HTTPClient share the client's limits and credentials.
func (c *Client) Doer() *resilience.Doer { return c.doer }

// Format writes "carrier.Client" for every verb: a client holds credentials.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "carrier.Client") }
