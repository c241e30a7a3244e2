package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// config comes from flags, and from the environment where a flag is not given.
type config struct {
	addr   string
	drain  time.Duration
	orders string // file; "": those that are built in
	tokens directory

	carrierURL, carrierKey string

	trackTimeout, trackAttempt time.Duration // a whole request, and one attempt at the carrier
	buyTimeout, buyAttempt     time.Duration

	attempts                int
	retryTokens, retryRatio float64
	breakerFailures         int
	breakerRatio            float64
	breakerOpen             time.Duration
}

const usage = `bookstore is a shop's HTTP service that follows parcels and buys shipments.

Secrets come from the environment only, since everyone on a machine can read
the arguments of a process:
  CARRIER_API_KEY   the shop's key at the carrier
  BOOKSTORE_TOKENS  name:role:token,name:role:token,...: who may come in. The
                    roles are staff and customer; a token has at least 16 characters

Each flag has a variable as well, which it goes before: -track-timeout is
BOOKSTORE_TRACK_TIMEOUT, and -carrier-url is CARRIER_URL.

The defaults are for a carrier that works most of the time. For one that fails
two requests of three, all that a call costs must be allowed for:
  -attempts 8           a call needs three on average, and more when its luck is bad
  -retry-ratio 2        each success has to pay for two failures
  -retry-tokens 40      and the reserve for a run of them
  -breaker-failures 20  such a run is no outage yet
  -breaker-ratio 0.95   and neither is a share of 0.67
  -track-timeout 10s    seven waits of a second (the carrier's Retry-After) and a bit

`

func parse(args []string, getenv func(string) string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("bookstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`address` to listen on; port 0 takes a free one")
	flags.DurationVar(&c.drain, "drain", 0, "`time` to go on serving as not ready before stopping, so that load balancers see it")
	flags.StringVar(&c.orders, "orders", "", "`file` to read the orders from; the orders.json that is built in, unless given")
	flags.StringVar(&c.carrierURL, "carrier-url", "http://127.0.0.1:52188/v1", "base `URL` of the carrier's API; by default a mockcarrier on this machine")
	flags.DurationVar(&c.trackTimeout, "track-timeout", 5*time.Second, "`time` limit of a request that reads")
	flags.DurationVar(&c.trackAttempt, "track-attempt", 2*time.Second, "`time` limit of one attempt to read at the carrier")
	flags.DurationVar(&c.buyTimeout, "buy-timeout", 20*time.Second, "`time` limit of a request that buys")
	flags.DurationVar(&c.buyAttempt, "buy-attempt", 8*time.Second, "`time` limit of one attempt to buy at the carrier")
	flags.IntVar(&c.attempts, "attempts", 3, "`number` of attempts that a call may make, the first included")
	flags.Float64Var(&c.retryTokens, "retry-tokens", 10, "`size` of the retry budget: a failure takes 1, and at half of it nothing is retried any more")
	flags.Float64Var(&c.retryRatio, "retry-ratio", 0.2, "`amount` that a success gives back to the retry budget")
	flags.IntVar(&c.breakerFailures, "breaker-failures", 5, "`number` of failures in a row that opens the breaker")
	flags.Float64Var(&c.breakerRatio, "breaker-ratio", 0.5, "`share` of failures that opens the breaker, of at least 10 calls in 10 s")
	flags.DurationVar(&c.breakerOpen, "breaker-open", 5*time.Second, "`time` that the breaker stays open")

	var wrong []error
	flags.VisitAll(func(f *flag.Flag) {
		name := variable(f.Name)
		if value := getenv(name); value != "" {
			if err := flags.Set(f.Name, value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	if len(wrong) > 0 {
		return c, errors.Join(wrong...)
	}
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		flags.SetOutput(io.Discard)
	}
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("what is %q? See -help", flags.Arg(0))
	}

	var err error
	if c.tokens, err = parseTokens(getenv("BOOKSTORE_TOKENS")); err != nil {
		return c, fmt.Errorf("BOOKSTORE_TOKENS: %w; see -help", err)
	}
	if c.carrierKey = getenv("CARRIER_API_KEY"); c.carrierKey == "" {
		return c, errors.New("CARRIER_API_KEY is not set; see -help")
	}
	return c, c.check()
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	name := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if strings.HasPrefix(name, "CARRIER_") {
		return name
	}
	return "BOOKSTORE_" + name
}

// check refuses what makes no sense; what the carrier's client is given beside,
// it checks itself. In its policies 0 would mean the default.
func (c config) check() error {
	switch {
	case c.drain < 0:
		return errors.New("-drain must not be negative")
	case c.trackTimeout <= 0, c.trackAttempt <= 0, c.buyTimeout <= 0, c.buyAttempt <= 0, c.breakerOpen <= 0:
		return errors.New("time limits must be above 0")
	case c.buyTimeout <= c.trackTimeout:
		return errors.New("-buy-timeout must be longer than -track-timeout: it reads first, and then buys")
	case c.attempts <= 0, c.breakerFailures <= 0:
		return errors.New("-attempts and -breaker-failures must be above 0")
	case c.retryTokens <= 0, c.retryRatio <= 0, c.breakerRatio <= 0:
		return errors.New("-retry-tokens, -retry-ratio and -breaker-ratio must be above 0")
	}
	return nil
}
