package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

const (
	apiFile     = "carrier/api/api.gen.go"
	factsFile   = "carrier/api/spec.gen.go"
	methodsFile = "carrier/methods.gen.go"
	modelsFile  = "carrier/models.gen.go"
)

// generate returns all generated files, and nil for those that are no longer.
func generate(root string) (files, error) {
	configs, err := configs(root)
	if err != nil {
		return nil, err
	}
	out := files{}
	for _, c := range configs {
		code, err := runConfig(root, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Output, err)
		}
		out[filepath.ToSlash(c.Output)] = code
	}
	if out[apiFile], err = pruneValidators(out[apiFile]); err != nil {
		return nil, err
	}
	doc, err := load(root)
	if err != nil {
		return nil, err
	}
	if out[factsFile], err = facts(doc); err != nil {
		return nil, err
	}
	if err := handOn(root, out); err != nil {
		return nil, err
	}
	return out, addStale(root, out)
}

// runConfig runs oapi-codegen. A server leaves the idempotency key to code
// that sees every request; everything else gets it from the operation table.
func runConfig(root string, c config) ([]byte, error) {
	doc, err := load(root)
	if err != nil {
		return nil, err
	}
	if c.Generate.StdHTTPServer {
		dropHeaders(doc)
	} else {
		inlineResponses(doc)
	}
	code, err := codegen.Generate(doc, c.Configuration)
	if err != nil {
		return nil, err
	}
	return tidyComments([]byte(code))
}

// addStale adds what an earlier run has left in the folders of the output.
func addStale(root string, out files) error {
	folders := map[string]bool{}
	for p := range out {
		folders[filepath.Dir(p)] = true
	}
	for folder := range folders {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.gen.go"))
		if err != nil {
			return err
		}
		for _, f := range found {
			p := filepath.ToSlash(filepath.Join(folder, filepath.Base(f)))
			if _, ours := out[p]; ours {
				continue
			}
			if data, err := os.ReadFile(f); err != nil {
				return err
			} else if strings.HasPrefix(string(data), header) {
				out[p] = nil
			}
		}
	}
	return nil
}
