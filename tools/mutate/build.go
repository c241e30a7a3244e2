package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed helpers.go.txt
var helpersText string

// The helper that stands in for an operator.
var helpers = map[token.Token]string{
	token.ADD: "Add", token.SUB: "Sub", token.MUL: "Mul", token.QUO: "Quo", token.REM: "Rem",
}

// build compiles the package's tests with all mutants into one binary. The
// rewritten files are laid over the real ones, which stay as they are.
func build(ctx context.Context, s *source, work string) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	put := func(name string, text []byte) error {
		file := filepath.Join(work, fmt.Sprintf("%d.go", len(overlay.Replace)))
		overlay.Replace[name] = file
		return os.WriteFile(file, text, 0o600)
	}
	for name, text := range s.files {
		if err := put(name, text); err != nil {
			return "", err
		}
	}
	helpers := strings.NewReplacer("PACKAGE", s.name, "MUTANTS", strconv.Itoa(len(s.mutants))).Replace(helpersText)
	if err := put(filepath.Join(s.dir, "mutant_helpers.go"), []byte(helpers)); err != nil {
		return "", err
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlayFile, text, 0o600); err != nil {
		return "", err
	}
	binary := filepath.Join(work, "mutants.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", binary, s.path)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the package with its mutants does not compile: %w\n%s", err, out)
	}
	return binary, nil
}
