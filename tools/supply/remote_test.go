package supply

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestNothingRemote holds the descriptions, and the files that tell a program
// what to do with them, to naming nothing that would be fetched. Addresses in
// words for people are free. That the generator would refuse is a test of its own.
func TestNothingRemote(t *testing.T) {
	n := 0
	for _, file := range tracked(t, "openapi/**", "interop/*.json", "interop/.npmrc") {
		switch filepath.Ext(file) {
		case ".yaml", ".yml", ".json", ".npmrc":
			n++
			report(t, file, remote(t, filepath.Join(root, file)))
		}
	}
	if n < 12 {
		t.Errorf("only %d files were looked at", n)
	}
}

func TestNothingRemoteRefuses(t *testing.T) { refuses(t, "remote/*", remote) }

var (
	address    = regexp.MustCompile(`(?i)^([a-z][a-z0-9+.-]*:)?//|^(https?|git\S*|github|file):`)
	words      = regexp.MustCompile(`\.(description|license|homepage|funding.*|\$schema)$`)
	fetched    = regexp.MustCompile(`\.(\$ref|externalValue|operationRef|discriminator\.mapping\.[^.]+)$`)
	dependency = regexp.MustCompile(`\.(resolved|(\w*[dD]ependencies)\.[^.]+)$`)
	registry   = regexp.MustCompile(`(?i)\bregistry\s*=|//`)
)

// remote returns what a file names that a program would fetch: in a description
// its references, in a lock file its dependencies, in other files every address.
func remote(t *testing.T, path string) []string {
	t.Helper()
	if strings.HasSuffix(path, ".npmrc") {
		var found []string
		for _, line := range strings.Split(string(read(t, path)), "\n") {
			if !strings.HasPrefix(line, "#") && registry.MatchString(line) {
				found = append(found, line)
			}
		}
		return found
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(read(t, path), &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	described, locked := false, strings.Contains(filepath.Base(path), "lock")
	each(&doc, "", func(at, _ string) { described = described || at == ".openapi" })
	var found []string
	each(&doc, "", func(at, value string) {
		switch {
		case !address.MatchString(value), described && !fetched.MatchString(at), locked && !dependency.MatchString(at), words.MatchString(at):
			return
		}
		found = append(found, fmt.Sprintf("%s is %s", strings.TrimPrefix(at, "."), value))
	})
	if strings.HasSuffix(path, ".cfg.yaml") && !slices.Contains(empty(&doc), "allow-remote-refs-from") {
		found = append(found, "allow-remote-refs-from is not []")
	}
	return found
}

// each calls f for every scalar with its place.
func each(n *yaml.Node, at string, f func(at, value string)) {
	switch n.Kind {
	case yaml.ScalarNode:
		f(at, n.Value)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			each(n.Content[i+1], at+"."+n.Content[i].Value, f)
		}
	default:
		for _, c := range n.Content {
			each(c, at, f)
		}
	}
}

// empty returns the keys of a document that have an empty list.
func empty(doc *yaml.Node) []string {
	var all []string
	for _, top := range doc.Content {
		for i := 0; i+1 < len(top.Content); i += 2 {
			if v := top.Content[i+1]; v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
				all = append(all, top.Content[i].Value)
			}
		}
	}
	return all
}
