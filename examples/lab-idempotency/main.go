// Lab-idempotency shows what a late answer costs: a client that gives up and
// tries again buys twice, unless both tries carry the same key. Then it kills
// the buying process while the carrier's answer is on its way, and lets a new
// process go on.
//
//	go run ./examples/lab-idempotency
//
// The carrier's ledger is the proof. The lab ends with an error if it does not
// say what the lab claims.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The orders, and how often the carrier sells each of them.
const (
	freshKey   = "order-1001" // tried again with a fresh key
	oneKey     = "order-1002" // tried again with the same key
	randomKey  = "order-1003" // process killed, its key was random
	derivedKey = "order-1004" // process killed, its key is derived from the order
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := run
	if isBuyer(os.Args) {
		command = buyer
	}
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab-idempotency:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("lab-idempotency", flag.ContinueOnError)
	flags.SetOutput(stdout)
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	u := startUpstream()
	defer u.stop()
	for _, scene := range []func(context.Context, *upstream, io.Writer) error{tryAgain, killedInBetween} {
		if err := scene(ctx, u, stdout); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return settle(u, stdout)
}
