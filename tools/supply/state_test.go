package supply

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// allowed are the package-level variables that may do what they do, and why.
var allowed = map[string]string{
	"github.com/carrier-sdk/carrier-go/carrier/resilience.anySuccess": "its address says that no answer is documented, and is only read",
}

// TestState holds the root module to having no global state: a variable of a
// package is set where it is declared, and never again.
func TestState(t *testing.T) {
	unused := maps.Clone(allowed)
	for _, p := range typed(t, root, "./...") {
		for _, f := range mutable(p) {
			if _, ok := allowed[f.variable]; ok {
				delete(unused, f.variable)
				continue
			}
			t.Errorf("%s: %s", f.position, f)
		}
	}
	for variable := range unused {
		t.Errorf("%s is allowed to change, and does not", variable)
	}
}

// TestStateRefuses proves it on a package in which each bad line says so.
func TestStateRefuses(t *testing.T) {
	got := map[string]string{}
	var file string
	for _, p := range typed(t, ".", "./testdata/state") {
		file = p.GoFiles[0]
		for _, f := range mutable(p) {
			line := fmt.Sprint(f.position.Line)
			got[line] = strings.TrimPrefix(got[line]+"; "+f.what, "; ")
		}
	}
	want := map[string]string{}
	for i, line := range strings.Split(string(read(t, file)), "\n") {
		if _, what, ok := strings.Cut(line, "// want: "); ok {
			want[fmt.Sprint(i+1)] = what
		}
	}
	if len(want) == 0 {
		t.Fatal("nothing bad in testdata")
	}
	for line := range maps.Keys(want) {
		if got[line] != want[line] {
			t.Errorf("%s:%s: found %q, want %q", filepath.Base(file), line, got[line], want[line])
		}
		delete(got, line)
	}
	for line, what := range got {
		t.Errorf("%s:%s: found %q, want nothing", filepath.Base(file), line, what)
	}
}

// typed loads packages with their types.
func typed(t *testing.T, dir string, pattern string) []*packages.Package {
	t.Helper()
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:  dir,
	}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
	}
	return found
}

type finding struct {
	position token.Position
	variable string // with its package's path
	what     string
}

func (f finding) String() string { return f.variable + " " + f.what }

// mutable finds the package-level variables of p that change, or that could.
func mutable(p *packages.Package) []finding {
	w := walker{p: p}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		if v, ok := scope.Lookup(name).(*types.Var); ok {
			if held := holds(v.Type(), 0); held != "" {
				w.add(v, v.Pos(), "holds a "+held)
			}
		}
	}
	for _, file := range p.Syntax {
		ast.Inspect(file, w.visit)
	}
	slices.SortFunc(w.found, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	return w.found
}

var changing = regexp.MustCompile(`^(holds )?(sync|sync/atomic|math/rand|math/rand/v2|net/http|time)\.(Mutex|RWMutex|Once|Pool|Map|Cond|WaitGroup|Rand|Client|Transport|Timer|Ticker|Bool|Int32|Int64|Uint32|Uint64|Value|Pointer)$`)

// holds names the type below t whose values are there to change.
func holds(t types.Type, depth int) string {
	if depth > 6 {
		return ""
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil {
		if name := n.Obj().Pkg().Path() + "." + n.Obj().Name(); changing.MatchString(name) {
			return name
		}
		// What a package keeps inside is its own affair: *regexp.Regexp has a pool.
		if depth > 0 || !strings.Contains(n.Obj().Pkg().Path(), "carrier-go") {
			return ""
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return "channel"
	case *types.Pointer:
		return holds(u.Elem(), depth)
	case *types.Map:
		return holds(u.Elem(), depth+1)
	case *types.Slice:
		return holds(u.Elem(), depth+1)
	case *types.Array:
		return holds(u.Elem(), depth+1)
	case *types.Struct:
		for i := range u.NumFields() {
			if held := holds(u.Field(i).Type(), depth+1); held != "" {
				return held
			}
		}
	}
	return ""
}

type walker struct {
	p     *packages.Package
	found []finding
}

func (w *walker) add(v *types.Var, at token.Pos, what string) {
	w.found = append(w.found, finding{w.p.Fset.Position(at), v.Pkg().Path() + "." + v.Name(), what})
}

// touch records what happens to the variable that e is, or is a part of.
func (w *walker) touch(e ast.Expr, what string) {
	if v := w.variable(e); v != nil {
		w.add(v, e.Pos(), what)
	}
}

// variable returns the package-level variable at the root of e, of any package.
func (w *walker) variable(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := w.p.TypesInfo.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
				return v
			}
			e = x.X
		case *ast.Ident:
			v, ok := w.p.TypesInfo.Uses[x].(*types.Var)
			if ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				return v
			}
			return nil
		default:
			return nil
		}
	}
}

func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			w.touch(e, "is assigned")
		}
	case *ast.IncDecStmt:
		w.touch(n.X, "is counted")
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if e != nil && n.Tok == token.ASSIGN {
				w.touch(e, "is assigned")
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.touch(n.X, "has its address taken")
		}
	case *ast.SendStmt:
		w.touch(n.Chan, "is sent to")
	case *ast.CallExpr:
		w.call(n)
	}
	return true
}

var inPlace = regexp.MustCompile(`^(maps\.(Copy|DeleteFunc|Insert)|slices\.(Sort.*|Reverse|Delete.*|Insert|Replace|Compact.*)|sort\..*|rand\.Shuffle)$`)

// call looks at calls that change their first argument, or their receiver.
func (w *walker) call(c *ast.CallExpr) {
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		if b, ok := w.p.TypesInfo.Uses[f].(*types.Builtin); ok && slices.Contains([]string{"delete", "clear", "copy"}, b.Name()) {
			w.touch(c.Args[0], "goes through "+b.Name())
		}
	case *ast.SelectorExpr:
		if s, ok := w.p.TypesInfo.Selections[f]; ok && s.Kind() == types.MethodVal {
			_, byPointer := s.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
			_, isPointer := s.Recv().Underlying().(*types.Pointer)
			if byPointer && !isPointer {
				w.touch(f.X, "has its address taken")
			}
			return
		}
		if x, ok := f.X.(*ast.Ident); ok && len(c.Args) > 0 && inPlace.MatchString(x.Name+"."+f.Sel.Name) {
			w.touch(c.Args[0], "goes through "+x.Name+"."+f.Sel.Name)
		}
	}
}
