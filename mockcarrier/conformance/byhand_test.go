package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// fussy is a client that accepts only what it knows.
type fussy struct{ plain }

func (c *fussy) Track(ctx context.Context, number string) conformance.Result {
	resp, err := c.do(ctx, "GET", "/tracking/"+url.PathEscape(number), nil, "")
	var t carrier.Tracking
	if r := strict(resp, err, &t); r.Err != nil {
		return r
	}
	if !t.Status.Valid() || !t.UpdatedAt.HasZone() {
		return conformance.Result{Err: errors.New("an odd parcel")}
	}
	return conformance.Result{Value: string(t.Status)}
}

func (c *fussy) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	resp, err := c.do(ctx, "POST", "/shipments", order, key)
	var s carrier.Shipment
	if r := strict(resp, err, &s); r.Err != nil {
		return r
	}
	if !s.Status.Valid() || !s.CreatedAt.HasZone() {
		return conformance.Result{Err: errors.New("an odd shipment")}
	}
	return conformance.Result{Value: s.ID}
}

func strict(resp *http.Response, err error, to any) conformance.Result {
	if err != nil {
		return conformance.Result{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		return conformance.Result{Err: errors.New(resp.Status)}
	}
	decoder := json.NewDecoder(resp.Body)
	decoder.DisallowUnknownFields()
	return conformance.Result{Err: decoder.Decode(to)}
}

// byHand is a client that writes its requests on a connection, and reads until
// the connection ends, in one piece.
type byHand struct{ plain }

func (c *byHand) Track(ctx context.Context, number string) conformance.Result {
	return c.exchange(ctx, "GET /v1/tracking/"+number, "", "status")
}

func (c *byHand) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	return c.exchange(ctx, "POST /v1/shipments", fmt.Sprintf("Content-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		key, len(order), order), "id")
}

func (c *byHand) exchange(ctx context.Context, line, rest, member string) (r conformance.Result) {
	u, _ := url.Parse(c.base)
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return conformance.Result{Err: err}
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if rest == "" {
		rest = "\r\n"
	}
	_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nX-Api-Key: %s\r\n%s", line, u.Host, conformance.APIKey, rest)
	answer, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		return conformance.Result{Err: err}
	}
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !strings.HasPrefix(string(head), "HTTP/1.1 20") {
		return conformance.Result{Err: errors.New("no success")}
	}
	var document map[string]any
	r.Err = json.Unmarshal(body, &document)
	r.Value, _ = document[member].(string)
	return r
}
