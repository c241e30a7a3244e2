package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// source is a parsed Go file whose text can be edited.
type source struct {
	fset *token.FileSet
	file *ast.File
	text []byte
	edit []edit
}

type edit struct {
	from, to int
	with     string
}

func parseSource(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{fset: fset, file: file, text: text}, nil
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) replace(from, to token.Pos, with string) {
	s.edit = append(s.edit, edit{s.offset(from), s.offset(to), with})
}

// bytes returns the edited text, formatted.
func (s *source) bytes() ([]byte, error) {
	slices.SortFunc(s.edit, func(a, b edit) int { return b.from - a.from })
	text := string(s.text)
	for _, e := range s.edit {
		text = text[:e.from] + e.with + text[e.to:]
	}
	return format.Source([]byte(text))
}

// tidyComments takes the field's name away where the generator has put it in
// front of a sentence of the description: "City The town.".
func tidyComments(code []byte) ([]byte, error) {
	s, err := parseSource("generated.go", code)
	if err != nil {
		return nil, err
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || f.Doc == nil || len(f.Names) != 1 {
			return true
		}
		first := f.Doc.List[0]
		if name := fmt.Sprintf("// %s ", f.Names[0].Name); strings.HasPrefix(first.Text, name) {
			s.replace(first.Pos(), first.Pos()+token.Pos(len(name)), "// ")
		}
		return true
	})
	return s.bytes()
}
