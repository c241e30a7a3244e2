package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// settings come from flags, and from the environment where a flag is not given.
type settings struct {
	addr       string
	port       int // in place of that of addr, unless it is negative
	apiKey     string
	failEvery  int
	latency    time.Duration
	seed       uint64
	labelTime  time.Duration
	rateLimit  int  // a minute; 0 for that of the package
	strictKeys bool // in quotes
	store5xx   bool
	uniqueRefs bool
	admin      string
	adminHosts string // separated by commas
	worlds     int
	journal    int
	state      string // a file
	tls        bool
	tlsCert    string // a file
	logFormat  string
	untilStdin bool // ends with its input
	version    bool // says it, and nothing else
}

const (
	adminAuto = "auto"
	adminOn   = "on"
	adminOff  = "off"

	logText = "text"
	logJSON = "json"
	logOff  = "off"
)

const usage = `mockcarrier is the carrier as a test server.

When it is ready it prints one line of JSON with its addresses to stdout:
  {"url":"http://127.0.0.1:52188/v1","admin":"http://127.0.0.1:52188/__mock/"}
Behind the second there is a page for people, and the admin API for tests.

It logs to stderr and ends on SIGINT and SIGTERM. Requests with the header
X-Mock-World: NAME meet a carrier of their own, for tests that run in parallel.

A flag goes before its environment variable.

`

