package readme

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const sdk = "github.com/carrier-sdk/carrier-go"

// TestConsumer follows the READMEs as someone does who requires the SDK: gets
// it, from a proxy of files that has this very source as its newest version,
// generates a client from another spec, and compiles the Go that is printed.
func TestConsumer(t *testing.T) {
	if !all {
		t.Skip("make readme-test runs it")
	}
	clone := freshClone(t)
	home := t.TempDir()
	shop := filepath.Join(home, "shop")
	env := goEnv(t, home, pack(t, clone))
	copyFile(t, "../generate/testdata/other/other.yaml", filepath.Join(shop, "other.yaml"))
	execute(t, shop, "go mod init example.com/shop", limits[plainly], "", env...)

	docs, ran := documents(t, false), 0
	for _, s := range scripts(docs) {
		if slices.ContainsFunc(ways, func(w special) bool { return w.way == requires && slices.Contains(s.lines, w.command) }) {
			ran++
			execute(t, shop, strings.Join(s.lines, "\n"), limits[plainly], "", env...)
		}
	}
	if ran < 2 {
		t.Errorf("only %d blocks say how to get the SDK", ran)
	}

	n := 0
	for _, d := range docs {
		for _, b := range d.blocks {
			if b.language != "go" {
				continue
			}
			n++
			source, err := wrapped(b)
			if err != nil {
				t.Errorf("%s:%d: %v", b.file, b.line, err)
				continue
			}
			name := filepath.Join(shop, fmt.Sprintf("block%d", n), "block_test.go")
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(source), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d blocks are Go", n)
	}
	execute(t, shop, "go vet -mod=mod ./...", limits[plainly], "", env...)
}

// pack makes a proxy of files with the root module in it, and returns its folder.
func pack(t *testing.T, clone string) string {
	t.Helper()
	proxy := t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(sdk), "@v")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	const version = "v0.1.0"
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, module.Version{Path: sdk, Version: version}, clone); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(clone, "go.mod"), filepath.Join(folder, version+".mod"))
	for name, text := range map[string]string{"list": version + "\n", version + ".info": `{"Version":"` + version + `"}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// goEnv is for a go command that gets the SDK from proxy and all else from what
// has been downloaded before, into a module cache of its own.
func goEnv(t *testing.T, home, proxy string) []string {
	t.Helper()
	out, err := command(t.Context(), ".", "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(out))
	return []string{
		"GOPROXY=file://" + proxy + ",file://" + known[0] + "/cache/download," + known[1],
		"GOMODCACHE=" + filepath.Join(home, "mod"),
		"GOFLAGS=-modcacherw",
		"GONOSUMDB=" + sdk, "GONOPROXY=none", "GOSUMDB=off",
	}
}

// imports are the packages that the printed Go may use.
var imports = map[string]string{
	"carrier":     sdk + "/carrier",
	"context":     "context",
	"errors":      "errors",
	"fmt":         "fmt",
	"mockcarrier": sdk + "/mockcarrier",
	"other":       "example.com/shop/other",
	"resilience":  sdk + "/carrier/resilience",
	"synctest":    "testing/synctest",
	"testing":     "testing",
}

// given are the names that a block may take for known.
const given = "var (\n\tctx context.Context\n\tkey, token string\n\torder carrier.ShipmentRequest\n)\n"

// wrapped makes a file of a block: of declarations as they are, of statements in
// a function that uses whatever they declare.
func wrapped(b block) (string, error) {
	body := b.text()
	if !regexp.MustCompile(`(?m)^(func|type|var|const) `).MatchString(body) {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+body+"}", 0)
		if err != nil {
			return "", err
		}
		var uses strings.Builder
		for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
			if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				for _, e := range a.Lhs {
					fmt.Fprintf(&uses, "\t_ = %s\n", e.(*ast.Ident).Name)
				}
			}
		}
		body = "func _() error {\n" + body + strings.ReplaceAll(uses.String(), "\t_ = _\n", "") + "\treturn nil\n}\n"
	}
	var head strings.Builder
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(given + body) {
			fmt.Fprintf(&head, "import %q\n", imports[name])
		}
	}
	return "package block\n\n" + head.String() + "\n" + given + "\n" + body, nil
}
