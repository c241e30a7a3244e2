package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// broken are clients with one fault each, and the groups in which it shows.
var broken = []struct {
	name   string
	groups []string
	make   func(baseURL string) conformance.Client
}{
	{"a fresh key for each attempt", []string{"idempotency", "errors"}, rewriting(freshKey)},
	{"other bytes on each attempt", []string{"idempotency"}, rewriting(otherBytes)},
	{"another key than the caller's", []string{"idempotency"}, with(func(c *fake) { c.key = func(string) string { return "" } })},
	{"one key for all calls", []string{"idempotency"}, with(func(c *fake) { c.key = func(string) string { return "always-the-same" } })},
	{"a key on reads", []string{"idempotency"}, rewriting(keyOnReads)},
	{"no key of its own", []string{"idempotency"}, with(func(c *fake) { c.key = onlyGiven })},
	{"no jitter", []string{"retries"}, options(carrier.WithRetry(carrier.RetryPolicy{Jitter: carrier.NoJitter, BaseDelay: 400 * time.Millisecond}))},
	{"no Retry-After", []string{"retry-after", "deadlines"}, options(carrier.WithRetry(carrier.RetryPolicy{MaxRetryAfter: -1}))},
	{"any Retry-After", []string{"retry-after"}, options(carrier.WithTimeout(100*time.Hour), carrier.WithRetry(carrier.RetryPolicy{MaxRetryAfter: 100 * time.Hour}))},
	{"no time limit of an attempt", []string{"deadlines", "outage"}, options(carrier.WithAttemptTimeout(-1))},
	{"no time limit but its own", []string{"deadlines"}, with(func(c *fake) { c.context = context.WithoutCancel })},
	{"no time limit of the body", []string{"deadlines"}, transport(unboundedBody)},
	{"no retries", []string{"retries", "bodies"}, options(carrier.WithoutRetry())},
	{"retries of everything", []string{"retries", "retry-after"}, with(func(c *fake) { c.tries = 3 })},
	{"10 attempts", []string{"retries"}, options(carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: 10, BaseDelay: 40 * time.Millisecond, MaxDelay: 40 * time.Millisecond}),
		carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: -1}), carrier.WithoutBreaker())},
	{"no breaker", []string{"outage"}, options(carrier.WithoutBreaker())},
	{"no breaker and no budget", []string{"outage"}, options(carrier.WithoutBreaker(), carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: -1}))},
	{"a breaker that counts all errors", []string{"outage"}, with(func(c *fake) { c.opens = 300 * time.Millisecond })},
	{"a breaker that stays open", []string{"outage"}, with(func(c *fake) { c.opens = time.Hour })},
	{"no limit of a body, and a minute for an attempt", []string{"bodies", "errors"}, options(carrier.WithMaxResponseBytes(-1), carrier.WithAttemptTimeout(time.Minute))},
	{"a limit of all labels", []string{"bodies"}, with(func(c *fake) { c.labelLimit = 1 << 20 })},
	{"errors of a download are lost", []string{"bodies", "deadlines"}, with(func(c *fake) { c.swallow = true })},
	{"redirects followed with all headers", []string{"security"}, transport(followed)},
	{"the API key in its errors", []string{"security"}, with(func(c *fake) { c.chatty = true })},
	{"tells nothing", []string{"outcome", "errors"}, with(func(c *fake) {
		c.tell = func(r conformance.Result) conformance.Result {
			return conformance.Result{Value: r.Value, Err: r.Err}
		}
	})},
	{"says that it was rejected, whatever came", []string{"outcome"}, with(func(c *fake) {
		c.tell = func(r conformance.Result) conformance.Result {
			r.Outcome = conformance.Rejected
			return r
		}
	})},
	{"says that it is unknown, whatever came", []string{"outcome"}, with(func(c *fake) {
		c.tell = func(r conformance.Result) conformance.Result {
			r.Outcome = conformance.Unknown
			return r
		}
	})},
	{"tells another request", []string{"errors"}, with(func(c *fake) {
		c.tell = func(r conformance.Result) conformance.Result {
			return conformance.Result{Value: r.Value, Err: r.Err, StatusCode: 418, RequestID: "req_x", Key: "key-x", Attempts: 77, Sends: 78}
		}
	})},
	{"a connection for each request", []string{"connections"}, options(carrier.WithTransport(&http.Transport{DisableKeepAlives: true}))},
	{"two idle connections", []string{"connections"}, options(carrier.WithTransport(&http.Transport{MaxIdleConnsPerHost: 2}))},
	{"a goroutine for each call", []string{"connections"}, with(func(c *fake) { c.leaks = true })},
	{"everything twice", []string{"faults", "bodies"}, with(func(c *fake) { c.twice = true })},
	{"fussy about answers", []string{"faults"}, func(baseURL string) conformance.Client { return &fussy{plain{base: baseURL}} }},
	{"https given up for http", []string{"faults"}, func(baseURL string) conformance.Client {
		return newSDK(strings.Replace(baseURL, "https:", "http:", 1))
	}},
	{"a header limit of 2 KiB", []string{"faults", "bodies"}, options(carrier.WithTransport(&http.Transport{MaxIdleConnsPerHost: 256, MaxResponseHeaderBytes: 2 << 10}))},
	{"HTTP by hand", []string{"faults"}, func(baseURL string) conformance.Client { return &byHand{plain{base: baseURL}} }},
}

