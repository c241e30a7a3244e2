package spectest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// decode reads a table of cases.
func decode[T any](t *testing.T, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", file)
	}
	return rows
}

// The facts that others build on. Operations may be added to the spec; these
// may not change without a new version of the API.
func TestOperationsOfTheContract(t *testing.T) {
	type row struct {
		ID, Method, Path, Safety, Group string
		Timeout, AttemptTimeout         string
		Stream                          bool
		Parameters, Statuses, Codes     []string
	}
	doc := load(t)
	for _, want := range decode[row](t, "operations.json") {
		t.Run(want.ID, func(t *testing.T) {
			op := find(t, doc, want.ID)
			if op.method != want.Method || op.path != want.Path {
				t.Errorf("is %s %s, want %s %s", op.method, op.path, want.Method, want.Path)
			}
			for name, value := range map[string]string{
				"x-safety": want.Safety, "x-group": want.Group,
				"x-timeout": want.Timeout, "x-attempt-timeout": want.AttemptTimeout,
			} {
				if got, _ := op.Extensions[name].(string); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if got, _ := op.Extensions["x-stream"].(bool); got != want.Stream {
				t.Errorf("x-stream is %v, want %v", got, want.Stream)
			}
			var parameters []string
			for _, p := range op.Parameters {
				parameters = append(parameters, p.Value.In+" "+p.Value.Name)
			}
			if !slices.Equal(parameters, want.Parameters) {
				t.Errorf("parameters are %q, want %q", parameters, want.Parameters)
			}
			for _, status := range want.Statuses {
				if op.Responses.Value(status) == nil {
					t.Errorf("has no %s", status)
				}
			}
			codes := problemCodes(op)
			for _, code := range want.Codes {
				if !codes[code] {
					t.Errorf("no example has the code %s", code)
				}
			}
		})
	}
}

// problemCodes returns the codes that the examples of its errors have.
func problemCodes(op operation) map[string]bool {
	codes := map[string]bool{}
	for _, r := range op.Responses.Map() {
		m := r.Value.Content[problemJSON]
		if m == nil {
			continue
		}
		for _, e := range m.Examples {
			problem, _ := e.Value.Value.(map[string]any)
			code, _ := problem["code"].(string)
			codes[code] = true
		}
	}
	return codes
}

func TestAnswersOfTheContract(t *testing.T) {
	doc := load(t)
	for _, tt := range []struct {
		id, status, mediaType, schema string
	}{
		{"getTracking", "200", "application/json", "Tracking"},
		{"trackBatch", "200", "application/json", "BatchResult"},
		{"createShipment", "201", "application/json", "Shipment"},
		{"createShipment", "202", "application/json", "Shipment"},
		{"getShipment", "200", "application/json", "Shipment"},
		{"listShipments", "200", "application/json", "ShipmentList"},
		{"cancelShipment", "200", "application/json", "Shipment"},
		{"cancelShipment", "202", "application/json", "Shipment"},
		{"getLabel", "202", "application/json", "DocumentPending"},
		{"getStatus", "200", "application/json", "Status"},
		{"searchTracking", "200", "application/json", "TrackingList"},
		{"exportTrackingEvents", "200", "application/x-ndjson", "ExportedEvent"},
		{"getProofOfDelivery", "202", "application/json", "DocumentPending"},
		{"validateShipment", "200", "application/json", "ShipmentQuote"},
		{"quoteRates", "200", "application/json", "RateList"},
		{"createPickup", "201", "application/json", "Pickup"},
		{"cancelPickup", "200", "application/json", "Pickup"},
		{"createManifest", "201", "application/json", "Manifest"},
		{"validateAddress", "200", "application/json", "AddressCheck"},
		{"listServicePoints", "200", "application/json", "ServicePointList"},
		{"createSubscription", "201", "application/json", "Subscription"},
		{"listSubscriptions", "200", "application/json", "SubscriptionList"},
	} {
		m := find(t, doc, tt.id).Responses.Value(tt.status).Value.Content[tt.mediaType]
		if m == nil || m.Schema.Ref != "#/components/schemas/"+tt.schema {
			t.Errorf("%s %s is not %s of %s", tt.id, tt.status, tt.mediaType, tt.schema)
		}
	}

	label := find(t, doc, "getLabel").Responses
	for _, mediaType := range []string{"application/pdf", "application/zpl", "image/png"} {
		m := label.Value("200").Value.Content[mediaType]
		if m == nil || m.Schema.Value.Format != "binary" {
			t.Errorf("the label is not binary as %s", mediaType)
		}
	}
	for id, header := range map[string][2]string{
		"getTracking": {"200", "ETag"}, "getLabel": {"200", "Accept-Ranges"}, "createShipment": {"201", "Idempotency-Replayed"},
	} {
		if find(t, doc, id).Responses.Value(header[0]).Value.Headers[header[1]] == nil {
			t.Errorf("%s %s has no header %s", id, header[0], header[1])
		}
	}
	if label.Value("202").Value.Headers["Retry-After"] == nil || label.Value("200").Value.Headers["ETag"] == nil {
		t.Error("the label needs Retry-After on 202 and ETag on 200")
	}
}

func TestCallbackOfTheContract(t *testing.T) {
	callbacks := find(t, load(t), "createSubscription").Callbacks
	if callbacks["trackingUpdated"] == nil {
		t.Fatal("createSubscription has no callback trackingUpdated")
	}
	post := callbacks["trackingUpdated"].Value.Value("{$request.body#/url}").Post
	if p := post.Parameters.GetByInAndName("header", "Carrier-Signature"); p == nil || !p.Required {
		t.Error("the callback does not require Carrier-Signature")
	}
	if m := post.RequestBody.Value.Content["application/json"]; m == nil || m.Schema.Ref != "#/components/schemas/TrackingUpdate" {
		t.Error("the callback's body is not a TrackingUpdate")
	}
}

// A subscription's secrets are never printed by the Go client, for which the
// spec says what they are, and never answered.
func TestSecretsOfSubscriptions(t *testing.T) {
	schemas := load(t).Components.Schemas
	request := schemas["SubscriptionRequest"].Value.Properties
	if f := request["secret"].Value.Format; f != "password" {
		t.Errorf("secret has the format %q", f)
	}
	if f := request["secrets"].Value.Items.Value.Format; f != "password" {
		t.Errorf("secrets have the format %q", f)
	}
	for name := range schemas["Subscription"].Value.Properties {
		if strings.HasPrefix(name, "secret") {
			t.Errorf("an answer has %s", name)
		}
	}
}

func TestTrackingStatusesOfTheContract(t *testing.T) {
	want := []any{
		"unknown", "label_created", "picked_up", "in_transit", "out_for_delivery", "available_for_pickup", "delivery_attempted",
		"delivered", "delayed", "exception", "return_to_sender", "returned", "cancelled", "lost", "expired",
	}
	if got := load(t).Components.Schemas["TrackingStatus"].Value.Enum; !slices.Equal(got, want) {
		t.Errorf("TrackingStatus is %v, want %v", got, want)
	}
}

func TestBodies(t *testing.T) {
	type row struct {
		Name, Schema string
		Valid        bool
		Value        any
	}
	doc := load(t)
	for _, tt := range decode[row](t, "bodies.json") {
		t.Run(tt.Schema+"/"+tt.Name, func(t *testing.T) {
			ref := doc.Components.Schemas[tt.Schema]
			if ref == nil {
				t.Fatalf("there is no schema %s", tt.Schema)
			}
			err := example{tt.Name, ref.Value, tt.Value}.check()
			if valid := err == nil; valid != tt.Valid {
				t.Errorf("valid is %v, want %v: %v", valid, tt.Valid, err)
			}
		})
	}
}

func TestTrackingNumbers(t *testing.T) {
	doc := load(t)
	path := find(t, doc, "getTracking").Parameters[0].Value.Schema.Value
	batch := doc.Components.Schemas["BatchRequest"].Value.Properties["trackingNumbers"].Value.Items.Value
	for value, valid := range map[string]bool{
		"BK1001TR": true, "BK9999TR": true, "MC01TR": true, "bk1001tr": true,
		"1234567890123456789012345678901234567890": true, "12345678901234567890123456789012345678901": false,
		"": false, ".": false, "..": false, "BK1": false, "BK/1001": false, `BK\1001`: false, "BK%2F1001": false,
		"BK 1001": false, "BK1001\n": false, "BK1001Ü": false,
	} {
		for where, schema := range map[string]*openapi3.Schema{"path": path, "batch": batch} {
			if got := schema.VisitJSON(value) == nil; got != valid {
				t.Errorf("%s %q: valid is %v, want %v", where, value, got, valid)
			}
		}
	}
}

// The same parameter means the same everywhere.
func TestPathParametersAgree(t *testing.T) {
	first := map[string]string{}
	for _, op := range operations(load(t)) {
		for _, p := range op.Parameters {
			if p.Value.In != "path" {
				continue
			}
			schema, err := json.Marshal(p.Value.Schema)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s %s", p.Value.Description, schema)
			if want, ok := first[p.Value.Name]; ok && got != want {
				t.Errorf("%s: parameter %s is %s, elsewhere %s", op, p.Value.Name, got, want)
			}
			first[p.Value.Name] = got
		}
	}
}

func TestSecurity(t *testing.T) {
	doc := load(t)
	schemes := doc.Components.SecuritySchemes
	if s := schemes["apiKey"]; s == nil || s.Value.Type != "apiKey" || s.Value.In != "header" || s.Value.Name != "x-api-key" {
		t.Error("apiKey is not the header x-api-key")
	}
	if s := schemes["oauth2"]; s == nil || s.Value.Flows == nil || s.Value.Flows.ClientCredentials == nil || s.Value.Flows.ClientCredentials.TokenURL != "/oauth/token" {
		t.Error("oauth2 is not client credentials from /oauth/token")
	}
	var either []string
	for _, r := range doc.Security {
		either = append(either, slices.Collect(maps.Keys(r))...)
	}
	if !slices.Equal(either, []string{"apiKey", "oauth2"}) {
		t.Errorf("security is %q, want either of the two", either)
	}
}
