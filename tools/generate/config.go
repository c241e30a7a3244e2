package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	"go.yaml.in/yaml/v3"
)

// config is a configuration of oapi-codegen, as the program itself reads it.
type config struct {
	codegen.Configuration `yaml:",inline"`
	Output                string `yaml:"output"`
}

// configs reads the configurations that name an output, templates included.
func configs(root string) ([]config, error) {
	paths, err := filepath.Glob(filepath.Join(root, "openapi", "*.cfg.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var all []config
	for _, p := range paths {
		c, err := readConfig(root, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(p), err)
		}
		if c.Output != "" {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no configuration with an output in %s", filepath.Join(root, "openapi"))
	}
	return all, nil
}

func readConfig(root, path string) (config, error) {
	var c config
	data, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	c.Configuration = c.UpdateDefaults()
	if err := c.Validate(); err != nil {
		return c, err
	}
	for name, file := range c.OutputOptions.UserTemplates {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return c, err
		}
		// A value with a line break is the template itself, and no path.
		c.OutputOptions.UserTemplates[name] = string(text) + "\n"
	}
	return c, nil
}
