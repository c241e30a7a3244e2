package spectest

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// load reads the spec afresh, so that a test may change its copy.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	loader.Context = t.Context()
	doc, err := loader.LoadFromFile(filepath.Join("..", "..", "openapi", "carrier.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operation is one operation of the spec with its place.
type operation struct {
	method, path string
	*openapi3.Operation
}

func (o operation) String() string { return cmp.Or(o.OperationID, o.method+" "+o.path) }

// operations returns all of them, in the order of path and method.
func operations(doc *openapi3.T) []operation {
	var all []operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		methods := doc.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			all = append(all, operation{method, path, methods[method]})
		}
	}
	return all
}

// find returns the operation with this id.
func find(t *testing.T, doc *openapi3.T, id string) operation {
	t.Helper()
	for _, op := range operations(doc) {
		if op.OperationID == id {
			return op
		}
	}
	t.Fatalf("the spec has no operation %q", id)
	return operation{}
}

// report fails the test with one line for each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

func TestSpecIsValid(t *testing.T) {
	doc := load(t)
	err := doc.Validate(t.Context(),
		openapi3.EnableExamplesValidation(),
		openapi3.EnableSchemaFormatValidation(),
		openapi3.EnableSchemaPatternValidation(),
		openapi3.ProhibitExtensionsWithRef(),
	)
	if err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.0.3" {
		t.Errorf("openapi is %s, want 3.0.3: real carriers' specs are, and every generator reads it", doc.OpenAPI)
	}
	for _, s := range doc.Servers {
		if !strings.HasSuffix(s.URL, "/v1") {
			t.Errorf("server %s does not end in /v1", s.URL)
		}
	}
}
