package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A mutant is one change to one place.
type mutant struct {
	id   int
	file string // base name
	line int
	fn   string // the function it is in: "Doer.setUp"
	text string // the change: "n [< → <=] limit"
}

// key names a mutant in the list of survivors. It has no line number, so that
// it holds while other code is edited.
func (m mutant) key() string { return m.file + " " + m.fn + " " + m.text }

type source struct {
	name    string // of the package
	path    string // its import path
	dir     string
	root    string
	files   map[string][]byte // the rewritten ones, by full name
	mutants []mutant
}

// load reads the package and rewrites its files so that they hold all mutants.
func load(root, pkg string, only []string) (*source, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir:  root,
		Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "./"+pkg)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 || len(loaded[0].Syntax) == 0 {
		return nil, fmt.Errorf("%s does not load: %v", pkg, loaded[0].Errors)
	}
	p := loaded[0]
	s := &source{name: p.Name, path: p.PkgPath, dir: filepath.Join(root, pkg), root: root, files: map[string][]byte{}}
	for _, name := range only {
		if !slices.ContainsFunc(p.CompiledGoFiles, func(f string) bool { return filepath.Base(f) == name }) {
			return nil, fmt.Errorf("%s has no file %s", pkg, name)
		}
	}
	seen := map[string]int{}
	for i, file := range p.Syntax {
		name := p.CompiledGoFiles[i]
		if ast.IsGenerated(file) || len(only) > 0 && !slices.Contains(only, filepath.Base(name)) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f := &finder{text: text, fset: p.Fset, info: p.TypesInfo, file: file, name: name, first: len(s.mutants), seen: seen}
		f.find()
		s.files[name] = f.rewrite()
		s.mutants = append(s.mutants, f.mutants...)
	}
	if len(s.mutants) == 0 {
		return nil, fmt.Errorf("%s has nothing to change", pkg)
	}
	return s, nil
}

// finder finds the places of one file that can be changed.
type finder struct {
	text    []byte
	fset    *token.FileSet
	info    *types.Info
	file    *ast.File
	name    string
	first   int
	seen    map[string]int
	mutants []mutant
	edits   []edit
}

func (f *finder) find() {
	var stack []ast.Node
	ast.Inspect(f.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.BinaryExpr:
			f.binary(n, stack)
		case *ast.UnaryExpr:
			f.unary(n, stack)
		case *ast.IncDecStmt:
			f.step(n, stack)
		case *ast.AssignStmt:
			f.assignment(n, stack)
		case *ast.BranchStmt:
			f.branch(n, stack)
		}
		return true
	})
}

// The comparisons: to the opposite, and to what differs at the border alone.
var comparisons = map[token.Token][]token.Token{
	token.EQL:  {token.NEQ},
	token.NEQ:  {token.EQL},
	token.LSS:  {token.GEQ, token.LEQ},
	token.LEQ:  {token.GTR, token.LSS},
	token.GTR:  {token.LEQ, token.GEQ},
	token.GEQ:  {token.LSS, token.GTR},
	token.LAND: {token.LOR},
	token.LOR:  {token.LAND},
}

var arithmetic = map[token.Token]token.Token{
	token.ADD: token.SUB,
	token.SUB: token.ADD,
	token.MUL: token.QUO,
	token.QUO: token.MUL,
	token.REM: token.MUL,
}

func (f *finder) binary(n *ast.BinaryExpr, stack []ast.Node) {
	if f.value(n) != nil {
		return
	}
	if others := comparisons[n.Op]; others != nil {
		var ids []int
		for _, other := range others {
			ids = append(ids, f.add(n.OpPos, stack, f.change(n, n.Op, other)))
		}
		f.edit(n, func(inside func(ast.Node) string) string {
			left, right := f.plain(n.X), f.plain(n.Y)
			var b, none strings.Builder
			for i, id := range ids {
				fmt.Fprintf(&b, "mutant(%d) && ((%s) %s (%s)) || ", id, left, others[i], right)
				fmt.Fprintf(&none, "!mutant(%d) && ", id)
			}
			return "(" + b.String() + none.String() + "(" + inside(n) + "))"
		})
		return
	}
	if other, ok := arithmetic[n.Op]; ok && f.numeric(n) {
		id := f.add(n.OpPos, stack, f.change(n, n.Op, other))
		f.edit(n, func(inside func(ast.Node) string) string {
			return fmt.Sprintf("mutant%s(%d, %s, %s)", helpers[n.Op], id, inside(n.X), inside(n.Y))
		})
	}
}

func (f *finder) unary(n *ast.UnaryExpr, stack []ast.Node) {
	switch {
	case f.value(n) != nil:
	case n.Op == token.NOT:
		id := f.add(n.OpPos, stack, "[! → ]"+short(f.plain(n.X), 0))
		f.edit(n, func(inside func(ast.Node) string) string {
			return fmt.Sprintf("(mutant(%d) && (%s) || !mutant(%d) && (%s))", id, f.plain(n.X), id, inside(n))
		})
	case n.Op == token.SUB && f.numeric(n):
		id := f.add(n.OpPos, stack, "[- → ]"+short(f.plain(n.X), 0))
		f.edit(n, func(inside func(ast.Node) string) string {
			return fmt.Sprintf("mutantNegative(%d, %s)", id, inside(n.X))
		})
	}
}

