package carrier_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// canned answers every request with the same bytes, at the least cost.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: c.status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}},
		Body:          io.NopCloser(bytes.NewReader(c.body)),
		ContentLength: int64(len(c.body)),
	}, nil
}

const baseURL = "https://api.carrier.example/v1"

var fourEvents = []byte(`{"trackingNumber":"BK1001TR","status":"in_transit","events":[` +
	`{"at":"2026-11-27T08:15:00+03:00","status":"label_created","location":"Istanbul"},` +
	`{"at":"2026-11-27T16:40:00+03:00","status":"picked_up","location":"Istanbul"},` +
	`{"at":"2026-11-28T02:05:00+03:00","status":"in_transit","location":"Istanbul hub"},` +
	`{"at":"2026-11-28T09:30:00+03:00","status":"in_transit","location":"Ankara hub"}]}`)

var made = []byte(`{"id":"shp_1","status":"created","reference":"order-1001","service":"standard",` +
	`"trackingNumber":"BK2001TR","parcels":[{"trackingNumber":"BK2001TR"}],"createdAt":"2026-11-28T09:30:00+03:00"}`)

// byHand is the call that a service would write without any SDK: the floor
// that the whole stack is measured against.
func byHand(ctx context.Context, hc *http.Client, base, method, path, key string, body, into any) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, r)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "carrier-go/"+carrier.Version)
	req.Header.Set("X-Api-Key", "secret")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// The whole stack, everything on, may cost a few allocations more than a call
// by hand, and no more. Allocations are exact, so this holds on any machine.
func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	order := smallestOrder("order-1001")
	key := carrier.DeriveIdempotencyKey("createShipment", "order-1001", 1)
	for _, test := range []struct {
		name   string
		answer canned
		hand   func(context.Context, *http.Client) error
		sdk    func(context.Context, *carrier.Client) error
		more   float64
	}{
		{
			"GET", canned{200, fourEvents},
			func(ctx context.Context, hc *http.Client) error {
				return byHand(ctx, hc, baseURL, "GET", "/tracking/BK1001TR", "", nil, new(carrier.Tracking))
			},
			func(ctx context.Context, c *carrier.Client) error {
				_, err := c.GetTracking(ctx, "BK1001TR")
				return err
			}, 6,
		},
		{
			"keyed POST", canned{201, made},
			func(ctx context.Context, hc *http.Client) error {
				return byHand(ctx, hc, baseURL, "POST", "/shipments", key, order, new(carrier.Shipment))
			},
			func(ctx context.Context, c *carrier.Client) error {
				_, err := c.CreateShipment(ctx, order, carrier.WithIdempotencyKey(key))
				return err
			}, 8,
		},
		{
			"POST with a key of its own", canned{201, made},
			func(ctx context.Context, hc *http.Client) error {
				return byHand(ctx, hc, baseURL, "POST", "/shipments", key, order, new(carrier.Shipment))
			},
			func(ctx context.Context, c *carrier.Client) error {
				_, err := c.CreateShipment(ctx, order)
				return err
			}, 8,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			hc := &http.Client{Transport: test.answer}
			client := newClient(t, baseURL, carrier.WithTransport(test.answer), carrier.WithAPIKey("secret"))
			ctx := t.Context()
			hand := testing.AllocsPerRun(500, func() {
				if err := test.hand(ctx, hc); err != nil {
					t.Fatal(err)
				}
			})
			sdk := testing.AllocsPerRun(500, func() {
				if err := test.sdk(ctx, client); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("by hand %.0f allocations, through the SDK %.0f", hand, sdk)
			if sdk > hand+test.more {
				t.Errorf("the SDK costs %.0f allocations more than a call by hand, and %.0f are allowed", sdk-hand, test.more)
			}
		})
	}
}

func smallestOrder(reference string) carrier.ShipmentRequest {
	var r carrier.ShipmentRequest
	address := `{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"}`
	body := `{"reference":"` + reference + `","service":"standard","from":` + address + `,"to":` + address +
		`,"parcels":[{"weight":{"value":1.2,"unit":"kg"}}]}`
	if err := json.NewDecoder(strings.NewReader(body)).Decode(&r); err != nil {
		panic(err)
	}
	return r
}

func newClient(t testing.TB, baseURL string, opts ...carrier.Option) *carrier.Client {
	t.Helper()
	c, err := carrier.New(baseURL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
