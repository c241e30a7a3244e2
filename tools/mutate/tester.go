package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type verdict int

const (
	notReached verdict = iota // no test runs the place
	killed                    // a test failed
	timedOut                  // the tests did not come to an end, or ran out of memory
	lived                     // all tests passed
)

func (v verdict) String() string {
	return [...]string{"not reached", "killed", "timed out", "lived"}[v]
}

var tookText = regexp.MustCompile(`(?m)^--- PASS: \S+ \(([0-9.]+s)\)`)

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// A test is one top-level test of the package.
type test struct {
	name string
	took time.Duration
}

const (
	// Tests that take longer run in a second go, for the few mutants that are left.
	quick = 100 * time.Millisecond
	// A control is a run without a mutant, after each so many mutants. It has to
	// pass: if it does not, the machine is too busy for the verdicts to count.
	controlEvery = 50
	// A mutant can make a loop that allocates for ever.
	memory = 4 << 20 // KiB
)

type tester struct {
	binary   string
	dir      string
	flags    []string
	workers  int
	patience time.Duration
	log      func(format string, args ...any) // of each verdict; nil: none
	tests    []test                           // the quickest first
	reach    map[int][]test                   // which tests reach which mutant
}

// newTester runs each test alone to learn how long it takes and what it reaches.
func newTester(ctx context.Context, binary, dir, work string, c config, w io.Writer) (*tester, error) {
	t := &tester{binary: binary, dir: dir, workers: c.workers, patience: c.patience, reach: map[int][]test{}}
	if c.verbose {
		var mu sync.Mutex
		t.log = func(format string, args ...any) { mu.Lock(); defer mu.Unlock(); fmt.Fprintf(w, format, args...) }
	}
	if !c.full {
		t.flags = []string{"-test.short"}
	}
	list := exec.CommandContext(ctx, binary, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	for name := range strings.Lines(string(out)) {
		t.tests = append(t.tests, test{name: strings.TrimSpace(name)})
	}
	traces := make([][]int, len(t.tests))
	failed := make([]error, len(t.tests))
	t.each(len(t.tests), func(i int) {
		trace := filepath.Join(work, fmt.Sprintf("trace-%d", i))
		out, err := t.run(ctx, t.tests[i:i+1], time.Minute, "MUTANT_TRACE="+trace)
		if err != nil {
			failed[i] = fmt.Errorf("%s fails without a mutant: %w\n%s", t.tests[i].name, err, out)
			return
		}
		if m := tookText.FindSubmatch(out); m != nil { // a test that is skipped has none
			t.tests[i].took, _ = time.ParseDuration(string(m[1]))
		}
		traces[i], failed[i] = readTrace(trace)
	})
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	for i, ids := range traces {
		for _, id := range ids {
			t.reach[id] = append(t.reach[id], t.tests[i])
		}
	}
	for _, tests := range t.reach {
		slices.SortFunc(tests, func(a, b test) int { return int(a.took - b.took) })
	}
	return t, nil
}

func readTrace(file string) ([]int, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ids []int
	for lines := bufio.NewScanner(f); lines.Scan(); {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// all tests each mutant and returns what came of it.
func (t *tester) all(ctx context.Context, mutants []mutant) ([]verdict, error) {
	verdicts := make([]verdict, len(mutants))
	errs := make([]error, len(mutants))
	t.each(len(mutants), func(i int) {
		if ctx.Err() != nil {
			return
		}
		if i%controlEvery == controlEvery-1 {
			if out, failed := t.fails(ctx, t.tests, time.Minute); failed && ctx.Err() == nil {
				errs[i] = fmt.Errorf("a run without a mutant failed, so the verdicts do not count: %s", cmp.Or(failure(out), string(out)))
			}
		}
		start := time.Now()
		var by string
		verdicts[i], by = t.verdict(ctx, mutants[i])
		if t.log != nil {
			m := mutants[i]
			t.log("%-11s %5dms %s:%d %s `%s` %s\n", verdicts[i], time.Since(start).Milliseconds(), m.file, m.line, m.fn, m.text, by)
		}
	})
	return verdicts, errors.Join(append(errs, ctx.Err())...)
}

// verdict tests one mutant. It returns the test that killed it as well.
func (t *tester) verdict(ctx context.Context, m mutant) (verdict, string) {
	tests := t.reach[m.id]
	if len(tests) == 0 {
		return notReached, ""
	}
	first := slices.IndexFunc(tests, func(t test) bool { return t.took > quick })
	if first < 0 {
		first = len(tests)
	}
	for _, some := range [][]test{tests[:first], tests[first:]} {
		if len(some) == 0 {
			continue
		}
		limit := t.patience
		for _, each := range some {
			limit += 3 * each.took
		}
		out, failed := t.fails(ctx, some, limit, "MUTANT="+strconv.Itoa(m.id))
		switch {
		case !failed:
		case hung(out):
			return timedOut, ""
		default:
			return killed, cmp.Or(failure(out), "(the process ended)")
		}
	}
	return lived, ""
}

// fails reports whether tests fail, and does so again: one that fails once in a
// while, on a machine that is busy, says nothing of a mutant.
func (t *tester) fails(ctx context.Context, tests []test, limit time.Duration, env ...string) (out []byte, failed bool) {
	out, err := t.run(ctx, tests, limit, env...)
	if err == nil || hung(out) {
		return out, err != nil
	}
	again := tests
	if name, _, _ := strings.Cut(failure(out), "/"); name != "" {
		again = []test{{name: name}}
	}
	if _, err := t.run(ctx, again, limit, env...); err != nil {
		return out, true
	}
	out, err = t.run(ctx, tests, limit, env...)
	return out, err != nil
}

// hung reports whether the tests ran out of time or memory.
func hung(out []byte) bool {
	return bytes.Contains(out, []byte("panic: test timed out after")) || bytes.Contains(out, []byte("out of memory"))
}

// failure names the first test that failed; "" if none did.
func failure(out []byte) string {
	if m := failedTest.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return ""
}

// run runs some tests, in one process and with a limit of memory.
func (t *tester) run(ctx context.Context, tests []test, limit time.Duration, env ...string) ([]byte, error) {
	names := make([]string, len(tests))
	for i, each := range tests {
		names[i] = each.name
	}
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, memory), "sh", t.binary,
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.v", "-test.failfast", "-test.timeout", limit.String()}, t.flags...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// each calls do for 0 to n-1, by as many goroutines as there are workers.
func (t *tester) each(n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range t.workers {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
