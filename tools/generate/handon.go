package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// names are the package-level names of the hand-written part of package carrier.
type names struct {
	taken map[string]bool
	// handedOn has the names that stand for the same name of resilience.
	handedOn map[string]bool
}

// handWritten reads them from the files themselves.
func handWritten(folder string) (names, error) {
	n := names{taken: map[string]bool{}, handedOn: map[string]bool{}}
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return n, err
	}
	for _, p := range paths {
		if strings.HasSuffix(p, ".gen.go") || strings.HasSuffix(p, "_test.go") {
			continue
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return n, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Base(p), text, parser.SkipObjectResolution)
		if err != nil {
			return n, err
		}
		for _, d := range file.Decls {
			n.add(d)
		}
	}
	return n, nil
}

func (n names) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			n.taken[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				n.taken[spec.Name.Name] = true
				if of, ok := spec.Type.(*ast.SelectorExpr); ok && spec.Assign.IsValid() && isIdent(of.X, "resilience") && of.Sel.Name == spec.Name.Name {
					n.handedOn[spec.Name.Name] = true
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					n.taken[name.Name] = true
				}
			}
		}
	}
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// handOn makes the file in which package carrier hands on the models, and lets
// the methods use its names.
func handOn(root string, out files) error {
	own, err := handWritten(filepath.Join(root, "carrier"))
	if err != nil {
		return err
	}
	api, err := parseSource(apiFile, out[apiFile])
	if err != nil {
		return err
	}
	models, err := aliases(api, own)
	if err != nil {
		return err
	}
	if out[modelsFile], err = models.file(); err != nil {
		return err
	}
	out[methodsFile], err = useNames(out[methodsFile], models.types, own)
	return err
}

// aliasing collects the names under which package carrier has what is in api.
type aliasing struct {
	types     map[string]string // name in api: name in carrier
	body      bytes.Buffer
	constants bytes.Buffer
}

func aliases(api *source, own names) (*aliasing, error) {
	a := &aliasing{types: map[string]string{}}
	for _, d := range api.file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if !spec.Name.IsExported() {
					continue
				}
				name, err := own.free(spec.Name.Name)
				if err != nil {
					return nil, err
				}
				a.types[spec.Name.Name] = name
				doc := spec.Doc
				if doc == nil {
					doc = d.Doc
				}
				text := strings.Replace(comment(doc), "// "+spec.Name.Name, "// "+name, 1)
				fmt.Fprintf(&a.body, "\n%stype %s = api.%s\n", text, name, spec.Name.Name)
			case *ast.ValueSpec:
				if d.Tok != token.CONST {
					continue
				}
				for _, id := range spec.Names {
					if !id.IsExported() {
						continue
					}
					name, err := own.free(id.Name)
					if err != nil {
						return nil, err
					}
					fmt.Fprintf(&a.constants, "\t%s = api.%s\n", name, id.Name)
				}
			}
		}
	}
	return a, nil
}

// free returns the name, with "Model" behind it if the SDK has one like it.
func (n names) free(name string) (string, error) {
	if !n.taken[name] {
		return name, nil
	}
	if n.taken[name+"Model"] {
		return "", fmt.Errorf("package carrier has %s and %sModel: the schema needs another name", name, name)
	}
	return name + "Model", nil
}

func comment(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range doc.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

func (a *aliasing) file() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\npackage carrier\n\nimport \"github.com/carrier-sdk/carrier-go/carrier/api\"\n%s", header, a.body.Bytes())
	if a.constants.Len() > 0 {
		fmt.Fprintf(&b, "\n// The values that the description knows. An answer may have others.\nconst (\n%s)\n", a.constants.Bytes())
	}
	return format.Source(b.Bytes())
}

// useNames writes the methods' types with the names that package carrier has
// for them.
func useNames(methods []byte, types map[string]string, own names) ([]byte, error) {
	s, err := parseSource(methodsFile, methods)
	if err != nil {
		return nil, err
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		e, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch {
		case isIdent(e.X, "api") && types[e.Sel.Name] != "":
			s.replace(e.Pos(), e.End(), types[e.Sel.Name])
		case isIdent(e.X, "resilience") && own.handedOn[e.Sel.Name]:
			s.replace(e.Pos(), e.End(), e.Sel.Name)
		}
		return true
	})
	return s.bytes()
}
