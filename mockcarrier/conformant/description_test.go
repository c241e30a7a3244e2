package conformant

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// baseURL is that of every carrier in memory.
const baseURL = "http://carrier.test/v1"

// description is the API's, and what of it has been seen.
type description struct {
	*openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // "createShipment 201"
}

func load(t *testing.T) *description {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../openapi/carrier.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = openapi3.Servers{{URL: baseURL}}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"application/pdf", "application/zpl", "image/png"} {
		openapi3filter.RegisterBodyDecoder(document, openapi3filter.FileBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", firstLine)
	return &description{T: doc, router: router, seen: map[string]bool{}}
}

// operations returns each operation by its operationId.
func (d *description) operations() map[string]operation {
	all := map[string]operation{}
	for path, item := range d.Paths.Map() {
		for method, op := range item.Operations() {
			all[op.OperationID] = operation{op, method, path}
		}
	}
	return all
}

type operation struct {
	*openapi3.Operation
	method, path string
}

// statuses are those that the description has an answer for.
func (o operation) statuses() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.Responses.Map())), func(s string) bool { return s == "default" })
}

// checkAnswer says how an answer breaks the description; nil if it does not, or
// if no operation is for the request. The body is the answer's.
func (d *description) checkAnswer(r *http.Request, resp *http.Response, body []byte) error {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return nil
	}
	d.mu.Lock()
	d.seen[fmt.Sprint(route.Operation.OperationID, " ", resp.StatusCode)] = true
	d.mu.Unlock()
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
}

// checkRequest says how a request breaks the description.
func (d *description) checkRequest(r *http.Request) error {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true},
	})
}

// account sends requests to a carrier, and holds each answer to the description.
type account struct {
	*mockcarrier.Server
	t      *testing.T
	api    *description
	client *http.Client
	key    string
	keys   int
	odd    func(error) bool // whether a breach is meant to be; nil if none is
}

func (d *description) start(t *testing.T, opts ...mockcarrier.Option) *account {
	t.Helper()
	s := mockcarrier.StartInMemory(t, append([]mockcarrier.Option{mockcarrier.WithUnmatchedAllowed()}, opts...)...)
	if s.URL != baseURL {
		t.Fatalf("it is at %s", s.URL)
	}
	return &account{Server: s, t: t, api: d, client: s.Client(), key: mockcarrier.APIKey}
}

func (a *account) request(method, path, body string, headers ...string) *http.Request {
	a.t.Helper()
	req, err := http.NewRequest(method, baseURL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", a.key)
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return req
}

// send sends a request and wants a status, unless it is 0.
func (a *account) send(req *http.Request, want int) (*http.Response, []byte) {
	a.t.Helper()
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if want != 0 && resp.StatusCode != want {
		a.t.Errorf("%s %s: got %s, want %d: %s", req.Method, req.URL.Path, resp.Status, want, body)
	}
	switch err := a.api.checkAnswer(req, resp, body); {
	case a.odd != nil && (err == nil || !a.odd(err)):
		a.t.Errorf("%s %s is not as odd as it should be: %v", req.Method, req.URL.Path, err)
	case a.odd == nil && err != nil:
		a.t.Errorf("%s %s: %v\n%s", req.Method, req.URL.Path, err, body)
	}
	return resp, body
}

func (a *account) get(path string, want int, headers ...string) *http.Response {
	a.t.Helper()
	resp, _ := a.send(a.request("GET", path, "", headers...), want)
	return resp
}

func (a *account) post(path, body string, want int, headers ...string) {
	a.t.Helper()
	a.send(a.request("POST", path, body, headers...), want)
}

// buy makes a shipment with a key of its own.
func (a *account) buy(body string, want int, headers ...string) {
	a.t.Helper()
	a.keys++
	a.post("/shipments", body, want, append([]string{"Idempotency-Key", strconv.Itoa(a.keys)}, headers...)...)
}
