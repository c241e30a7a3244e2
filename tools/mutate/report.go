package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The list of survivors is Markdown: a heading for each file, a line for each
// mutant. Other text is for the reader.
//
//	## backoff.go
//	- `Backoff.wait`: `x [> → >=] most`: the same wait either way
var (
	heading = regexp.MustCompile("^## `?([^`]+\\.go)`?$")
	entry   = regexp.MustCompile("^- `([^`]+)`: `([^`]+)`: (.+)$")
)

// readList returns the keys of the mutants in the list.
func readList(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var listed []string
	file := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if m := heading.FindStringSubmatch(line); m != nil {
			file = m[1]
			continue
		}
		if !strings.HasPrefix(line, "- `") {
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil || file == "" {
			return nil, fmt.Errorf("%s:%d: want \"- `function`: `mutant`: reason\" below a heading that names the file", name, n)
		}
		listed = append(listed, file+" "+m[1]+" "+m[2])
	}
	return listed, lines.Err()
}

type report struct {
	count    [lived + 1]int
	unlisted []mutant // survivors that the list does not have
	stale    []string // entries of the list that no survivor has
}

func newReport(mutants []mutant, verdicts []verdict, listed []string, part bool) report {
	var r report
	survived := map[string]bool{}
	tested := map[string]bool{}
	for i, m := range mutants {
		v := verdicts[i]
		r.count[v]++
		tested[m.file] = true
		if v != lived && v != notReached {
			continue
		}
		survived[m.key()] = true
		if !slices.Contains(listed, m.key()) {
			r.unlisted = append(r.unlisted, m)
		}
	}
	for _, key := range listed {
		file, _, _ := strings.Cut(key, " ")
		if !survived[key] && (!part || tested[file]) {
			r.stale = append(r.stale, key)
		}
	}
	return r
}

// share is the percentage of mutants that a test failed for. One that made the
// tests hang is left out of it, one that no test reaches counts as alive.
func (r report) share() float64 {
	return 100 * float64(r.count[killed]) / float64(max(1, r.count[killed]+r.count[lived]+r.count[notReached]))
}

func (r report) print(w io.Writer) {
	for _, m := range r.unlisted {
		fmt.Fprintf(w, "survivor that is not listed, %s:%d:\n- `%s`: `%s`: \n", m.file, m.line, m.fn, m.text)
	}
	for _, key := range r.stale {
		fmt.Fprintf(w, "listed, but no survivor now: %s\n", key)
	}
	fmt.Fprintf(w, "killed %d, lived %d, not reached %d: %.1f %% killed; timed out %d\n",
		r.count[killed], r.count[lived], r.count[notReached], r.share(), r.count[timedOut])
}

// verdict is the error that the run ends with.
func (r report) verdict(least float64) error {
	var errs []error
	if r.share() < least {
		errs = append(errs, fmt.Errorf("%.1f %% killed is less than %v %%", r.share(), least))
	}
	if len(r.unlisted) > 0 {
		errs = append(errs, fmt.Errorf("%d survivors are not listed: kill them with a test, or list them with a reason", len(r.unlisted)))
	}
	return errors.Join(errs...)
}
