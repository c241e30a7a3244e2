package readme

import (
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
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks looks for what the links of all documents lead to.
func TestLinks(t *testing.T) {
	n := 0
	for _, d := range documents(t, true) {
		for _, l := range d.prose {
			for _, m := range link.FindAllStringSubmatch(l.text, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				n++
				path, heading, _ := strings.Cut(m[1], "#")
				target := d.file
				if path != "" {
					target = filepath.Join(filepath.Dir(d.file), path)
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil {
					t.Errorf("%s:%d: %s is not there", d.file, l.number, m[1])
				} else if heading != "" && !slices.Contains(headings(t, target), heading) {
					t.Errorf("%s:%d: %s has no heading #%s", d.file, l.number, target, heading)
				}
			}
		}
	}
	if n == 0 {
		t.Error("there are no links")
	}
}

// headings returns those of a document, as they are written in links.
func headings(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range takeApart(file, string(text)).prose {
		if name := strings.TrimLeft(l.text, "#"); name != l.text {
			name = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), "")
			all = append(all, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return all
}

// TestTests looks for each test that a document names.
func TestTests(t *testing.T) {
	known := map[string]bool{}
	for _, file := range tracked(t, "*_test.go") {
		for _, f := range functions(t, file) {
			known[f.Name.Name] = true
		}
	}
	named := 0
	for _, d := range documents(t, true) {
		for _, s := range d.spans() {
			if regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z]\w*$`).MatchString(s.text) {
				named++
				if !known[s.text] {
					t.Errorf("%s:%d: there is no %s", d.file, s.number, s.text)
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d tests are named", named)
	}
}

func functions(t *testing.T, file string) []*ast.FuncDecl {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []*ast.FuncDecl
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			all = append(all, f)
		}
	}
	return all
}

// row is one of a table.
type row struct {
	line  int
	cells []string
}

// table returns the rows of the first table of README.md with this first heading.
func table(t *testing.T, first string) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	found := false
	for _, l := range takeApart("README.md", string(text)).prose {
		switch {
		case strings.HasPrefix(l.text, "| "+first+" |"):
			found = true
		case found && !strings.HasPrefix(l.text, "|"):
			return rows
		case found && !strings.HasPrefix(l.text, "|---"):
			rows = append(rows, row{l.number, strings.Split(strings.Trim(l.text, "|"), "|")})
		}
	}
	if rows == nil {
		t.Fatalf("README.md has no table of %s", first)
	}
	return rows
}

// TestGuarantees wants a test for each row.
func TestGuarantees(t *testing.T) {
	for _, r := range table(t, "whatever the carrier does") {
		if len(r.cells) != 3 || !strings.Contains(r.cells[2], "`Test") {
			t.Errorf("README.md:%d: no test proves it", r.line)
		}
	}
}

var option = regexp.MustCompile("`(With\\w+)`( \\*)?")

// TestOptions compares the table with the options of package carrier: their
// names, and whether they are for the client, for a call or (*) for both.
func TestOptions(t *testing.T) {
	wants := map[string]string{}
	for _, file := range tracked(t, "carrier/*.go") {
		if filepath.Dir(file) != "carrier" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, f := range functions(t, file) {
			if !regexp.MustCompile(`^With(out)?[A-Z]`).MatchString(f.Name.Name) || f.Type.Results == nil {
				continue
			}
			if kind, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok {
				wants[f.Name.Name] = kind.Name
			}
		}
	}
	if len(wants) < 15 {
		t.Fatalf("only %d options were found", len(wants))
	}
	for _, r := range table(t, "option") {
		for _, m := range option.FindAllStringSubmatch(r.cells[0], -1) {
			kind, ok := wants[m[1]]
			delete(wants, m[1])
			says := "Option"
			if m[2] != "" {
				says = "SharedOption"
			} else if strings.Contains(r.cells[2], "call only") {
				says = "CallOption"
			}
			if !ok {
				t.Errorf("README.md:%d: there is no %s, or it is there twice", r.line, m[1])
			} else if kind != says {
				t.Errorf("README.md:%d: %s is a %s, and the table says %s", r.line, m[1], kind, says)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		t.Errorf("README.md: the table of options has no %s (%s)", name, wants[name])
	}
}

// TestErrors compares the tables with the errors and outcomes of package carrier.
func TestErrors(t *testing.T) {
	wants := map[string]bool{}
	for _, file := range tracked(t, "carrier/*.go") {
		if filepath.Dir(file) != "carrier" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					if regexp.MustCompile(`^(Err|Outcome)[A-Z]`).MatchString(name.Name) {
						wants[name.Name] = true
					}
				}
			}
			return true
		})
	}
	if len(wants) < 15 {
		t.Fatalf("only %d errors and outcomes were found", len(wants))
	}
	for _, r := range append(table(t, "`Outcome`"), table(t, "`errors.Is`")...) {
		for _, m := range regexp.MustCompile("`((Err|Outcome)\\w+)`").FindAllStringSubmatch(r.cells[0], -1) {
			if !wants[m[1]] {
				t.Errorf("README.md:%d: there is no %s, or it is there twice", r.line, m[1])
			}
			delete(wants, m[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		t.Errorf("README.md: no table has %s", name)
	}
}
