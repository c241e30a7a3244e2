package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each end that a mutant can come to, in a module that has one of every kind.
func TestRun(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), config{
		root: "testdata/small", pkg: ".", list: "MUTANTS.md", workers: 2, least: 85, verbose: true, patience: 2 * time.Second,
	}, &out)
	ends := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if end, rest, ok := strings.Cut(line, "ms small.go:"); ok {
			_, mutant, _ := strings.Cut(rest, " ")
			mutant = mutant[:strings.LastIndex(mutant, "`")+1]
			ends[mutant] = strings.TrimRight(end, " 0123456789")
		}
	}
	for mutant, want := range map[string]string{
		"clamp `x [> → <=] most`":          "killed",
		"clamp `x [> → >=] most`":          "lived",
		"sum `x [< → >=] 0`":               "killed",
		"sum `x [< → <=] 0`":               "lived",
		"sum `[continue → break]`":         "killed",
		"sum `n [+= → =] x`":               "killed",
		"sum `n [+= → -=] x`":              "killed",
		"count `i [< → >=] n`":             "killed",
		"count `i [< → <=] n`":             "killed",
		"count `i[++ → --]`":               "timed out",
		"count `!odd(i) [&& → ||] i >= 0`": "killed",
		"count `[! → ]odd(i)`":             "killed",
		"count `i [>= → <] 0`":             "killed",
		"count `i [>= → >] 0`":             "killed",
		"count `even[++ → --]`":            "killed",
		"odd `i%2 [!= → ==] 0`":            "killed",
		"odd `i [% → *] 2`":                "killed",
		"any3 `a [|| → &&] b`":             "lived",
		"any3 `a || b [|| → &&] c`":        "killed", // it is (a || b) && c
		"forgotten `-a [* → /] b`":         "not reached",
		"forgotten `[- → ]a`":              "not reached",
	} {
		if got, ok := ends[mutant]; got != want {
			t.Errorf("%s: %q, want %q", mutant, got, want)
		} else if ok {
			delete(ends, mutant)
		}
	}
	if len(ends) > 0 {
		t.Errorf("mutants that nobody asked for: %v", ends)
	}
	for _, want := range []string{
		"killed 15, lived 3, not reached 2: 75.0 % killed; timed out 1\n",
		"- `sum`: `x [< → <=] 0`: \n", "- `forgotten`: `-a [* → /] b`: \n",
		"listed, but no survivor now: small.go clamp x [> → <=] most\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	if want := "75.0 % killed is less than 85 %\n4 survivors are not listed: kill them with a test, or list them with a reason"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A part of the files has no say about the list of the others.
func TestRunOfAFileThatIsNone(t *testing.T) {
	err := run(t.Context(), config{root: "testdata/small", pkg: ".", files: []string{"large.go"}, workers: 1}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "large.go") {
		t.Errorf("got %v", err)
	}
}

func TestList(t *testing.T) {
	for name, test := range map[string]struct{ text, err string }{
		"good":       {"## a.go\n- `f`: `x [< → <=] y`: equivalent\n", ""},
		"no reason":  {"## a.go\n- `f`: `x [< → <=] y`: \n", ":2: "},
		"no heading": {"- `f`: `x [< → <=] y`: equivalent\n", ":1: "},
	} {
		file := filepath.Join(t.TempDir(), "list.md")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		listed, err := readList(file)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil && !slices.Contains(listed, "a.go f x [< → <=] y") {
			t.Errorf("%s: got %v", name, listed)
		}
	}
	if _, err := readList("testdata/none.md"); err == nil {
		t.Error("a list that is not there is no error")
	}
}
