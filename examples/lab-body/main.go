// Lab-body shows what a client needs when the carrier sends its headers at once
// and its body late, or never, and what a body costs that nobody reads.
//
//	go run ./examples/lab-body
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
	"syscall"
	"time"
)

const (
	calls    = 5                      // of each client
	limit    = 500 * time.Millisecond // the time limit of each client
	watch    = time.Second            // how long the lab looks at what does not end
	patience = 10 * time.Second       // how long it waits for what must
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab-body:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("lab-body", flag.ContinueOnError)
	flags.SetOutput(stdout)
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	for _, scene := range []func(context.Context, io.Writer) error{lateBody, latePurchase, unreadBody} {
		if err := scene(ctx, stdout); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		fmt.Fprintln(stdout)
	}
	fmt.Fprintln(stdout, "A time limit has to cover the body, and whoever gives up has to close the connection.")
	return nil
}
