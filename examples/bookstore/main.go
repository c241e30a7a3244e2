// Bookstore is a shop's HTTP service that follows parcels and buys shipments.
// It is meant to be copied from: one client for the process, time limits that
// fit into each other, purchases that are safe to repeat, and answers that say
// what happened without saying where.
//
// README.md shows it at work; -help has its settings.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stderr))
}

// run is the program, without what is the process's. It returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) int {
	cfg, err := parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bookstore:", err)
		return 2
	}
	listener, err := net.Listen("tcp", cfg.addr)
	if err == nil {
		err = serve(ctx, cfg, listener, newLogger(stderr))
	}
	if err != nil {
		fmt.Fprintln(stderr, "bookstore:", err)
		return 1
	}
	return 0
}
