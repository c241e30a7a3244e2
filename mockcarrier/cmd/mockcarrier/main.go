// Command mockcarrier is the carrier as a test server, for programs in any
// language. When it is ready it prints one line of JSON with its addresses:
//
//	$ mockcarrier
//	{"url":"http://127.0.0.1:52188/v1","admin":"http://127.0.0.1:52188/__mock/"}
//
// The second has a page for people to look at, and the admin API for tests:
// faults, journal, ledger, clock, expectations. Requests with the header
// X-Mock-World meet a carrier of their own, so that tests can run in parallel.
// With --state what was bought is there again after a restart, also if the
// program was killed.
//
// It logs to stderr and ends on SIGINT and SIGTERM, and with
// --exit-on-stdin-close when whoever has started it is gone.
// "mockcarrier --help" has its settings.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/carrier-sdk/carrier-go/carrier"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run is the program, without what is the process's. It returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "mockcarrier:", strings.TrimPrefix(err.Error(), "mockcarrier: "))
		return 2
	}
	if s.version {
		fmt.Fprintln(stdout, "mockcarrier", carrier.Version)
		return 0
	}
	if s.untilStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	if err := serve(ctx, s, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "mockcarrier:", strings.TrimPrefix(err.Error(), "mockcarrier: "))
		return 1
	}
	return 0
}
