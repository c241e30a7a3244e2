package supply

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

const workflows = root + "/.github/workflows"

// writes are the permissions to write that a job may have, and why.
var writes = map[string]string{
	"release.yml publish contents":     "makes the release",
	"release.yml publish id-token":     "the identity that signs",
	"release.yml publish attestations": "keeps the signature",
}

// TestWorkflows holds the workflows to rules of our own.
func TestWorkflows(t *testing.T) {
	unused := maps.Clone(writes)
	for _, path := range workflowFiles(t) {
		report(t, path, faulty(t, path))
		for _, w := range permissions(parse(t, path)) {
			if w.level != "write" {
				continue
			}
			key := filepath.Base(path) + " " + w.job + " " + w.scope
			if _, ok := writes[key]; !ok {
				t.Errorf("%s: %s may write %s", path, w.job, w.scope)
			}
			delete(unused, key)
		}
	}
	for key := range unused {
		t.Errorf("%s is allowed, and not asked for", key)
	}
}

func TestWorkflowsRefuses(t *testing.T) {
	refuses(t, "workflows/*.yml", func(t *testing.T, path string) []string {
		found := faulty(t, path)
		for _, w := range permissions(parse(t, path)) {
			if w.level == "write" {
				found = append(found, fmt.Sprintf("%s may write %s", w.job, w.scope))
			}
		}
		return found
	})
}

// TestWorkflowsAreValid runs actionlint, which knows the inputs of an action by
// its version and not by its commit.
func TestWorkflowsAreValid(t *testing.T) {
	for _, path := range workflowFiles(t) {
		report(t, path, lint(t, path, read(t, path)))
	}
	bad := strings.Replace(string(read(t, workflows+"/ci.yml")), "node-version:", "node-wersion:", 1)
	if found := lint(t, workflows+"/ci.yml", []byte(bad)); len(found) != 1 || !strings.Contains(found[0], "node-wersion") {
		t.Errorf("an input that no action has is %q", found)
	}
}

func lint(t *testing.T, path string, text []byte) []string {
	t.Helper()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint(path, pinned.ReplaceAll(text, []byte("uses: $1@$3")), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range found {
		all = append(all, fmt.Sprintf("line %d: %s", e.Line, e.Message))
	}
	return all
}

// TestCIRunsAll compares the workflow with `make ci`.
func TestCIRunsAll(t *testing.T) {
	_, line, ok := strings.Cut(string(read(t, root+"/Makefile")), "\nci: ")
	if !ok {
		t.Fatal("the Makefile has no ci")
	}
	line, _, _ = strings.Cut(line, "\n")
	var ran []string
	for _, job := range parse(t, workflows+"/ci.yml").Jobs {
		for _, s := range job.Steps {
			if targets, ok := strings.CutPrefix(s.Run, "make "); ok {
				ran = append(ran, strings.Fields(targets)...)
			}
		}
	}
	want := strings.Fields(line)
	slices.Sort(want)
	slices.Sort(ran)
	if !slices.Equal(ran, want) {
		t.Errorf("ci.yml makes %s\nmake ci      %s", ran, want)
	}
}

func workflowFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(workflows + "/*.y*ml")
	if err != nil || len(files) < 4 {
		t.Fatalf("only %s (%v)", files, err)
	}
	if other, _ := os.ReadDir(root + "/.github/actions"); other != nil {
		t.Error(".github/actions is not looked at")
	}
	return files
}

// workflow is what the checks read of one.
type workflow struct {
	On          yaml.Node      `yaml:"on"`
	Permissions yaml.Node      `yaml:"permissions"`
	Concurrency yaml.Node      `yaml:"concurrency"`
	Jobs        map[string]job `yaml:"jobs"`
}

type job struct {
	Permissions yaml.Node `yaml:"permissions"`
	Timeout     yaml.Node `yaml:"timeout-minutes"`
	Uses        yaml.Node `yaml:"uses"`
	Steps       []step    `yaml:"steps"`
}

type step struct {
	Uses yaml.Node         `yaml:"uses"`
	Run  string            `yaml:"run"`
	With map[string]string `yaml:"with"`
}

func parse(t *testing.T, path string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal(read(t, path), &w); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return w
}

var (
	pinned    = regexp.MustCompile(`uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+)[\d.]*`)
	reference = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	version   = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
	image     = regexp.MustCompile(`^docker://.+@sha256:[0-9a-f]{64}$`)
	triggers  = regexp.MustCompile(`\b(pull_request_target|workflow_run|issue_comment)\b`)
	floating  = regexp.MustCompile(`@(latest|main|master)\b|curl[^|]*\|\s*(ba)?sh\b`)
)

// faulty returns what is wrong in a workflow, but for permissions to write.
func faulty(t *testing.T, path string) []string {
	t.Helper()
	w := parse(t, path)
	var found []string
	if event := triggers.FindString(fmt.Sprint(scalars(&w.On))); event != "" {
		found = append(found, "starts on "+event)
	}
	if w.Permissions.IsZero() {
		found = append(found, "has no permissions of its own")
	}
	if w.Concurrency.IsZero() {
		found = append(found, "has no concurrency")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		j := w.Jobs[name]
		if j.Timeout.IsZero() && j.Uses.IsZero() {
			found = append(found, name+" has no timeout")
		}
		found = append(found, unpinned(&j.Uses)...)
		for _, s := range j.Steps {
			found = append(found, unpinned(&s.Uses)...)
			if strings.HasPrefix(s.Uses.Value, "actions/checkout@") && s.With["persist-credentials"] != "false" {
				found = append(found, name+" leaves the token behind")
			}
			if strings.Contains(s.Run, "${{") {
				found = append(found, name+" puts an expression into a script")
			}
			if floating.MatchString(s.Run) {
				found = append(found, name+" runs what changes by itself")
			}
		}
	}
	return found
}

// unpinned says what is missing: a reference is to a full commit, with the
// version behind it for people and for the program that renews both.
func unpinned(uses *yaml.Node) []string {
	switch ref := uses.Value; {
	case ref == "", strings.HasPrefix(ref, "./"), image.MatchString(ref):
		return nil
	case !reference.MatchString(ref):
		return []string{ref + " is not pinned"}
	case !version.MatchString(uses.LineComment):
		return []string{ref[:strings.Index(ref, "@")] + " does not say its version"}
	}
	return nil
}

type permission struct{ job, scope, level string }

// permissions returns those of the workflow, as those of job "all", and of its
// jobs. A level for everything has the scope "everything".
func permissions(w workflow) []permission {
	all := levels("all", &w.Permissions)
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		j := w.Jobs[name]
		all = append(all, levels(name, &j.Permissions)...)
	}
	return all
}

func levels(job string, n *yaml.Node) []permission {
	if n.Kind == yaml.ScalarNode {
		return []permission{{job, "everything", strings.TrimSuffix(n.Value, "-all")}}
	}
	var all []permission
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, permission{job, n.Content[i].Value, n.Content[i+1].Value})
	}
	return all
}

// scalars returns all texts below a node.
func scalars(n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	var all []string
	for _, c := range n.Content {
		all = append(all, scalars(c)...)
	}
	return all
}
