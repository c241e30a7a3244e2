package readme

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// way is how a command is run.
type way int

const (
	plainly  way = iota // in a fresh clone: to the end, with exit status 0
	costly              // the same, by `make readme-test` alone
	serving             // in a fresh clone: until it says that it is ready, and is stopped
	weekly              // not here: it takes too long, and .github/workflows/weekly.yml runs it
	requires            // in a module that requires the SDK, with what is around it: TestConsumer
)

// special is a command that is not run plainly.
type special struct {
	command string
	way     way
	ready   string // what a server says
}

// ways are all of them. One that no README prints any more fails the test.
var ways = []special{
	{"go run ./mockcarrier/cmd/mockcarrier", serving, `{"url":"http://127.0.0.1:`},
	{"go run ./mockcarrier/cmd/mockcarrier -fail-every 3", serving, `{"url":"http://127.0.0.1:`},
	{"go run ./examples/bookstore", serving, `"msg":"listening"`},
	{"go run ./examples/bookstore -attempts 8 -retry-ratio 2 -retry-tokens 40 -breaker-failures 20 -breaker-ratio 0.95 -track-timeout 10s", serving, `"msg":"listening"`},
	{"go get github.com/carrier-sdk/carrier-go", requires, ""},
	{"make generate", costly, ""},
	{"make sim", weekly, ""},
	{"make mutate", weekly, ""},
	{"make compare", weekly, ""},
	{"make bench", costly, ""},
	{"go run ./examples/lab-herd", costly, ""},
}

// limits are the times that a command may take. The machine is shared.
var limits = map[way]time.Duration{plainly: 2 * time.Minute, serving: 2 * time.Minute, costly: 8 * time.Minute}

// all is set by `make readme-test`, which runs what `make test` does not.
var all = os.Getenv("README") == "all"

// script is a block of commands, or a command in prose.
type script struct {
	file  string
	lines []string
}

// TestCommands runs the commands of the READMEs as they are printed.
func TestCommands(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	proven, unused, ran := makefile(t), map[string]bool{}, map[string]bool{}
	for _, w := range ways {
		unused[w.command] = true
	}
	clone, exports := "", map[string][]string{}
	for _, s := range scripts(documents(t, false)) {
		here := slices.Clone(exports[s.file])
		how, ready, last := plainly, "", ""
		for _, line := range s.lines {
			command := bare(line)
			delete(unused, command)
			if i := slices.IndexFunc(ways, func(s special) bool { return s.command == command }); i >= 0 {
				how, ready = ways[i].way, ways[i].ready
			}
			if strings.HasPrefix(command, "export ") {
				exports[s.file] = append(exports[s.file], line) // the reader's terminal keeps it
			}
			if command != "" && !proven[command] {
				here, last = append(here, line), command
			}
		}
		text := strings.Join(here, "\n")
		if last == "" || ran[bare(text)] || how == requires || how == weekly || (how == costly) != all {
			continue
		}
		ran[bare(text)] = true
		if clone == "" {
			clone = freshClone(t)
		}
		t.Run(last, func(t *testing.T) {
			execute(t, clone, text, limits[how], ready)
		})
	}
	if len(ran) == 0 {
		t.Error("no command was run")
	}
	for command := range unused {
		t.Errorf("no README prints %q any more", command)
	}
}

func TestWeekly(t *testing.T) {
	workflow, err := os.ReadFile(filepath.Join(root, ".github/workflows/weekly.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		if w.way == weekly && !strings.Contains(string(workflow), "- run: "+w.command+"\n") {
			t.Errorf("weekly.yml does not run %s", w.command)
		}
	}
}

var (
	isCommand = regexp.MustCompile(`^(make|go (run|test|doc|get|tool|build|vet|generate|mod|install|list)|docker) `)
	comment   = regexp.MustCompile(`\s+# .*$`)
)

// bare is a command without the words behind it.
func bare(line string) string { return strings.TrimSpace(comment.ReplaceAllString(line, "")) }

// scripts returns the commands: blocks of sh, indented blocks of nothing but
// commands, and pieces of code in prose that are one.
func scripts(docs []document) []script {
	var found []script
	for _, d := range docs {
		for _, b := range d.blocks {
			other := slices.ContainsFunc(b.lines, func(l string) bool { return !isCommand.MatchString(l) })
			if b.language == "sh" || b.language == "indented" && !other {
				found = append(found, script{d.file, b.lines})
			}
		}
		for _, s := range d.spans() {
			if isCommand.MatchString(s.text) {
				found = append(found, script{d.file, []string{bare(s.text)}})
			}
		}
	}
	return found
}

// makefile returns the commands that `make ci` runs: its targets, alone or
// several at a time, and each line of their recipes that stands for itself.
func makefile(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	proven := inCI(string(text))
	if ci, err := os.ReadFile(filepath.Join(root, ".ci/run")); err != nil || !strings.Contains(string(ci), "make ci") {
		t.Errorf(".ci/run does not run make ci (%v)", err)
	}
	return proven
}

