package supply

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestSource holds all modules to what the SDK promises: importing it runs
// nothing, and it is Go all through.
func TestSource(t *testing.T) {
	n := 0
	for _, file := range tracked(t, "*.go", "*.c", "*.h", "*.s", "*.S", "*.cc", "*.cpp", "*.m", "*.syso", "*.swig") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		n++
		report(t, file, forbidden(t, filepath.Join(root, file)))
	}
	if n < 100 {
		t.Errorf("only %d files were looked at", n)
	}
}

func TestSourceRefuses(t *testing.T) { refuses(t, "source/*", forbidden) }

// forbidden returns what a source file has that none may have.
func forbidden(t *testing.T, path string) []string {
	t.Helper()
	if filepath.Ext(path) != ".go" {
		return []string{"is not Go"}
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, i := range file.Imports {
		if i.Path.Value == `"C"` || i.Path.Value == `"unsafe"` {
			found = append(found, "imports "+i.Path.Value)
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, "has an init function")
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") {
				found = append(found, "has a go:linkname")
			}
		}
	}
	return found
}
