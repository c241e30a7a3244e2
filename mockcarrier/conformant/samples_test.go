package conformant

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// samples makes documents that the description allows. Without random they have
// every member.
type samples struct {
	t      *testing.T
	random *rand.Rand
}

// texts are tried for strings: of those that a schema allows, one is taken. A
// schema that allows none of them needs another one here.
var texts = []string{
	"order-1001", "standard", "34000", "TR", "CH", "EUR", "12.50", "2026-03-02", "+90 212 555 0100", "shop@adabooks.example",
	"490199", "BK1001TR", "Zoë Müller", "東京", "<b>&\"quoted\"</b>", "a", "2026-03-02T12:00:00Z", "shp_2001", "13:00",
}

// given are the members for which not every text will do that a schema allows:
// what there is at the carrier, and what fits another member. A member without
// a text is left out.
var given = map[string]string{
	"/rateId":         "",
	"/servicePointId": "sp_tr_34000_1",
	"/shipmentIds/0":  "shp_2001",
	"/from":           "13:00",
	"/to":             "17:00",
	"/url":            "https://shop.example/callbacks",
}

// full is a request for a shipment with every member that there is.
func full(t *testing.T, api *description) string {
	t.Helper()
	body := api.operations()["createShipment"].RequestBody.Value.Content["application/json"].Schema
	document, err := json.Marshal(samples{t, nil}.document(body, ""))
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// inPath fills in the parameters of a path.
var inPath = strings.NewReplacer("{trackingNumber}", "BK1001TR", "{shipmentId}", "shp_2001",
	"{pickupId}", "pck_3001", "{manifestId}", "mft_4001", "{subscriptionId}", "sub_5001")

// query has the parameters that an operation requires in its query, but for one
// that is left out.
func (o operation) query(t *testing.T, without string) url.Values {
	t.Helper()
	query := url.Values{}
	for _, ref := range o.Parameters {
		if p := ref.Value; p.In == "query" && p.Required && p.Name != without {
			query.Set(p.Name, samples{t, nil}.text(plain(p.Schema), p.Name))
		}
	}
	return query
}

// plain returns the schema that a reference or an allOf of one stands for.
func plain(ref *openapi3.SchemaRef) *openapi3.Schema {
	s := ref.Value
	for len(s.AllOf) == 1 {
		s = s.AllOf[0].Value
	}
	return s
}

// maybe says whether something optional is there.
func (s samples) maybe() bool { return s.random == nil || s.random.IntN(3) > 0 }

func (s samples) pick(n int) int {
	if s.random == nil {
		return 0
	}
	return s.random.IntN(n)
}

func (s samples) document(ref *openapi3.SchemaRef, pointer string) any {
	schema := plain(ref)
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[s.pick(len(schema.Enum))]
	case schema.Type.Is("string"):
		return s.text(schema, pointer)
	case schema.Type.Is("integer"):
		return int(*schema.Min) + s.pick(10)
	case schema.Type.Is("number"):
		return 0.5 + float64(s.pick(100))
	case schema.Type.Is("boolean"):
		return s.pick(2) == 0
	case schema.Type.Is("array"):
		items := []any{}
		for range int(schema.MinItems) + 1 + s.pick(2) {
			items = append(items, s.document(schema.Items, pointer+"/0"))
		}
		if schema.UniqueItems {
			items = items[:1]
		}
		if schema.MaxItems != nil && len(items) > int(*schema.MaxItems) {
			items = items[:*schema.MaxItems]
		}
		return items
	}
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if text, ok := given[pointer+"/"+name]; ok && text == "" {
			continue
		}
		if slices.Contains(schema.Required, name) || s.maybe() {
			object[name] = s.document(schema.Properties[name], pointer+"/"+name)
		}
	}
	return object
}

func (s samples) text(schema *openapi3.Schema, pointer string) string {
	s.t.Helper()
	if text := given[pointer]; text != "" {
		return text
	}
	var good []string
	for _, text := range texts {
		if allows(schema, text) {
			good = append(good, text)
		}
	}
	if len(good) == 0 {
		s.t.Fatalf("no text is allowed at %s: add one to texts", pointer)
	}
	text := good[s.pick(len(good))]
	if s.random != nil && schema.Pattern == "" && schema.MaxLength != nil && s.random.IntN(10) == 0 {
		text = strings.Repeat("é", int(*schema.MaxLength)) // characters count, not bytes
	}
	return text
}

func allows(schema *openapi3.Schema, text string) bool {
	n := uint64(utf8.RuneCountInString(text))
	return n >= schema.MinLength && (schema.MaxLength == nil || n <= *schema.MaxLength) &&
		(schema.Pattern == "" || regexp.MustCompile(schema.Pattern).MatchString(text))
}
