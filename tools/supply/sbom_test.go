package supply

import (
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// licences are those that a dependency may have: all of them let a service use
// the SDK without publishing anything.
var licences = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// TestSBOM holds the files of `make sbom`, which runs it, to what the go command
// says: of the module for its packages, and of the program as it is built.
func TestSBOM(t *testing.T) {
	folder := os.Getenv("SBOM")
	if folder == "" {
		t.Skip("make sbom runs it")
	}
	program := filepath.Join(t.TempDir(), "mockcarrier")
	run(t, "go", "build", "-o", program, "./mockcarrier/cmd/mockcarrier")
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]string{"std": info.GoVersion}
	for _, m := range info.Deps {
		built[m.Path] = m.Version
	}
	required := map[string]string{"std": info.GoVersion}
	list := run(t, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./...")
	for line := range strings.Lines(list) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			required[path] = version
		}
	}
	for _, tc := range []struct {
		file  string
		kind  cyclonedx.ComponentType
		wants map[string]string
	}{
		{"sbom.cdx.json", cyclonedx.ComponentTypeLibrary, required},
		{"mockcarrier.cdx.json", cyclonedx.ComponentTypeApplication, built},
	} {
		t.Run(tc.file, func(t *testing.T) {
			text := read(t, filepath.Join(folder, tc.file))
			bom := decode(t, text)
			if c := bom.Metadata.Component; c.Name != info.Main.Path || c.Type != tc.kind {
				t.Errorf("it is of the %s %s", c.Type, c.Name)
			}
			report(t, tc.file, differs(bom, tc.wants))
			report(t, tc.file, private(string(text), places(t)))
		})
	}
}

// TestSBOMRefuses proves the comparisons on a small one.
func TestSBOMRefuses(t *testing.T) {
	bom := decode(t, read(t, "testdata/sbom.cdx.json"))
	good := map[string]string{"example.com/a": "v1.0.0", "example.com/b": "v1.0.0", "std": "go1.26.0"}
	with := func(path, version string) map[string]string {
		m := maps.Clone(good)
		m[path] = version
		return m
	}
	for _, tc := range []struct {
		name  string
		wants map[string]string
		found string
	}{
		{"as it is", good, "example.com/b has the licence GPL-3.0-only"},
		{"another version", with("example.com/a", "v1.0.1"), "example.com/a is v1.0.0, and not v1.0.1; example.com/b has the licence GPL-3.0-only"},
		{"one more", with("example.com/c", "v1.0.0"), "example.com/b has the licence GPL-3.0-only; example.com/c is missing"},
		{"nothing", nil, "example.com/a is v1.0.0, and not in it; example.com/b is v1.0.0, and not in it; example.com/b has the licence GPL-3.0-only; std is go1.26.0, and not in it"},
	} {
		if got := strings.Join(differs(bom, tc.wants), "; "); got != tc.found {
			t.Errorf("%s: found %q, want %q", tc.name, got, tc.found)
		}
	}
	if found := private(`{"path": "/home/ada/go"}`, []string{"/home/ada", "host-7"}); len(found) != 1 {
		t.Errorf("found %q in a path", found)
	}
}

// differs compares the components with the modules that there have to be.
func differs(bom *cyclonedx.BOM, wants map[string]string) []string {
	var found []string
	missing := maps.Clone(wants)
	for _, c := range *bom.Components {
		delete(missing, c.Name)
		if want, ok := wants[c.Name]; !ok {
			found = append(found, c.Name+" is "+c.Version+", and not in it")
		} else if want != c.Version {
			found = append(found, c.Name+" is "+c.Version+", and not "+want)
		}
		// The standard library comes without its licence.
		if l := licence(c); !slices.Contains(licences, l) && c.Name != "std" {
			found = append(found, c.Name+" has the licence "+l)
		}
	}
	for name := range missing {
		found = append(found, name+" is missing")
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
	})
	return found
}

func licence(c cyclonedx.Component) string {
	if c.Evidence == nil || c.Evidence.Licenses == nil || len(*c.Evidence.Licenses) == 0 {
		return "unknown"
	}
	return (*c.Evidence.Licenses)[0].License.ID
}

// private returns those of the places that a text shows.
func private(text string, places []string) []string {
	var found []string
	for _, p := range places {
		if strings.Contains(text, p) {
			found = append(found, "it shows "+p)
		}
	}
	return found
}

// places are the names of this machine that are nobody's business.
func places(t *testing.T) []string {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{here, os.TempDir()}
	for line := range strings.Lines(run(t, "go", "env", "GOMODCACHE", "GOROOT", "GOCACHE")) {
		all = append(all, strings.TrimSpace(line))
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		all = append(all, home+string(filepath.Separator))
	}
	if host, err := os.Hostname(); err == nil && len(host) > 4 {
		all = append(all, host)
	}
	return all
}

// decode reads a document, all of whose members CycloneDX has.
func decode(t *testing.T, text []byte) *cyclonedx.BOM {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	bom := new(cyclonedx.BOM)
	if err := d.Decode(bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != cyclonedx.BOMFormat || bom.Components == nil || bom.Metadata == nil || bom.Metadata.Component == nil {
		t.Fatal("it is no bill of materials")
	}
	return bom
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}
