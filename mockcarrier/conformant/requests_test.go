package conformant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// breach is a value that breaks the description in one place.
type breach struct {
	what    string
	pointer string
	value   any
	open    bool // the description allows it, since the schema is that of answers too
}

// gone is the value of a member that is left out.
type gone struct{}

// breaches returns what is wrong with a document in one place, for each place
// and each rule of a schema.
func (s samples) breaches(ref *openapi3.SchemaRef, pointer string) []breach {
	schema := plain(ref)
	var list []breach
	add := func(what string, value any) { list = append(list, breach{what: what, pointer: pointer, value: value}) }
	wrong := map[string]any{"text": "x", "number": 7, "truth": true, "array": []any{}, "object": map[string]any{}}
	switch {
	case schema.Type.Is("string"):
		delete(wrong, "text")
		list = append(list, s.textBreaches(schema, pointer)...)
	case schema.Type.Is("number"), schema.Type.Is("integer"):
		delete(wrong, "number")
		list = append(list, numberBreaches(schema, pointer)...)
	case schema.Type.Is("boolean"):
		delete(wrong, "truth")
	case schema.Type.Is("array"):
		delete(wrong, "array")
		item := s.document(schema.Items, pointer)
		for n := range int(schema.MinItems) {
			add("minItems", slices.Repeat([]any{item}, n))
		}
		if schema.MaxItems != nil {
			add("maxItems", distinct(item, int(*schema.MaxItems)+1))
		}
		if schema.UniqueItems {
			add("uniqueItems", []any{item, item})
		}
		for _, b := range s.breaches(schema.Items, pointer+"/0") {
			b.value = []any{b.value}
			list = append(list, b)
		}
	case schema.Type.Is("object"):
		delete(wrong, "object")
		list = append(list, s.objectBreaches(schema, pointer)...)
	}
	if !schema.Nullable {
		add("null", nil)
	}
	for _, what := range slices.Sorted(maps.Keys(wrong)) {
		add("type: "+what, wrong[what])
	}
	return list
}

func (s samples) objectBreaches(schema *openapi3.Schema, pointer string) []breach {
	var list []breach
	with := func(name string, value any) map[string]any {
		object := map[string]any{}
		for other, ref := range schema.Properties {
			object[other] = s.document(ref, pointer+"/"+other)
		}
		if object[name] = value; value == any(gone{}) {
			delete(object, name)
		}
		return object
	}
	for _, name := range schema.Required {
		list = append(list, breach{what: "required", pointer: pointer + "/" + name, value: with(name, gone{})})
	}
	closed := schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has
	for name, at := range map[string]string{"colour": "colour", "a/b~c": "a~1b~0c"} {
		list = append(list, breach{what: "unknown", pointer: pointer + "/" + at, value: with(name, 1), open: !closed})
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		for _, b := range s.breaches(schema.Properties[name], pointer+"/"+name) {
			b.value = with(name, b.value)
			list = append(list, b)
		}
		if upper := strings.ToUpper(name); upper != name { // names are case-sensitive
			object := with(name, gone{})
			object[upper] = s.document(schema.Properties[name], pointer)
			list = append(list, breach{what: "case", pointer: pointer + "/" + upper, value: object, open: !closed && !slices.Contains(schema.Required, name)})
		}
	}
	return list
}

func (s samples) textBreaches(schema *openapi3.Schema, pointer string) []breach {
	var list []breach
	for what, text := range badTexts(schema) {
		list = append(list, breach{what: what, pointer: pointer, value: text})
	}
	return list
}

// badTexts returns texts that a schema does not allow, by the rule that they break.
func badTexts(schema *openapi3.Schema) map[string]string {
	bad := map[string]string{}
	if schema.MinLength > 0 {
		bad["minLength"] = strings.Repeat("A", int(schema.MinLength)-1)
	}
	if schema.MaxLength != nil {
		bad["maxLength"] = strings.Repeat("1", int(*schema.MaxLength)+1)
	}
	if len(schema.Enum) > 0 {
		bad["enum"] = "nonsense"
	}
	if schema.Pattern != "" {
		length := max(int(schema.MinLength), 1)
		for _, c := range []string{"!", "é", "\x7f"} {
			if text := strings.Repeat(c, length); !allows(schema, text) {
				bad["pattern "+strconv.Quote(c)] = text
			}
		}
	}
	return bad
}

func numberBreaches(schema *openapi3.Schema, pointer string) []breach {
	var list []breach
	add := func(what string, value any) { list = append(list, breach{what: what, pointer: pointer, value: value}) }
	if schema.Min != nil {
		add("minimum", *schema.Min-1)
		if schema.ExclusiveMin.IsTrue() {
			add("exclusiveMinimum", *schema.Min)
		}
	}
	if schema.Max != nil {
		add("maximum", *schema.Max+1)
	}
	if schema.Type.Is("integer") {
		add("integer", *schema.Min+0.5)
	}
	return list
}

// distinct returns n items, which differ where they are texts.
func distinct(item any, n int) []any {
	items := make([]any, n)
	for i := range items {
		items[i] = item
		if text, ok := item.(string); ok {
			items[i] = text + strconv.Itoa(i)
		}
	}
	return items
}

