package conformant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// firstLine reads an export as its first line, which is what the description
// describes; see lines for the others. An empty export is read as one of an
// empty object.
func firstLine(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	content, err := io.ReadAll(body)
	if err != nil || len(content) == 0 {
		return map[string]any{}, err
	}
	var document any
	err = json.NewDecoder(bytes.NewReader(content)).Decode(&document)
	return document, err
}

// lines holds each line of an export to the description, and returns how many
// there are.
func (a *account) lines(path string) int {
	a.t.Helper()
	schema := a.api.Components.Schemas["ExportedEvent"].Value
	_, body := a.send(a.request("GET", path, ""), 200)
	n := 0
	for line := range bytes.Lines(body) {
		n++
		a.conforms(schema, line)
	}
	return n
}

// conforms holds a document to a schema.
func (a *account) conforms(schema *openapi3.Schema, document []byte) {
	a.t.Helper()
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		a.t.Fatal(err)
	}
	if err := schema.VisitJSON(value); err != nil {
		a.t.Errorf("%v\n%s", err, document)
	}
}

func exports(t *testing.T, api *description) {
	a := api.start(t, atNoon())
	a.lines("/tracking/events")
	for _, service := range []string{"standard", "express", "economy"} {
		a.buy(strings.Replace(smallest, "standard", service, 1), 201)
	}
	a.buy(full(t, api), 201)
	a.post("/shipments/shp_2001/cancel", "", 200)
	a.Advance(200 * time.Hour)
	if n := a.lines("/tracking/events?since=2026-03-02T00:00:00Z"); n < 20 {
		t.Errorf("only %d lines", n)
	}
	a.get("/tracking/events?cursor=none", 400)
	a.get("/tracking/events?since=none", 400)
}

func proofs(t *testing.T, api *description) {
	a := api.start(t)
	const path = "/tracking/BK1002TR/proof-of-delivery"
	for _, format := range []string{"", "?format=pdf", "?format=png"} {
		etag := a.get(path+format, 200).Header.Get("ETag")
		a.get(path+format, 304, "If-None-Match", etag)
	}
	a.get(path, 416, "Range", "bytes=99999999-")
	a.get(path+"?format=zpl", 400)
	a.get("/tracking/BK1001TR/proof-of-delivery", 409)
	a.get("/tracking/BK9999TR/proof-of-delivery", 404)
	a.get("/tracking/MC12/proof-of-delivery", 410)
	slow := api.start(t, mockcarrier.WithLabelTime(time.Minute))
	slow.get(path, 202)
}

func subscriptions(t *testing.T, api *description) {
	a := api.start(t, atNoon())
	const body = `{"url":"https://shop.example/callbacks","secret":"whsec_Zm9vYmFyYmF6cXV4"}`
	a.get("/subscriptions", 200)
	for i, body := range []string{body, body, strings.Replace(body, "{", `{"events":["tracking_delivered"],"description":"x","secrets":["whsec_c2Vjb25kIHNlY3JldA"],`, 1)} {
		a.post("/subscriptions", body, 201, "Idempotency-Key", fmt.Sprint(i))
		a.post("/subscriptions", body, 201, "Idempotency-Key", fmt.Sprint(i))
	}
	a.post("/subscriptions", strings.Replace(body, "shop", "store", 1), 422, "Idempotency-Key", "0")
	a.post("/subscriptions", strings.Replace(body, "https", "http", 1), 422, "Idempotency-Key", "n")
	a.post("/subscriptions", body, 400)
	a.Inject(mockcarrier.Status(409).WithCode("idempotency_in_progress").On("createSubscription").Times(1))
	a.post("/subscriptions", body, 409, "Idempotency-Key", "n")
	a.get("/subscriptions?limit=2", 200)
	a.get("/subscriptions?limit=0", 400)
	a.get("/subscriptions?cursor=none", 400)
	end := func(id string, want int) { a.send(a.request("DELETE", "/subscriptions/"+id, ""), want) }
	end("sub_5001", 204)
	end("sub_5001", 204)
	end("sub_9999", 404)
	end("a.b", 400)
	a.get("/subscriptions", 200)
}

// Each notification is one that the description has, header and body.
func TestNotifications(t *testing.T) {
	api := load(t)
	callback := api.operations()["createSubscription"].Callbacks["trackingUpdated"].Value.Value("{$request.body#/url}").Post
	header := callback.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Carrier-Signature")
	schema := callback.RequestBody.Value.Content["application/json"].Schema.Value
	if header == nil || !header.Required || len(schema.Properties) == 0 {
		t.Fatal("the description has another callback")
	}
	var a *account
	posted := map[string]int{}
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
			!strings.HasPrefix(r.Header.Get(header.Name), "t=") {
			t.Errorf("got %s %v: %v", r.Method, r.Header, err)
		}
		a.conforms(schema, body)
		var update struct {
			ID, Type, OccurredAt string
			Data                 json.RawMessage
		}
		if err := json.Unmarshal(body, &update); err != nil || update.ID == "" || update.OccurredAt == "" || len(update.Data) == 0 {
			t.Errorf("%v in %s", err, body)
		}
		posted[update.Type]++
		w.WriteHeader(http.StatusNoContent)
	})
	a = api.start(t, atNoon(), mockcarrier.WithWebhookHandler(shop))
	a.post("/subscriptions", `{"url":"https://shop.example/callbacks","secret":"whsec_Zm9vYmFyYmF6cXV4"}`, 201, "Idempotency-Key", "k")
	a.buy(smallest, 201)
	a.buy(full(t, api), 201)
	a.buy(smallest, 201)
	a.post("/shipments/shp_2003/cancel", "", 200)
	a.Advance(200 * time.Hour)
	if posted["tracking_updated"] < 10 || posted["tracking_delivered"] < 2 {
		t.Errorf("posted: %v", posted)
	}
}
