package mockcarrier_test

import (
	"os"
	"strings"
	"testing"
)

// The test that the package's documentation begins with is one that runs.
func TestDocumentationIsCompiled(t *testing.T) {
	source, err := os.ReadFile("bought_once_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(source), "\nfunc TestBoughtOnce(")
	if !ok {
		t.Fatal("no TestBoughtOnce")
	}
	var want strings.Builder
	for line := range strings.Lines("func TestBoughtOnce(" + code) {
		if line != "\n" {
			line = "\t" + line
		}
		want.WriteString("//" + line)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc.go does not have\n%s", want.String())
	}
}
