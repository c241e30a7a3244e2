package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// plain is a call by hand: net/http as it comes, and no limit but the context.
type plain struct {
	base string
	http http.Client
}

func newPlain(baseURL string) conformance.Client { return &plain{base: baseURL} }

func (c *plain) do(ctx context.Context, method, path string, body []byte, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", conformance.APIKey)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	return c.http.Do(req)
}

// decode reads an answer.
func decode(resp *http.Response, err error, member string) (r conformance.Result) {
	if err != nil {
		return conformance.Result{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	r.StatusCode, r.RequestID = resp.StatusCode, resp.Header.Get("X-Request-Id")
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("carrier answered %s", resp.Status)
	}
	var document map[string]any
	if err == nil {
		err = json.Unmarshal(content, &document)
	}
	r.Value, _ = document[member].(string)
	r.Err = err
	return r
}

func (c *plain) Track(ctx context.Context, number string) conformance.Result {
	resp, err := c.do(ctx, "GET", "/tracking/"+url.PathEscape(number), nil, "")
	return decode(resp, err, "status")
}

func (c *plain) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	resp, err := c.do(ctx, "POST", "/shipments", order, key)
	r := decode(resp, err, "id")
	r.Key = key
	return r
}

func (c *plain) Label(ctx context.Context, shipmentID string, w io.Writer) conformance.Result {
	resp, err := c.do(ctx, "GET", "/shipments/"+shipmentID+"/label", nil, "")
	if err != nil {
		return conformance.Result{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return conformance.Result{Err: fmt.Errorf("carrier answered %s", resp.Status), StatusCode: resp.StatusCode}
	}
	_, err = io.Copy(w, resp.Body)
	return conformance.Result{Err: err, StatusCode: resp.StatusCode}
}