// full runs all cases for each of the broken clients, and not their groups only.
var full = os.Getenv("CONFORMANCE_FULL") != ""

// Each broken client breaks the rules of the golden file, and no others; and
// there is no case that all of them pass.
func TestBrokenClients(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of waiting")
	}
	const golden = "testdata/broken.json"
	want := readGolden(t, golden)
	var mu sync.Mutex
	got := map[string][]string{}
	places := make(chan struct{}, 4) // they wait more than they work
	t.Run("client", func(t *testing.T) {
		for _, b := range broken {
			t.Run(b.name, func(t *testing.T) {
				groups := b.groups
				if full {
					groups = nil
				}
				var card *conformance.Scorecard
				var diff []string
				done := make(chan struct{})
				go func() {
					defer close(done)
					places <- struct{}{}
					defer func() { <-places }()
					card, diff = unlike(b.make, want[b.name], groups...)
				}()
				t.Parallel()
				<-done
				for _, d := range diff {
					t.Error(d)
				}
				mu.Lock()
				defer mu.Unlock()
				got[b.name] = merged(want[b.name], card)
			})
		}
	})
	if *update {
		writeGolden(t, golden, got)
	}
}

// Every case fails for some client, so that none is vacuous.
func TestEveryCaseCanFail(t *testing.T) {
	failed := map[string]bool{}
	note := func(line string) {
		_, id, _ := strings.Cut(line, ": ")
		failed[id] = true
	}
	for _, line := range readGolden(t, "testdata/nethttp.json")["net/http"] {
		note(line)
	}
	for _, seen := range readGolden(t, "testdata/broken.json") {
		for _, line := range seen {
			note(line)
		}
	}
	for _, c := range conformance.Cases() {
		if !failed[c.ID] {
			t.Errorf("%s (%s): no client fails it", c.ID, c.Title)
		}
	}
}

func options(opts ...carrier.Option) func(string) conformance.Client {
	return func(baseURL string) conformance.Client { return newSDK(baseURL, opts...) }
}

// transport has a RoundTripper of its own over net/http's.
func transport(make func(*http.Transport) http.RoundTripper) func(string) conformance.Client {
	return func(baseURL string) conformance.Client {
		t := &http.Transport{MaxIdleConnsPerHost: 256, MaxResponseHeaderBytes: 256 << 10}
		return closing{newSDK(baseURL, carrier.WithTransport(make(t))), t}
	}
}

type closing struct {
	sdk
	transport *http.Transport
}

func (c closing) Close() error {
	c.transport.CloseIdleConnections()
	return c.sdk.Close()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// unboundedBody forgets the context once the headers have come.
func unboundedBody(t *http.Transport) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		stop := context.AfterFunc(r.Context(), cancel)
		resp, err := t.RoundTrip(r.WithContext(ctx))
		stop()
		return resp, err
	})
}

func followed(t *http.Transport) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		for {
			resp, err := t.RoundTrip(r)
			if err != nil || resp.StatusCode/100 != 3 {
				return resp, err
			}
			next, err := r.URL.Parse(resp.Header.Get("Location"))
			_ = resp.Body.Close()
			if err != nil {
				return nil, err
			}
			again := r.Clone(r.Context())
			again.URL, again.Host = next, ""
			if r.GetBody != nil {
				again.Body, _ = r.GetBody()
			}
			r = again
		}
	})
}

