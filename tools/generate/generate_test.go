package main

import (
	"bytes"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the folder of the real one.
const module = "../.."

// checkout copies what generation reads and writes into a folder of its own.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "carrier", "mockcarrier", "internal", "openapi"} {
		copyTree(t, filepath.Join(module, name), filepath.Join(root, name))
	}
	return root
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		if !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// generated returns every generated file below root.
func generated(t *testing.T, root string) files {
	t.Helper()
	out := files{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was left over", rel)
		}
		if strings.HasSuffix(path, ".gen.go") {
			out[rel], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(a, b files) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func write(t *testing.T, root, path, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// change puts new in place of the first old in a file.
func change(t *testing.T, root, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	write(t, root, path, strings.Replace(string(data), old, new, 1))
}

func must(t *testing.T, root string) {
	t.Helper()
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestSameInputSameBytes(t *testing.T) {
	root := checkout(t)
	first, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if !same(first, second) {
		t.Error("two runs differ")
	}
}

func TestOutputIsClean(t *testing.T) {
	root := checkout(t)
	must(t, root)
	for path, content := range generated(t, root) {
		formatted, err := format.Source(content)
		if err != nil || !bytes.Equal(formatted, content) {
			t.Errorf("%s is not gofmt's (%v)", path, err)
		}
		if !bytes.HasPrefix(content, []byte(header)) {
			t.Errorf("%s does not say that it is generated", path)
		}
	}
	command(t, root, "go", "vet", "./carrier/api", "./carrier", "./mockcarrier/internal/server")
}

func TestWhateverWasThere(t *testing.T) {
	root := checkout(t)
	must(t, root)
	want := generated(t, root)

	if err := os.Remove(filepath.Join(root, apiFile)); err != nil {
		t.Fatal(err)
	}
	write(t, root, methodsFile, "<<<<<<< garbage")
	write(t, root, modelsFile, "")
	write(t, root, "carrier/api/older.gen.go", header+"\npackage api\n\ntype Address int\n")
	must(t, root)
	if have := generated(t, root); !same(have, want) {
		t.Errorf("files are %v, want %v", have.paths(), want.paths())
	}
}

func TestCheckWritesNothing(t *testing.T) {
	root := checkout(t)
	must(t, root)
	if err := run(root, true); err != nil {
		t.Errorf("just generated: %v", err)
	}
	change(t, root, specFile, "version: 1.0.0", "version: 1.0.1")
	before := generated(t, root)
	err := run(root, true)
	if err == nil || !strings.Contains(err.Error(), factsFile) || strings.Contains(err.Error(), apiFile) {
		t.Errorf("error is %v, want one that names %s alone", err, factsFile)
	}
	if !same(before, generated(t, root)) {
		t.Error("-check has written")
	}
}

func TestFailureChangesNothing(t *testing.T) {
	const api = "openapi/api.cfg.yaml"
	cases := []struct {
		name           string
		path, old, new string
		want           string
	}{
		{"description is no YAML", specFile, "openapi: 3.0.3", "openapi: [3.0.3", ""},
		{"description is not valid", specFile, "version: 1.0.0", "versions: 1.0.0", "version"},
		{"reference to nothing", specFile, "#/components/schemas/Tracking'", "#/components/schemas/Lost'", "Lost"},
		{"reference to another host", specFile, "$ref: '#/components/schemas/Tracking'", "$ref: 'http://127.0.0.1:1/x.yaml#/Tracking'", "refusing"},
		{"unknown safety", specFile, "x-safety: read", "x-safety: often", "x-safety cannot be often"},
		{"safety that is no text", specFile, "x-safety: read", "x-safety: [read]", "x-safety cannot be"},
		{"time limit without a unit", specFile, "x-timeout: 60s", "x-timeout: 60", "x-timeout cannot be 60"},
		{"operation without a name", specFile, "operationId: getStatus", "description: 'x'", ""},
		{"template does not parse", "openapi/templates/requests.tmpl", "{{define \"success\" -}}", "{{define success}}", "client.tmpl"},
		{"template fails", "openapi/templates/requests.tmpl", ".MiddlewareKey", ".NoSuchThing", "NoSuchThing"},
		{"template makes no Go", "openapi/templates/requests.tmpl", "return []*resilience.Operation{", "return []*resilience.Operation{{\"{{\"}}", ""},
		{"template makes Go that does not compile", "openapi/templates/requests.tmpl", "return []*resilience.Operation{", "return []*resilience.Operations{", "Operations"},
		{"methods that do not compile", "openapi/templates/methods.tmpl", "resilience.CallJSON[", "resilience.CallYAML[", "CallYAML"},
		{"template is not there", api, "templates/requests.tmpl", "templates/reqests.tmpl", "reqests.tmpl"},
		{"unknown option", api, "  models: true", "  modells: true", "modells"},
		{"hand-written file does not parse", "carrier/client.go", "package carrier", "package carrier {", "client.go"},
	}
	root := checkout(t)
	must(t, root)
	before := generated(t, root)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			whole, err := os.ReadFile(filepath.Join(root, tc.path))
			if err != nil {
				t.Fatal(err)
			}
			defer write(t, root, tc.path, string(whole))
			change(t, root, tc.path, tc.old, tc.new)
			err = run(root, false)
			if err == nil {
				t.Fatal("no error")
			}
			if reason := oneLine(err); !strings.Contains(reason, tc.want) || strings.Contains(reason, "\n") {
				t.Errorf("reason is %q, want %q in it", reason, tc.want)
			}
			if !same(before, generated(t, root)) {
				t.Error("a file has changed")
			}
		})
	}
}

// A package that is broken elsewhere must not keep its generated files from
// following the description.
func TestBrokenHandWrittenCodeIsNoHindrance(t *testing.T) {
	root := checkout(t)
	must(t, root)
	write(t, root, "carrier/broken.go", "package carrier\n\nvar _ = gone.Away\n")
	change(t, root, specFile, "version: 1.0.0", "version: 1.0.1")
	must(t, root)
	if facts := generated(t, root)[factsFile]; !bytes.Contains(facts, []byte(`"1.0.1"`)) {
		t.Error("nothing was generated")
	}
}

func TestReplaceTakesBack(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.gen.go", "old a")
	if err := os.Mkdir(filepath.Join(root, "b.gen.go"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, root, "c.gen.go", "old c")
	if err := replace(root, files{"a.gen.go": []byte("new a"), "b.gen.go": []byte("new b"), "c.gen.go": []byte("new c"), "d.gen.go": []byte("new d")}); err == nil {
		t.Fatal("a folder was replaced")
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"a.gen.go", "b.gen.go", "c.gen.go"}; !slices.Equal(names, want) {
		t.Errorf("files are %v, want %v", names, want)
	}
	for _, name := range []string{"a", "c"} {
		if data, err := os.ReadFile(filepath.Join(root, name+".gen.go")); err != nil || string(data) != "old "+name {
			t.Errorf("%s.gen.go is %q (%v)", name, data, err)
		}
	}
}