func inCI(makefile string) map[string]bool {
	proven := map[string]bool{}
	m := regexp.MustCompile(`(?m)^ci: (.*)$`).FindStringSubmatch(makefile)
	if m == nil {
		return proven
	}
	proven["make ci"] = true
	for _, target := range strings.Fields(m[1]) {
		recipe := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*\n((?:\t.*\n)*)`).FindStringSubmatch(makefile)
		if recipe == nil {
			continue
		}
		proven["make "+target] = true
		for _, line := range strings.Split(recipe[1], "\n") {
			line = strings.TrimLeft(line, "\t@")
			proven[strings.Replace(line, "$(GO) ", "go ", 1)] = true
		}
	}
	delete(proven, "")
	return proven
}

func TestInCI(t *testing.T) {
	got := inCI("a: b\n\t$(GO) run ./x\n\t@$(GO) run ./y $(OUT)\n\nb:\n\techo b\n\nci: a lost\n\techo ci\n")
	for command, want := range map[string]bool{
		"make ci": true, "make a": true, "go run ./x": true,
		"make b": false, "make lost": false, "echo b": false, "echo ci": false, "go run ./y": false,
	} {
		if got[command] != want {
			t.Errorf("%s: %t, want %t", command, got[command], want)
		}
	}
}

// freshClone clones the repository, and brings over what is not committed.
func freshClone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "carrier-go")
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := command(t.Context(), ".", "git", "clone", "--quiet", source, dir).CombinedOutput(); err != nil {
		t.Skipf("git clone: %v\n%s", err, out)
	}
	here := tracked(t)
	for _, file := range here {
		copyFile(t, filepath.Join(root, file), filepath.Join(dir, file))
	}
	cloned, err := command(t.Context(), dir, "git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Split(strings.TrimSuffix(string(cloned), "\x00"), "\x00") {
		if !slices.Contains(here, file) {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}

// command is one in a folder, in an environment without what make and git have
// put there, and with free ports for the servers.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return regexp.MustCompile(`^(MAKE\w*|MFLAGS|GIT_\w+|README|SBOM|CARRIER_\w+|BOOKSTORE_\w+|PWD)=`).MatchString(v)
	})
	cmd.Env = append(cmd.Env, "CARRIER_ADDR=127.0.0.1:0", "BOOKSTORE_ADDR=127.0.0.1:0", "GOWORK=off")
	return cmd
}

// execute runs a script in a shell that stops at the first error. With ready it
// is stopped itself, as soon as it has said so.
func execute(t *testing.T, dir, text string, limit time.Duration, ready string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := command(ctx, dir, "sh", "-ec", text)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // `go run` has a child
	stop := func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
	cmd.Cancel = func() error { return stop(syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	stopped := false
	go func() {
		var all strings.Builder
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			all.WriteString(line)
			if ready != "" && !stopped && strings.Contains(line, ready) {
				stopped = true
				_ = stop(syscall.SIGTERM)
			}
			if err != nil {
				said <- all.String()
				return
			}
		}
	}()
	err := cmd.Wait()
	_ = in.Close()
	output := <-said
	switch {
	case ctx.Err() != nil:
		t.Errorf("%s\ntakes longer than %v\n%s", text, limit, tail(output))
	case ready != "" && !stopped:
		t.Errorf("%s\nis never ready (%v)\n%s", text, err, tail(output))
	case ready == "" && err != nil:
		t.Errorf("%s\n%v\n%s", text, err, tail(output))
	}
	return output
}

// tail is the end of an output.
func tail(s string) string {
	const most = 4 << 10
	return s[max(0, len(s)-most):]
}

// shown are the blocks that show what a command prints: the line before names it.
var shown = regexp.MustCompile("\\(`(?:(make [a-z-]+)|(lab-[a-z]+))`\\):$")

// TestOutput compares what is shown with what is printed: all but the figures.
func TestOutput(t *testing.T) {
	if !all {
		t.Skip("make readme-test runs it")
	}
	n := 0
	clone := freshClone(t)
	for _, d := range documents(t, false) {
		for _, b := range d.blocks {
			m := shown.FindStringSubmatch(b.before)
			if b.language != "" || m == nil {
				continue
			}
			n++
			text := cmp.Or(m[1], "go run ./examples/"+m[2])
			t.Run(text, func(t *testing.T) {
				printed := map[string]bool{}
				for line := range strings.Lines(execute(t, clone, text, limits[costly], "")) {
					printed[shape(line)] = true
				}
				for i, line := range b.lines {
					if !printed[shape(line)] {
						t.Errorf("%s:%d: it prints no line like\n%s", b.file, b.line+i, line)
					}
				}
			})
		}
	}
	if n == 0 {
		t.Error("no output is shown")
	}
}

var figures = regexp.MustCompile(`\d+(\.\d+)?`)

// shape is a line without its figures, bars and blanks.
func shape(line string) string {
	line = figures.ReplaceAllString(strings.Map(func(r rune) rune {
		if r >= '▀' && r <= '▟' {
			return -1
		}
		return r
	}, line), "0")
	return strings.Join(strings.Fields(line), " ")
}

func TestShape(t *testing.T) {
	if a, b := shape("  order-1  12 MiB ███\n"), shape("order-33 1.5   MiB █"); a != b {
		t.Errorf("%q is not %q", a, b)
	}
	if a, b := shape("bought twice"), shape("bought once"); a == b {
		t.Error("words do not matter")
	}
}
