package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOtherCarrier generates a client for a carrier of another shape, with
// oapi-codegen alone, into a module of its own, and calls it.
func TestOtherCarrier(t *testing.T) {
	root, err := filepath.Abs(module)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := filepath.Abs("testdata/other/other.yaml")
	if err != nil {
		t.Fatal(err)
	}
	consumer := t.TempDir()
	copyTree(t, filepath.Join(root, "go.sum"), filepath.Join(consumer, "go.sum"))
	copyTree(t, "testdata/other/other_test.go", filepath.Join(consumer, "other/other_test.go"))
	write(t, consumer, "go.mod", fmt.Sprintf(`module example.test/consumer

go 1.26.0

require github.com/carrier-sdk/carrier-go v0.0.0
%s
replace github.com/carrier-sdk/carrier-go => %s
`, requirements(t, root), root))
	out := filepath.Join(consumer, "other/other.gen.go")
	oapi := filepath.Join(t.TempDir(), "oapi-codegen")
	command(t, ".", "go", "build", "-o", oapi, "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen")
	command(t, root, oapi, "-config", "openapi/standalone.cfg.yaml", "-package", "other", "-o", out, spec)

	if list := command(t, consumer, "gofmt", "-l", "."); list != "" {
		t.Errorf("not gofmt's: %s", list)
	}
	command(t, consumer, "go", "vet", "./...")
	command(t, consumer, "go", "test", "./...")
}

// requirements are those of the module, word by word: no proxy is asked.
func requirements(t *testing.T, root string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(regexp.MustCompile(`(?ms)^require \(.*?^\)`).FindAllString(string(data), -1), "\n")
}

// TestDescriptionDrives adds an operation to the description, and nothing else:
// it can be called, and the mock has it.
func TestDescriptionDrives(t *testing.T) {
	root := checkout(t)
	for _, part := range []struct{ file, before string }{
		{"path.yaml", "  /status:\n"},
		{"schemas.yaml", "    BatchRequest:\n"},
	} {
		added, err := os.ReadFile(filepath.Join("testdata/reprint", part.file))
		if err != nil {
			t.Fatal(err)
		}
		change(t, root, specFile, part.before, string(added)+part.before)
	}
	must(t, root)
	copyTree(t, "testdata/reprint/reprint_test.go", filepath.Join(root, "reprint/reprint_test.go"))
	command(t, root, "go", "vet", "./carrier/...", "./reprint")
	command(t, root, "go", "test", "./reprint")
	command(t, root, "go", "build", "./...")
}
