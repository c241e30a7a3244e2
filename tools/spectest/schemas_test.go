package spectest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// sides says on which side of the API a shared schema is used.
type sides struct{ request, response bool }

// usage follows every reference from the operations.
func usage(doc *openapi3.T) map[string]sides {
	used := map[string]sides{}
	var follow func(ref *openapi3.SchemaRef, mark func(*sides) *bool)
	follow = func(ref *openapi3.SchemaRef, mark func(*sides) *bool) {
		if ref == nil {
			return
		}
		if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
			s := used[name]
			if *mark(&s) {
				return
			}
			*mark(&s) = true
			used[name] = s
		}
		for _, p := range ref.Value.Properties {
			follow(p, mark)
		}
		follow(ref.Value.Items, mark)
		for _, list := range []openapi3.SchemaRefs{ref.Value.AllOf, ref.Value.OneOf, ref.Value.AnyOf} {
			for _, sub := range list {
				follow(sub, mark)
			}
		}
	}
	request := func(s *sides) *bool { return &s.request }
	response := func(s *sides) *bool { return &s.response }
	for _, op := range operations(doc) {
		for _, p := range op.Parameters {
			follow(p.Value.Schema, request)
		}
		if op.RequestBody != nil {
			for _, m := range op.RequestBody.Value.Content {
				follow(m.Schema, request)
			}
		}
		for _, r := range op.Responses.Map() {
			for _, m := range r.Value.Content {
				follow(m.Schema, response)
			}
		}
	}
	return used
}

// Requests are strict: what the carrier does not know is a mistake, and is
// found before anything is bought.
func TestRequestSchemasAreStrict(t *testing.T) {
	doc := load(t)
	used := usage(doc)
	if !used["ShipmentRequest"].request || !used["TaxId"].request {
		t.Fatal("the references are not followed")
	}
	for name, side := range used {
		s := doc.Components.Schemas[name].Value
		if !side.request || side.response || !s.Type.Is("object") {
			continue
		}
		if has := s.AdditionalProperties.Has; has == nil || *has {
			t.Errorf("%s is for requests only and needs additionalProperties: false", name)
		}
		if len(s.Required) == 0 {
			t.Errorf("%s requires nothing", name)
		}
		for member, p := range s.Properties {
			if unlimited(p.Value) {
				t.Errorf("%s.%s has no limit", name, member)
			}
		}
	}
}

// unlimited holds for strings without a largest length, and numbers and lists
// without a largest value or size.
func unlimited(s *openapi3.Schema) bool {
	switch {
	case s.Type.Is("string"):
		return s.MaxLength == nil && len(s.Enum) == 0 && s.Pattern == ""
	case s.Type.Is("number"), s.Type.Is("integer"):
		return s.Min == nil || s.Max == nil
	case s.Type.Is("array"):
		return s.MaxItems == nil
	}
	return false
}

// Answers are open: what is missing, null or new is no error. Value types that
// requests use as well, such as Money, are the exception.
func TestResponseSchemasAreOpen(t *testing.T) {
	doc := load(t)
	used := usage(doc)
	if !used["Tracking"].response || !used["FieldProblem"].response {
		t.Fatal("the references are not followed")
	}
	for name, side := range used {
		s := doc.Components.Schemas[name].Value
		if side.request || !side.response {
			continue
		}
		if len(s.Required) > 0 {
			t.Errorf("%s requires %q", name, s.Required)
		}
		if s.AdditionalProperties.Has != nil || s.AdditionalProperties.Schema != nil {
			t.Errorf("%s says something about members that it does not know", name)
		}
		if len(s.Enum) > 0 && !s.Nullable {
			t.Errorf("%s is an enumeration and not nullable", name)
		}
		for member, p := range s.Properties {
			if leaf := p.Ref == "" && len(p.Value.AllOf) == 0; leaf && !p.Value.Nullable {
				t.Errorf("%s.%s is not nullable", name, member)
			}
			if len(p.Value.Enum) > 0 && p.Ref == "" && len(p.Value.AllOf) == 0 {
				t.Errorf("%s.%s is an enumeration without a name", name, member)
			}
		}
	}
}

func TestOpenEnumerationsSaySo(t *testing.T) {
	doc := load(t)
	for name, side := range usage(doc) {
		s := doc.Components.Schemas[name].Value
		if len(s.Enum) > 0 && side.response && !side.request && !strings.Contains(s.Description, "New values may come") {
			t.Errorf("%s does not say that new values may come", name)
		}
	}
}

// Descriptions become documentation in Go, so each member has one.
func TestEverySchemaIsDescribed(t *testing.T) {
	doc := load(t)
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		report(t, undescribed(name, doc.Components.Schemas[name].Value))
	}
	for name, p := range doc.Components.Headers {
		if !strings.HasSuffix(p.Value.Description, ".") || p.Value.Example == nil {
			t.Errorf("header %s needs a description and an example", name)
		}
	}
}

func undescribed(name string, s *openapi3.Schema) []string {
	var findings []string
	add := func(format string, args ...any) {
		findings = append(findings, fmt.Sprintf(format, args...))
	}
	if !strings.HasSuffix(s.Description, ".") {
		add("%s needs a description in whole sentences", name)
	}
	for member, p := range s.Properties {
		if !strings.HasSuffix(p.Value.Description, ".") {
			add("%s.%s needs a description in whole sentences", name, member)
		}
		inline := p.Value
		if inline.Type.Is("array") && inline.Items.Ref == "" {
			inline = inline.Items.Value
		}
		if p.Ref == "" && (len(inline.Properties) > 0 || len(inline.AllOf) > 1 || len(inline.OneOf) > 0) {
			add("%s.%s is a schema without a name", name, member)
		}
	}
	return findings
}

func TestAnUndescribedMemberIsFound(t *testing.T) {
	for name, spoil := range map[string]func(*openapi3.Schema){
		"schema":  func(s *openapi3.Schema) { s.Description = "" },
		"member":  func(s *openapi3.Schema) { s.Properties["city"].Value.Description = "the town" },
		"no name": func(s *openapi3.Schema) { s.Properties["city"].Value.Properties = openapi3.Schemas{"x": {}} },
		"list no name": func(s *openapi3.Schema) {
			s.Properties["taxIds"].Value.Items = openapi3.NewObjectSchema().WithProperty("x", openapi3.NewStringSchema()).NewRef()
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := load(t).Components.Schemas["Address"].Value
			spoil(address)
			if len(undescribed("Address", address)) == 0 {
				t.Error("not found")
			}
		})
	}
}
