// Command mutate measures what the tests of a package notice. It makes one
// small change to the code at a time (a mutant: < to <=, && to ||, + to -, …),
// runs the tests that reach the place, and tells which mutants no test failed
// for. Each of those survivors has to stand in a list, with a reason.
//
// All mutants are compiled into one test binary, where an environment variable
// chooses the one that acts. So a mutant costs the run of its tests and no
// build. The same binary tells which tests reach which mutant.
//
// gremlins (v0.6.0), which was tried first, builds anew and runs all tests for
// each mutant, and goes by coverage blocks: the conditions of a switch without
// a tag are in none, and 318 of 1,420 places were left out as not covered.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

type config struct {
	root    string   // folder of the module
	pkg     string   // folder of the package, below root
	list    string   // the list of survivors, below root
	files   []string // only these of the package's files; none: all
	workers int
	least   float64 // share of mutants, in percent, that has to be killed
	verbose bool
	full    bool // without -test.short
	// patience is how much longer than without a mutant the tests may take.
	patience time.Duration
}

func main() {
	var c config
	var files string
	flag.StringVar(&c.root, "root", ".", "folder of the module")
	flag.StringVar(&c.pkg, "package", ".", "folder of the package, below root")
	flag.StringVar(&c.list, "list", "", "the list of survivors, below root")
	flag.StringVar(&files, "files", "", "only these files of the package, separated by commas")
	flag.IntVar(&c.workers, "workers", runtime.NumCPU(), "mutants that are tested at the same time")
	flag.Float64Var(&c.least, "least", 85, "fail if less than this percentage is killed")
	flag.BoolVar(&c.verbose, "v", false, "print each mutant and how it ended")
	flag.DurationVar(&c.patience, "patience", 10*time.Second, "how much longer the tests of a mutant may take")
	flag.BoolVar(&c.full, "full", false, "run the tests that -short leaves out as well")
	flag.Parse()
	if files != "" {
		c.files = strings.Split(files, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run writes the report to w. Its error says what does not hold.
func run(ctx context.Context, c config, w io.Writer) error {
	start := time.Now()
	root, err := filepath.Abs(c.root)
	if err != nil {
		return err
	}
	var listed []string
	if c.list != "" {
		if listed, err = readList(filepath.Join(root, c.list)); err != nil {
			return err
		}
	}
	source, err := load(root, c.pkg, c.files)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary, err := build(ctx, source, work)
	if err != nil {
		return err
	}
	tester, err := newTester(ctx, binary, source.dir, work, c, w)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d mutants, %d tests; ready after %v\n", len(source.mutants), len(tester.tests), time.Since(start).Round(time.Second))
	verdicts, err := tester.all(ctx, source.mutants)
	if err != nil {
		return err
	}
	report := newReport(source.mutants, verdicts, listed, len(c.files) > 0)
	report.print(w)
	fmt.Fprintf(w, "took %v\n", time.Since(start).Round(time.Second))
	return report.verdict(c.least)
}