// rewriting changes the bytes that go out, as a client would that makes each
// request anew.
func rewriting(change func(request []byte) []byte) func(string) conformance.Client {
	return func(baseURL string) conformance.Client {
		t := &http.Transport{MaxIdleConnsPerHost: 256, MaxResponseHeaderBytes: 256 << 10,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return rewritingConn{conn, change}, err
			},
		}
		return closing{newSDK(baseURL, carrier.WithTransport(t)), t}
	}
}

type rewritingConn struct {
	net.Conn
	change func([]byte) []byte
}

func (c rewritingConn) Write(p []byte) (int, error) {
	if _, err := c.Conn.Write(c.change(bytes.Clone(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

var (
	sends     atomic.Int64
	keyHeader = regexp.MustCompile(`Idempotency-Key: [^\r]*`)
)

func freshKey(p []byte) []byte {
	return keyHeader.ReplaceAll(p, fmt.Appendf(nil, "Idempotency-Key: fresh-%d", sends.Add(1)))
}

func otherBytes(p []byte) []byte {
	return bytes.Replace(p, []byte("Ada Books"), fmt.Appendf(nil, "Ada %05d", sends.Add(1)), 1)
}

func keyOnReads(p []byte) []byte {
	if bytes.HasPrefix(p, []byte("GET ")) {
		return bytes.Replace(p, []byte("\r\n"), []byte("\r\nIdempotency-Key: read\r\n"), 1)
	}
	return p
}

// fake is an adapter that spoils what the SDK does.
type fake struct {
	sdk
	key        func(string) string
	context    func(context.Context) context.Context
	tries      int
	opens      time.Duration // a breaker of its own
	labelLimit int64
	swallow    bool
	chatty     bool
	leaks      bool
	twice      bool
	tell       func(conformance.Result) conformance.Result

	mu     sync.Mutex
	errors int
	until  time.Time
}

func with(spoil func(*fake)) func(string) conformance.Client {
	return func(baseURL string) conformance.Client {
		c := &fake{}
		spoil(c)
		c.sdk = newSDK(baseURL)
		if c.opens != 0 {
			c.sdk = newSDK(baseURL, carrier.WithoutBreaker())
		}
		return c
	}
}

// onlyGiven leaves a call without a key to fail as a carrier lets it.
func onlyGiven(key string) string {
	if key == "" {
		return strings.Repeat("x", 256) // which the SDK does not send
	}
	return key
}

func (c *fake) call(ctx context.Context, do func(context.Context) conformance.Result) conformance.Result {
	if c.refuses() {
		return conformance.Result{Err: errors.New("open"), Outcome: conformance.NotSent}
	}
	if c.context != nil {
		ctx = c.context(ctx)
	}
	if c.leaks {
		go func() { select {} }()
	}
	r := do(ctx)
	for n := 1; n < c.tries && r.Err != nil; n++ {
		r = do(ctx)
	}
	if c.twice {
		r = do(ctx)
	}
	c.count(r.Err)
	if c.chatty && r.Err != nil {
		r.Err = fmt.Errorf("with key %s: %w", conformance.APIKey, r.Err)
	}
	if c.tell != nil {
		r = c.tell(r)
	}
	return r
}

func (c *fake) refuses() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}

func (c *fake) count(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors++
	if err == nil {
		c.errors = 0
	}
	if c.errors >= 5 {
		c.until = time.Now().Add(c.opens)
	}
}

func (c *fake) Track(ctx context.Context, number string) conformance.Result {
	return c.call(ctx, func(ctx context.Context) conformance.Result { return c.sdk.Track(ctx, number) })
}

func (c *fake) Ship(ctx context.Context, key string, order []byte) conformance.Result {
	if c.key != nil {
		key = c.key(key)
	}
	return c.call(ctx, func(ctx context.Context) conformance.Result { return c.sdk.Ship(ctx, key, order) })
}

func (c *fake) Label(ctx context.Context, shipmentID string, w io.Writer) conformance.Result {
	return c.call(ctx, func(ctx context.Context) conformance.Result {
		var b bytes.Buffer
		r := c.sdk.Label(ctx, shipmentID, &b)
		if c.labelLimit != 0 && int64(b.Len()) > c.labelLimit {
			b.Truncate(int(c.labelLimit))
		}
		_, _ = w.Write(b.Bytes())
		if c.swallow && b.Len() > 0 {
			r.Err = nil
		}
		return r
	})
}
