package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// pruneValidators takes validation away from types that are in answers only:
// nobody asks it there, and an answer is open.
func pruneValidators(code []byte) ([]byte, error) {
	s, err := parseSource(apiFile, code)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	var follow func(*ast.FuncDecl)
	functions := map[string]*ast.FuncDecl{}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			functions[f.Name.Name] = f
		}
	}
	follow = func(f *ast.FuncDecl) {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && isValidator(id.Name) && functions[id.Name] != nil && !asked[id.Name] {
				asked[id.Name] = true
				follow(functions[id.Name])
			}
			return true
		})
	}
	for name, f := range functions {
		if strings.HasPrefix(name, "New") {
			follow(f)
		}
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil && name == "Validate" {
			if of, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				name = "validate" + of.Name
			}
		}
		if isValidator(name) && !asked[name] {
			s.replace(start(f), f.End(), "")
		}
	}
	return s.bytes()
}

func isValidator(name string) bool {
	rest, ok := strings.CutPrefix(name, "validate")
	return ok && ast.IsExported(rest)
}

func start(f *ast.FuncDecl) token.Pos {
	if f.Doc != nil {
		return f.Doc.Pos()
	}
	return f.Pos()
}