// variables are the environment variables of the flags.
var variables = []struct{ flag, variable string }{
	{"addr", "CARRIER_ADDR"},
	{"port", "CARRIER_PORT"},
	{"api-key", "CARRIER_API_KEY"},
	{"fail-every", "CARRIER_FAIL_EVERY"},
	{"latency", "CARRIER_LATENCY"},
	{"seed", "CARRIER_SEED"},
	{"label-time", "CARRIER_LABEL_TIME"},
	{"rate-limit", "CARRIER_RATE_LIMIT"},
	{"strict-keys", "CARRIER_STRICT_KEYS"},
	{"store-server-errors", "CARRIER_STORE_SERVER_ERRORS"},
	{"unique-references", "CARRIER_UNIQUE_REFERENCES"},
	{"admin", "CARRIER_ADMIN"},
	{"admin-hosts", "CARRIER_ADMIN_HOSTS"},
	{"worlds", "CARRIER_WORLDS"},
	{"journal", "CARRIER_JOURNAL"},
	{"state", "CARRIER_STATE"},
	{"tls", "CARRIER_TLS"},
	{"tls-cert", "CARRIER_TLS_CERT"},
	{"log", "CARRIER_LOG"},
	{"exit-on-stdin-close", "CARRIER_EXIT_ON_STDIN_CLOSE"},
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("mockcarrier", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.addr, "addr", "127.0.0.1:52188", "`address` to listen on; port 0 takes a free one (CARRIER_ADDR)")
	flags.IntVar(&s.port, "port", -1, "`port` to listen on, in place of that of -addr; 0 takes a free one (CARRIER_PORT)")
	flags.StringVar(&s.apiKey, "api-key", mockcarrier.APIKey, "`key` that is accepted in x-api-key (CARRIER_API_KEY)")
	flags.IntVar(&s.failEvery, "fail-every", 0, "answer only each `n`th request; the others, two of three for 3, get 503 with Retry-After: 1.\n"+
		"0 and 1 answer all (CARRIER_FAIL_EVERY)")
	flags.DurationVar(&s.latency, "latency", 0, "`time` that each request takes longer, such as 200ms (CARRIER_LATENCY)")
	flags.Uint64Var(&s.seed, "seed", 1, "`number` that random faults are decided by (CARRIER_SEED)")
	flags.DurationVar(&s.labelTime, "label-time", 0, "`time` that it takes to make a label, for which 202 is answered (CARRIER_LABEL_TIME)")
	flags.IntVar(&s.rateLimit, "rate-limit", 0, "`number` of requests a minute that an account may make, more of which get 429;\n"+
		"0 for ten million (CARRIER_RATE_LIMIT)")
	flags.BoolVar(&s.strictKeys, "strict-keys", false, "accept only idempotency keys in quotes (CARRIER_STRICT_KEYS)")
	flags.BoolVar(&s.store5xx, "store-server-errors", false, "replay a 5xx that the carrier gave for an idempotency key, instead of trying again\n"+
		"(CARRIER_STORE_SERVER_ERRORS)")
	flags.BoolVar(&s.uniqueRefs, "unique-references", false, "refuse the reference of another shipment with 409 (CARRIER_UNIQUE_REFERENCES)")
	flags.StringVar(&s.admin, "admin", adminAuto, "admin API under /__mock/: auto (`when`ever only this machine can reach it), on or off (CARRIER_ADMIN)")
	flags.StringVar(&s.adminHosts, "admin-hosts", "", "host `names`, with commas in between, that the admin API may be reached by, beside\n"+
		"localhost and those without a dot (CARRIER_ADMIN_HOSTS)")
	flags.IntVar(&s.worlds, "worlds", 100, "`number` of worlds that there can be at a time, beside the main one (CARRIER_WORLDS)")
	flags.IntVar(&s.journal, "journal", 10_000, "`number` of requests that the journal of a world holds (CARRIER_JOURNAL)")
	flags.StringVar(&s.state, "state", "", "`file` that shipments, ledger, subscriptions with their secrets, idempotency keys and\n"+
		"clock are kept in, so that they are there again after a restart; made if it is missing\n"+
		"(CARRIER_STATE)")
	flags.BoolVar(&s.tls, "tls", false, "serve https, with a certificate that is made for this run (CARRIER_TLS)")
	flags.StringVar(&s.tlsCert, "tls-cert", "", "`file` to write that certificate to, in PEM, for clients to trust (CARRIER_TLS_CERT)")
	flags.StringVar(&s.logFormat, "log", logText, "`form` of the log on stderr: text, json or off (CARRIER_LOG)")
	flags.BoolVar(&s.untilStdin, "exit-on-stdin-close", false, "end when stdin is closed, as it is when whoever started the program is gone\n"+
		"(CARRIER_EXIT_ON_STDIN_CLOSE)")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
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

func (s *settings) check() error {
	host, _, err := net.SplitHostPort(s.addr)
	switch {
	case err != nil:
		return fmt.Errorf("the address %q is not like 127.0.0.1:52188", s.addr)
	case s.port > 65535:
		return fmt.Errorf("the port is %d, and must be at most 65535", s.port)
	case s.apiKey == "":
		return fmt.Errorf("the API key is empty")
	case s.failEvery < 0:
		return fmt.Errorf("fail-every is %d, and must be at least 0", s.failEvery)
	case s.latency < 0:
		return fmt.Errorf("the latency is %v, and must be at least 0", s.latency)
	case s.labelTime < 0:
		return fmt.Errorf("label-time is %v, and must be at least 0", s.labelTime)
	case s.rateLimit < 0:
		return fmt.Errorf("rate-limit is %d, and must be at least 0", s.rateLimit)
	case s.admin != adminAuto && s.admin != adminOn && s.admin != adminOff:
		return fmt.Errorf("admin is %q, and must be auto, on or off", s.admin)
	case s.worlds < 0:
		return fmt.Errorf("worlds is %d, and must be at least 0", s.worlds)
	case s.journal < 1:
		return fmt.Errorf("journal is %d, and must be at least 1", s.journal)
	case s.tlsCert != "" && !s.tls:
		return fmt.Errorf("tls-cert needs tls")
	case s.logFormat != logText && s.logFormat != logJSON && s.logFormat != logOff:
		return fmt.Errorf("log is %q, and must be text, json or off", s.logFormat)
	}
	if s.port >= 0 {
		s.addr = net.JoinHostPort(host, strconv.Itoa(s.port))
	}
	return nil
}

func (s settings) hostNames() []string {
	if s.adminHosts == "" {
		return nil
	}
	return strings.Split(s.adminHosts, ",")
}

func (s settings) logger(stderr io.Writer) *slog.Logger {
	switch s.logFormat {
	case logJSON:
		return slog.New(slog.NewJSONHandler(stderr, nil))
	case logOff:
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(stderr, nil))
}

// options are those of each world.
func (s settings) options(logger *slog.Logger, admin bool) []mockcarrier.Option {
	opts := []mockcarrier.Option{
		mockcarrier.WithAPIKey(s.apiKey), mockcarrier.WithLatency(s.latency), mockcarrier.WithSeed(s.seed),
		mockcarrier.WithLogger(logger), mockcarrier.WithJournalLimit(s.journal), mockcarrier.WithAdmin(admin),
		mockcarrier.WithAdminHosts(s.hostNames()...), mockcarrier.WithLabelTime(s.labelTime),
		mockcarrier.WithAutoDelivery(),
	}
	if s.store5xx {
		opts = append(opts, mockcarrier.WithIdempotencyPolicy(mockcarrier.StoreServerErrors))
	}
	if s.strictKeys {
		opts = append(opts, mockcarrier.WithStrictKeys())
	}
	if s.uniqueRefs {
		opts = append(opts, mockcarrier.WithUniqueReferences())
	}
	if s.rateLimit > 0 {
		opts = append(opts, mockcarrier.WithRateLimit(s.rateLimit, time.Minute))
	}
	if s.failEvery > 1 {
		opts = append(opts, mockcarrier.WithFault(mockcarrier.Status(503).RetryAfter(1).AllButEveryNth(s.failEvery)))
	}
	return opts
}
