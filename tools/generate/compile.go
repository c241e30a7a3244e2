package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// compiles reports what is wrong in the generated files, as the compiler sees
// it. A package whose hand-written part has faults of its own is let through:
// it may need these very files to become whole again.
func compiles(root string, f files) error {
	overlay := map[string][]byte{}
	folders := map[string]bool{}
	for p, content := range f {
		path := filepath.Join(root, p)
		folders["./"+filepath.ToSlash(filepath.Dir(p))] = true
		if content == nil {
			// An overlay cannot take a file away.
			content = []byte("package " + packageName(f, filepath.Dir(p)) + "\n")
		}
		overlay[path] = content
	}
	patterns := make([]string, 0, len(folders))
	for folder := range folders {
		patterns = append(patterns, folder)
	}
	found, err := packages.Load(&packages.Config{
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:     root,
		Overlay: overlay,
	}, patterns...)
	if err != nil {
		return fmt.Errorf("cannot check the result: %w", err)
	}
	for _, p := range found {
		if err := faults(p, overlay); err != nil {
			return err
		}
	}
	return nil
}

// faults returns the first error in a generated file of p, and nil if there are
// errors elsewhere that it could come from.
func faults(p *packages.Package, generated map[string][]byte) error {
	var first error
	whole := true
	packages.Visit([]*packages.Package{p}, nil, func(dep *packages.Package) {
		for _, e := range dep.Errors {
			file, _, _ := strings.Cut(e.Pos, ":")
			if generated[file] == nil {
				whole = false
			} else if first == nil && dep == p {
				first = errors.New(strings.TrimPrefix(e.Error(), filepath.Dir(filepath.Dir(file))+"/"))
			}
		}
	})
	hand := false
	for _, file := range p.GoFiles {
		hand = hand || generated[file] == nil
	}
	if !whole || (!hand && p.Name == "carrier") {
		return nil
	}
	return first
}

func packageName(f files, folder string) string {
	for p, content := range f {
		if content != nil && filepath.Dir(p) == folder {
			_, rest, _ := strings.Cut(string(content), "\npackage ")
			name, _, _ := strings.Cut(rest, "\n")
			return name
		}
	}
	return filepath.Base(folder)
}