// problem is what the tests look at in problem details.
type problem struct {
	Code   string
	Errors []struct{ Pointer, Code, Message string }
}

func (p problem) pointers() []string {
	var list []string
	for _, e := range p.Errors {
		list = append(list, e.Pointer)
	}
	return list
}

// refused sends a request that breaks the description, and wants a refusal that
// points at the place.
func (a *account) refused(req *http.Request, status int, b breach) {
	a.t.Helper()
	body, _ := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	if err := a.api.checkRequest(req); (err == nil) != b.open {
		a.t.Errorf("%s at %s: the description says %v", b.what, b.pointer, err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	bought := len(a.Ledger())
	_, answer := a.send(req, status)
	var p problem
	if err := json.Unmarshal(answer, &p); err != nil {
		a.t.Fatal(err)
	}
	if !slices.Contains(p.pointers(), b.pointer) {
		a.t.Errorf("%s at %q: the problem points at %q: %s", b.what, b.pointer, p.pointers(), answer)
	}
	if len(a.Ledger()) != bought {
		a.t.Errorf("%s at %s: a shipment was bought", b.what, b.pointer)
	}
}

// Each body that breaks one rule in one place is refused, with a pointer to it.
func TestEveryWrongBody(t *testing.T) {
	api := load(t)
	for id, op := range api.operations() {
		if op.RequestBody == nil {
			continue
		}
		t.Run(id, func(t *testing.T) {
			a := api.start(t, atNoon())
			a.buy(smallest, 201) // for what is about a shipment
			schema := op.RequestBody.Value.Content["application/json"].Schema
			good, _ := json.Marshal(samples{t, nil}.document(schema, ""))
			a.send(a.request(op.method, op.path, string(good), "Idempotency-Key", "good"), 0)
			if status := a.Requests()[1].Status; status >= 300 {
				t.Fatalf("the right body is answered with %d: %s", status, good)
			}
			list := samples{t, nil}.breaches(schema, "")
			for i, b := range list {
				body, err := json.Marshal(b.value)
				if err != nil {
					t.Fatal(err)
				}
				a.refused(a.request(op.method, op.path, string(body), "Idempotency-Key", fmt.Sprint("k", i)), 422, b)
			}
			t.Logf("%d wrong bodies", len(list))
		})
	}
}

// Each parameter that breaks a rule is refused, with its name.
func TestEveryWrongParameter(t *testing.T) {
	api := load(t)
	for id, op := range api.operations() {
		for _, ref := range op.Parameters {
			param, schema := ref.Value, plain(ref.Value.Schema)
			t.Run(id+"/"+param.Name, func(t *testing.T) {
				a := api.start(t)
				bad := badTexts(schema)
				if schema.Type.Is("integer") {
					for _, b := range numberBreaches(schema, "") {
						bad[b.what] = fmt.Sprint(b.value)
					}
					bad["type"] = "x"
				}
				if schema.Format == "date-time" {
					bad["format"] = "yesterday"
				}
				for what, text := range bad {
					path, header, query := op.path, []string{"Idempotency-Key", "k"}, op.query(t, param.Name)
					switch param.In {
					case "path":
						path = strings.Replace(path, "{"+param.Name+"}", url.PathEscape(text), 1)
						if text == "" {
							continue // another path
						}
					case "query":
						query.Set(param.Name, text)
					case "header":
						if strings.ContainsAny(text, "\x7f") {
							continue // no HTTP
						}
						header = []string{param.Name, text}
					}
					path = inPath.Replace(path) + "?" + query.Encode()
					body := ""
					if op.RequestBody != nil {
						body = smallest
					}
					a.refused(a.request(op.method, path, body, header...), 400, breach{what: what, pointer: param.Name})
				}
			})
		}
	}
}

// Bodies with any number of rules broken at random: the carrier and the
// description are of one mind.
func TestRandomBodies(t *testing.T) {
	api := load(t)
	schema := api.operations()["createShipment"].RequestBody.Value.Content["application/json"].Schema
	a := api.start(t)
	random := rand.New(rand.NewPCG(1, 0))
	s := samples{t, random}
	wrong := s.breaches(schema, "")
	taken := 0
	for i := range 400 {
		document := s.document(schema, "")
		if i%2 == 1 {
			b := wrong[random.IntN(len(wrong))]
			if b.open {
				continue // stricter than the description
			}
			document = b.value
		}
		body, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		req := a.request("POST", "/shipments", string(body), "Idempotency-Key", fmt.Sprint(i))
		says := api.checkRequest(req)
		req.Body = io.NopCloser(bytes.NewReader(body))
		resp, answer := a.send(req, 0)
		if (resp.StatusCode == 201) != (says == nil) {
			t.Errorf("got %s: %s\nthe description says %v of\n%s", resp.Status, answer, says, body)
		}
		if resp.StatusCode == 201 {
			taken++
		}
	}
	if taken != 200 {
		t.Errorf("%d of 200 right bodies were taken", taken)
	}
}