// step is x++ and x--. The function literal makes a statement of two, which can
// stand in the head of a loop as well.
func (f *finder) step(n *ast.IncDecStmt, stack []ast.Node) {
	other := token.DEC
	if n.Tok == token.DEC {
		other = token.INC
	}
	id := f.add(n.TokPos, stack, fmt.Sprintf("%s[%s → %s]", short(f.plain(n.X), 0), n.Tok, other))
	f.edit(n, func(inside func(ast.Node) string) string {
		return fmt.Sprintf("func() { if mutant(%d) { %s%s } else { %s } }()", id, f.plain(n.X), other, inside(n))
	})
}

// assignment is x += y and the like: to the opposite, and to x = y.
func (f *finder) assignment(n *ast.AssignStmt, stack []ast.Node) {
	others := map[token.Token]token.Token{
		token.ADD_ASSIGN: token.SUB_ASSIGN,
		token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN,
		token.QUO_ASSIGN: token.MUL_ASSIGN,
		token.REM_ASSIGN: token.MUL_ASSIGN,
	}
	other, ok := others[n.Tok]
	if !ok {
		return
	}
	become := []token.Token{token.ASSIGN}
	if f.numeric(n.Lhs[0]) {
		become = append(become, other)
	}
	var b strings.Builder
	left, right := f.plain(n.Lhs[0]), f.plain(n.Rhs[0])
	for _, op := range become {
		id := f.add(n.TokPos, stack, fmt.Sprintf("%s [%s → %s] %s", short(left, 0), n.Tok, op, short(right, 0)))
		fmt.Fprintf(&b, "if mutant(%d) { %s %s %s } else ", id, left, op, right)
	}
	f.edit(n, func(inside func(ast.Node) string) string {
		return "func() { " + b.String() + "{ " + inside(n) + " } }()"
	})
}

// branch is break and continue inside a loop. A continue that is the only way
// round a loop without a condition stays: the code behind it would not compile.
func (f *finder) branch(n *ast.BranchStmt, stack []ast.Node) {
	if n.Label != nil {
		return
	}
	endless, inLoop := false, false
loop:
	for _, outer := range slices.Backward(stack) {
		switch outer := outer.(type) {
		case *ast.FuncLit, *ast.FuncDecl:
			break loop
		case *ast.ForStmt:
			endless, inLoop = outer.Cond == nil, true
			break loop
		case *ast.RangeStmt:
			inLoop = true
			break loop
		}
	}
	var other token.Token
	switch {
	case !inLoop:
		return
	case n.Tok == token.BREAK:
		other = token.CONTINUE
	case n.Tok == token.CONTINUE && !endless:
		other = token.BREAK
	default:
		return
	}
	id := f.add(n.TokPos, stack, fmt.Sprintf("[%s → %s]", n.Tok, other))
	f.edit(n, func(func(ast.Node) string) string {
		return fmt.Sprintf("if mutant(%d) { %s } else { %s }", id, other, n.Tok)
	})
}

// add counts a mutant and returns its number.
func (f *finder) add(at token.Pos, stack []ast.Node, text string) int {
	m := mutant{
		id:   f.first + len(f.mutants),
		file: filepath.Base(f.name),
		line: f.fset.Position(at).Line,
		fn:   function(stack),
		text: text,
	}
	f.seen[m.key()]++
	if n := f.seen[m.key()]; n > 1 {
		m.text += fmt.Sprintf(" #%d", n)
	}
	f.mutants = append(f.mutants, m)
	return m.id
}

// change writes a binary expression with its operator in brackets.
func (f *finder) change(n *ast.BinaryExpr, from, to token.Token) string {
	const side = 50
	return fmt.Sprintf("%s [%s → %s] %s", short(f.plain(n.X), -side), from, to, short(f.plain(n.Y), side))
}

// short writes code on one line: its first runes, or its last if most is negative.
func short(code string, most int) string {
	r := []rune(strings.Join(strings.Fields(strings.ReplaceAll(code, "`", "'")), " "))
	switch {
	case most > 0 && len(r) > most:
		return string(r[:most]) + "…"
	case most < 0 && len(r) > -most:
		return "…" + string(r[len(r)+most:])
	}
	return string(r)
}

// function names what the innermost declaration of the stack declares.
func function(stack []ast.Node) string {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil {
				return n.Name.Name
			}
			t := n.Recv.List[0].Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			if index, ok := t.(*ast.IndexExpr); ok {
				t = index.X
			}
			return types.ExprString(t) + "." + n.Name.Name
		case *ast.ValueSpec:
			if len(stack) > 3 && stack[1] == stack[len(stack)-1] {
				return n.Names[0].Name
			}
		}
	}
	return "package"
}

func (f *finder) value(n ast.Expr) constant.Value { return f.info.Types[n].Value }

func (f *finder) numeric(n ast.Expr) bool {
	t := f.info.TypeOf(n)
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}
