package supply

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestDependabot wants every folder with dependencies to be looked after.
func TestDependabot(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal(read(t, root+"/.github/dependabot.yml"), &config); err != nil {
		t.Fatal(err)
	}
	has := map[string][]string{}
	for _, u := range config.Updates {
		for _, folder := range append(u.Directories, u.Directory) {
			if folder != "" {
				has[u.Ecosystem] = append(has[u.Ecosystem], folder)
			}
		}
	}
	wants := map[string][]string{"github-actions": {"/"}}
	for ecosystem, pattern := range map[string]string{"gomod": "*go.mod", "npm": "*package.json", "docker": "*Dockerfile"} {
		for _, file := range tracked(t, pattern) {
			if !strings.Contains(file, "/testdata/") {
				wants[ecosystem] = append(wants[ecosystem], filepath.Join("/", filepath.Dir(file)))
			}
		}
	}
	for ecosystem, folders := range wants {
		slices.Sort(folders)
		slices.Sort(has[ecosystem])
		if !slices.Equal(has[ecosystem], folders) {
			t.Errorf("%s looks after %s, and there are %s", ecosystem, has[ecosystem], folders)
		}
	}
	if len(has) != len(wants) {
		t.Errorf("dependabot knows %d ecosystems, and there are %d", len(has), len(wants))
	}
}
