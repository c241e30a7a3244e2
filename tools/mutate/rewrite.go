package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/token"
	"slices"
)

// An edit replaces one node. Other edits may lie inside the node: what render
// is given writes a node with those made, and its own left out.
type edit struct {
	from, to int
	render   func(inside func(ast.Node) string) string
}

func (f *finder) edit(n ast.Node, render func(inside func(ast.Node) string) string) {
	f.edits = append(f.edits, edit{f.offset(n.Pos()), f.offset(n.End()), render})
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// plain is the code of a node as it stands in the file.
func (f *finder) plain(n ast.Node) string {
	return string(f.text[f.offset(n.Pos()):f.offset(n.End())])
}

// rewrite returns the file with all edits made.
func (f *finder) rewrite() []byte {
	slices.SortFunc(f.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) // the outer first
	})
	return []byte(f.render(0, len(f.text), 0))
}

// render writes the text between two offsets with the edits made that lie
// there, beginning at the given one.
func (f *finder) render(from, to, next int) string {
	var b bytes.Buffer
	for i := next; i < len(f.edits); i++ {
		e := f.edits[i]
		if e.from < from || e.to > to {
			continue
		}
		b.Write(f.text[from:e.from])
		b.WriteString(e.render(func(n ast.Node) string {
			return f.render(f.offset(n.Pos()), f.offset(n.End()), i+1)
		}))
		from = e.to
	}
	b.Write(f.text[from:to])
	return b.String()
}
