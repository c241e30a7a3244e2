// Lab-herd sends 100 callers at once to a carrier that is down for its first
// 1.5 s, six times over, and shows when their attempts arrive: with each kind of
// jitter, with the retry budget, with the breaker, and with a breaker that lets
// callers wait. It prints a histogram of each, and draws them.
//
//	go run ./examples/lab-herd -out herd.svg
//
// It ends with an error if what it claims does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	callers  = 100
	patience = 5 * time.Second // of each caller
	outage   = 1500 * time.Millisecond
	step     = 250 * time.Millisecond // of the histograms
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab-herd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("lab-herd", flag.ContinueOnError)
	flags.SetOutput(stdout)
	out := flags.String("out", filepath.Join(os.TempDir(), "lab-herd.svg"), "draw the histograms into this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	fmt.Fprintf(stdout, "%d callers, each with %v, begin at once. The carrier answers 503 for its first %v.\n", callers, patience, outage)
	fmt.Fprintf(stdout, "Attempts that arrive, by the %v; the bar is where the carrier comes back.\n", step)
	var herds []herd
	for _, p := range policies() {
		h, err := stampede(ctx, p)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		herds = append(herds, h)
	}
	printHistograms(stdout, herds)
	if err := writeSVG(*out, herds); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nDrawn into %s\n", *out)
	return check(herds)
}
