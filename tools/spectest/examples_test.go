package spectest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// example is a value of the spec with the schema that it has to satisfy.
type example struct {
	at     string
	schema *openapi3.Schema
	value  any
}

// check returns what is wrong with the example, or nil.
func (e example) check() error {
	if e.schema == nil {
		return fmt.Errorf("%s: an example without a schema", e.at)
	}
	opts := []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation(), openapi3.MultiErrors()}
	if err := e.schema.VisitJSON(e.value, opts...); err != nil {
		return fmt.Errorf("%s: %w", e.at, err)
	}
	return nil
}

// collector gathers every example of a spec, each once.
type collector struct {
	found []example
	seen  map[*openapi3.Schema]bool
}

func examples(doc *openapi3.T) []example {
	c := &collector{seen: map[*openapi3.Schema]bool{}}
	for _, op := range operations(doc) {
		for _, p := range op.Parameters {
			c.parameter(op.String(), p.Value)
		}
		if op.RequestBody != nil {
			c.content(op.String()+" request", op.RequestBody.Value.Content)
		}
		for status, r := range op.Responses.Map() {
			c.response(op.String()+" "+status, r.Value)
		}
	}
	if doc.Components != nil {
		for name, p := range doc.Components.Parameters {
			c.parameter("components/parameters/"+name, p.Value)
		}
		for name, h := range doc.Components.Headers {
			c.parameter("components/headers/"+name, &h.Value.Parameter)
		}
		for name, b := range doc.Components.RequestBodies {
			c.content("components/requestBodies/"+name, b.Value.Content)
		}
		for name, r := range doc.Components.Responses {
			c.response("components/responses/"+name, r.Value)
		}
		for name, s := range doc.Components.Schemas {
			c.schema("components/schemas/"+name, s)
		}
	}
	slices.SortFunc(c.found, func(a, b example) int { return strings.Compare(a.at, b.at) })
	return c.found
}

func (c *collector) response(at string, r *openapi3.Response) {
	for name, h := range r.Headers {
		c.parameter(at+" header "+name, &h.Value.Parameter)
	}
	c.content(at, r.Content)
}

func (c *collector) content(at string, content openapi3.Content) {
	for mediaType, m := range content {
		c.values(at+" "+mediaType, m.Schema, m.Example, m.Examples)
	}
}

func (c *collector) parameter(at string, p *openapi3.Parameter) {
	c.values(at+" "+p.Name, p.Schema, p.Example, p.Examples)
	c.content(at+" "+p.Name, p.Content)
}

func (c *collector) values(at string, ref *openapi3.SchemaRef, one any, named openapi3.Examples) {
	var schema *openapi3.Schema
	if ref != nil {
		schema = ref.Value
		c.schema(at+" schema", ref)
	}
	if one != nil {
		c.found = append(c.found, example{at, schema, one})
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		c.found = append(c.found, example{at + " " + name, schema, named[name].Value.Value})
	}
}

// schema gathers the examples and the defaults that stand in schemas.
func (c *collector) schema(at string, ref *openapi3.SchemaRef) {
	if ref == nil || c.seen[ref.Value] {
		return
	}
	s := ref.Value
	c.seen[s] = true
	if s.Example != nil {
		c.found = append(c.found, example{at + " example", s, s.Example})
	}
	if s.Default != nil {
		c.found = append(c.found, example{at + " default", s, s.Default})
	}
	for name, p := range s.Properties {
		c.schema(at+"/"+name, p)
	}
	c.schema(at+"/items", s.Items)
	c.schema(at+"/additionalProperties", s.AdditionalProperties.Schema)
	for _, list := range []openapi3.SchemaRefs{s.AllOf, s.OneOf, s.AnyOf} {
		for _, sub := range list {
			c.schema(at, sub)
		}
	}
}

func TestEveryExampleSatisfiesItsSchema(t *testing.T) {
	all := examples(load(t))
	if len(all) == 0 {
		t.Fatal("no example was found")
	}
	for _, e := range all {
		if err := e.check(); err != nil {
			t.Error(err)
		}
	}
}

// A check that finds nothing must be able to find something.
func TestABadExampleIsFound(t *testing.T) {
	shipment := func(doc *openapi3.T) map[string]any {
		return doc.Components.Examples["SmallestShipmentRequest"].Value.Value.(map[string]any)
	}
	tests := map[string]func(doc *openapi3.T){
		"request: member that does not exist": func(doc *openapi3.T) { shipment(doc)["colour"] = "red" },
		"request: member missing":             func(doc *openapi3.T) { delete(shipment(doc), "service") },
		"request: deep limit":                 func(doc *openapi3.T) { shipment(doc)["to"].(map[string]any)["line1"] = strings.Repeat("x", 36) },
		"response: wrong type": func(doc *openapi3.T) {
			doc.Components.Examples["ShipmentCreated"].Value.Value.(map[string]any)["id"] = 7.0
		},
		"response: not a date-time": func(doc *openapi3.T) {
			doc.Components.Examples["ShipmentCreated"].Value.Value.(map[string]any)["createdAt"] = "yesterday"
		},
		"parameter: breaks its pattern":         func(doc *openapi3.T) { find(t, doc, "getTracking").Parameters[0].Value.Example = "BK/1001" },
		"error: wrong type":                     func(doc *openapi3.T) { problemExample(doc, "Unauthorized")["status"] = "401" },
		"header: wrong type":                    func(doc *openapi3.T) { doc.Components.Headers["RetryAfter"].Value.Example = 2.0 },
		"schema: example that breaks the limit": func(doc *openapi3.T) { doc.Components.Schemas["CountryCode"].Value.Example = "Turkey" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			doc := load(t)
			spoil(doc)
			for _, e := range examples(doc) {
				if e.check() != nil {
					return
				}
			}
			t.Error("the bad example was not found")
		})
	}
}

func TestEverySharedExampleIsUsed(t *testing.T) {
	doc := load(t)
	used := map[string]bool{}
	note := func(content openapi3.Content) {
		for _, m := range content {
			for _, e := range m.Examples {
				used[strings.TrimPrefix(e.Ref, "#/components/examples/")] = true
			}
		}
	}
	for _, op := range operations(doc) {
		if op.RequestBody != nil {
			note(op.RequestBody.Value.Content)
		}
		for _, r := range op.Responses.Map() {
			note(r.Value.Content)
		}
	}
	for name := range doc.Components.Examples {
		if !used[name] {
			t.Errorf("components/examples/%s is not used", name)
		}
	}
}

// problemExample returns the value of the first example of a shared error.
func problemExample(doc *openapi3.T, response string) map[string]any {
	named := doc.Components.Responses[response].Value.Content["application/problem+json"].Examples
	return named[slices.Min(slices.Collect(maps.Keys(named)))].Value.Value.(map[string]any)
}
