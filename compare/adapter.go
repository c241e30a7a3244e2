package main

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

// send is what the libraries differ in: it sends a request in the library's way.
// The body is nil for a GET.
type send func(req *http.Request, body []byte) (*http.Response, error)

// adapter does with a library what its users do around it: make the request,
// look at the status, read and decode the body. It adds no retry, no limit and
// no key.
type adapter struct {
	base  string
	send  send
	close func()
}

func (a *adapter) Close() error {
	if a.close != nil {
		a.close()
	}
	return nil
}

func (a *adapter) do(ctx context.Context, method, path, key string, body []byte) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", conformance.APIKey)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return a.send(req, body)
}

func (a *adapter) Track(ctx context.Context, number string) conformance.Result {
	return decode("status")(a.do(ctx, http.MethodGet, "/tracking/"+url.PathEscape(number), "", nil))
}

func (a *adapter) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	r := decode("id")(a.do(ctx, http.MethodPost, "/shipments", key, order))
	r.Key = key
	return r
}

func (a *adapter) Label(ctx context.Context, shipmentID string, w io.Writer) conformance.Result {
	resp, err := a.do(ctx, http.MethodGet, "/shipments/"+shipmentID+"/label", "", nil)
	r, err := tell(resp, err)
	if resp != nil && resp.Body != nil {
		defer func() { _ = resp.Body.Close() }()
		if err == nil {
			_, err = io.Copy(w, resp.Body)
		}
	}
	r.Err = err
	return r
}

// decode reads an answer to its end, and the member that counts.
func decode(member string) func(*http.Response, error) conformance.Result {
	return func(resp *http.Response, err error) conformance.Result {
		r, err := tell(resp, err)
		if resp != nil && resp.Body != nil {
			content, readErr := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				err = readErr
			}
			if err == nil {
				var document map[string]any
				err = json.Unmarshal(content, &document)
				r.Value, _ = document[member].(string)
			}
		}
		r.Err = err
		return r
	}
}

// tell copies what a response says, and makes a status above 299 an error.
func tell(resp *http.Response, err error) (conformance.Result, error) {
	if resp == nil {
		return conformance.Result{}, err
	}
	if err == nil && resp.StatusCode > 299 {
		err = fmt.Errorf("the carrier answered %s", resp.Status)
	}
	return conformance.Result{StatusCode: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id")}, err
}
