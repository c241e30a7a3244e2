package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// settings come from flags, and from the environment where a flag is not given.
type settings struct {
	addr      string
	apiKey    string
	failEvery int
	latency   time.Duration
	seed      uint64
	admin     string
}

const (
	adminAuto = "auto"
	adminOn   = "on"
	adminOff  = "off"
)

const usage = `mockcarrier is the carrier as a test server.

When it is ready it prints one line of JSON with its addresses to stdout:
  {"url":"http://127.0.0.1:52188/v1","admin":"http://127.0.0.1:52188/__mock/"}
It logs to stderr and ends on SIGINT and SIGTERM.

A flag goes before its environment variable.

`

// variables are the environment variables of the flags.
var variables = []struct{ flag, variable string }{
	{"addr", "CARRIER_ADDR"},
	{"api-key", "CARRIER_API_KEY"},
	{"fail-every", "CARRIER_FAIL_EVERY"},
	{"latency", "CARRIER_LATENCY"},
	{"seed", "CARRIER_SEED"},
	{"admin", "CARRIER_ADMIN"},
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("mockcarrier", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.addr, "addr", "127.0.0.1:52188", "`address` to listen on; port 0 takes a free one (CARRIER_ADDR)")
	flags.StringVar(&s.apiKey, "api-key", mockcarrier.APIKey, "`key` that is accepted in x-api-key (CARRIER_API_KEY)")
	flags.IntVar(&s.failEvery, "fail-every", 0, "answer only each `n`th request; the others, two of three for 3, get 503 with Retry-After: 1.\n"+
		"0 and 1 answer all (CARRIER_FAIL_EVERY)")
	flags.DurationVar(&s.latency, "latency", 0, "`time` that each request takes longer, such as 200ms (CARRIER_LATENCY)")
	flags.Uint64Var(&s.seed, "seed", 1, "`number` that random faults are decided by (CARRIER_SEED)")
	flags.StringVar(&s.admin, "admin", adminAuto, "admin API under /__mock/: auto (`when`ever only this machine can reach it), on or off (CARRIER_ADMIN)")
	for _, v := range variables {
		if value := getenv(v.variable); value != "" {
			if err := flags.Set(v.flag, value); err != nil {
				return s, fmt.Errorf("%s=%s: %w", v.variable, value, err)
			}
		}
	}
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		flags.SetOutput(io.Discard)
	}
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("what is %q? See mockcarrier --help", flags.Arg(0))
	}
	return s, s.check()
}

func (s settings) check() error {
	if _, _, err := net.SplitHostPort(s.addr); err != nil {
		return fmt.Errorf("the address %q is not like 127.0.0.1:52188", s.addr)
	}
	switch {
	case s.apiKey == "":
		return fmt.Errorf("the API key is empty")
	case s.failEvery < 0:
		return fmt.Errorf("fail-every is %d, and must be at least 0", s.failEvery)
	case s.latency < 0:
		return fmt.Errorf("the latency is %v, and must be at least 0", s.latency)
	case s.admin != adminAuto && s.admin != adminOn && s.admin != adminOff:
		return fmt.Errorf("admin is %q, and must be auto, on or off", s.admin)
	}
	return nil
}

func (s settings) options(logger *slog.Logger, admin bool) []mockcarrier.Option {
	const journalLimit = 10_000 // it may run for days
	opts := []mockcarrier.Option{
		mockcarrier.WithAPIKey(s.apiKey), mockcarrier.WithLatency(s.latency), mockcarrier.WithSeed(s.seed),
		mockcarrier.WithLogger(logger), mockcarrier.WithJournalLimit(journalLimit), mockcarrier.WithAdmin(admin),
	}
	if s.failEvery > 1 {
		opts = append(opts, mockcarrier.WithFault(mockcarrier.Status(503).RetryAfter(1).AllButEveryNth(s.failEvery)))
	}
	return opts
}
