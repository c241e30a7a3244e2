package carrier_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// noRequests fails the test if anything is sent.
func noRequests(t *testing.T) carrier.Option {
	return carrier.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL.Path)
		return nil, errors.New("must not be asked")
	}))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refused holds an error against what every refusal before sending has in common.
func refused(t *testing.T, err error) *carrier.Error {
	t.Helper()
	var e *carrier.Error
	switch {
	case err == nil:
		t.Fatal("no error")
	case !errors.As(err, &e):
		t.Fatalf("%T is no *carrier.Error: %v", err, err)
	case !errors.Is(err, carrier.ErrInvalidRequest):
		t.Fatalf("not ErrInvalidRequest: %v", err)
	case e.Outcome != carrier.OutcomeNotSent || e.Attempts != 0:
		t.Fatalf("outcome %v after %d attempts: %v", e.Outcome, e.Attempts, err)
	case errors.Is(err, carrier.ErrOutcomeUnknown):
		t.Fatalf("the outcome is not unknown: %v", err)
	case strings.ContainsAny(err.Error(), "\r\n"):
		t.Fatalf("more than one line: %q", err.Error())
	}
	return e
}

func TestBaseURL(t *testing.T) {
	for name, test := range map[string]struct {
		url string
		ok  bool
	}{
		"plain":             {"https://api.carrier.example/v1", true},
		"slash at the end":  {"https://api.carrier.example/v1/", true},
		"no path":           {"http://127.0.0.1:8080", true},
		"IPv6":              {"http://[::1]:8080/v1", true},
		"escaped path":      {"https://api.carrier.example/a%2Fb/v1", true},
		"upper-case scheme": {"HTTPS://api.carrier.example/v1", true},
		"empty":             {"", false},
		"no scheme":         {"api.carrier.example/v1", false},
		"scheme-relative":   {"//api.carrier.example/v1", false},
		"other scheme":      {"ftp://api.carrier.example/v1", false},
		"file":              {"file:///etc/passwd", false},
		"opaque":            {"https:api.carrier.example", false},
		"no host":           {"https:///v1", false},
		"port only":         {"https://:443/v1", false},
		"empty port":        {"https://api.carrier.example:/v1", false},
		"port 0":            {"https://api.carrier.example:0/v1", false},
		"port over 65535":   {"https://api.carrier.example:65536/v1", false},
		"port a word":       {"https://api.carrier.example:https/v1", false},
		"query":             {"https://api.carrier.example/v1?x=1", false},
		"empty query":       {"https://api.carrier.example/v1?", false},
		"fragment":          {"https://api.carrier.example/v1#x", false},
		"empty fragment":    {"https://api.carrier.example/v1#", false},
		"user info":         {"https://user:hunter2@api.carrier.example/v1", false},
		"space":             {"https://api carrier.example/v1", false},
		"control character": {"https://api.carrier.example/\x00", false},
		"dot segments":      {"https://api.carrier.example/v1/../v2", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := carrier.New(test.url)
			if test.ok {
				if err != nil {
					t.Fatal(err)
				}
				_ = c.Close()
				return
			}
			if c != nil {
				t.Error("a client beside an error")
			}
			e := refused(t, err)
			if strings.Contains(e.Error(), "hunter2") {
				t.Errorf("the password shows: %v", e)
			}
		})
	}
}

func TestTrackingNumbers(t *testing.T) {
	client := newClient(t, baseURL, noRequests(t))
	for name, number := range map[string]string{
		"empty":              "",
		"dot":                ".",
		"dot dot":            "..",
		"slash":              "BK1001/TR",
		"only a slash":       "/",
		"backslash":          `BK1001\TR`,
		"percent":            "BK1001%2FTR",
		"query":              "BK1001?x",
		"fragment":           "BK1001#x",
		"new line":           "BK1001\nTR",
		"NUL":                "BK1001\x00TR",
		"DEL":                "BK1001\x7fTR",
		"space":              "BK1001 TR",
		"non-ASCII":          "BK1001TŘ",
		"full-width":         "ＢＫ１００１",
		"invalid UTF-8":      "BK1001\xffTR",
		"too short":          "BK1",
		"too long":           strings.Repeat("B", 41),
		"very long":          strings.Repeat("B", 1<<20),
		"another operation":  "batch",
		"slash at the end":   "BK1001TR/",
		"leading dot dot":    "../shipments",
		"encoded dots":       "%2e%2e",
		"semicolon":          "BK1001;TR",
		"matrix traversal":   "..;",
		"header injection":   "BK1001\r\nX-Evil: 1",
		"right-to-left mark": "BK1001\u200fTR",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.GetTracking(t.Context(), number)
			e := refused(t, err)
			if e.Operation != "getTracking" {
				t.Errorf("operation %q", e.Operation)
			}
			if len(number) > 3 && strings.Contains(e.Error(), number) {
				t.Errorf("the value is repeated: %v", e)
			}
		})
	}
}

func TestNilContext(t *testing.T) {
	client := newClient(t, baseURL, noRequests(t))
	var none context.Context
	_, err := client.GetTracking(none, "BK1001TR")
	refused(t, err)
	_, err = client.GetLabel(none, "shp_1", carrier.GetLabelParams{})
	refused(t, err)
}

func TestAfterClose(t *testing.T) {
	client, err := carrier.New(baseURL, noRequests(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = client.GetTracking(t.Context(), "BK1001TR")
	refused(t, err)
}

func TestOptionsThatAreRefused(t *testing.T) {
	transport := &http.Transport{}
	nan := func() float64 { var zero float64; return zero / zero }()
	for name, opts := range map[string][]carrier.Option{
		"nil":                          {nil},
		"empty key":                    {carrier.WithAPIKey("")},
		"key with a line break":        {carrier.WithAPIKey("secret\r\nX-Evil: 1")},
		"key with a space at the end":  {carrier.WithAPIKey("secret ")},
		"nil transport":                {carrier.WithTransport(nil)},
		"no connections":               {carrier.WithMaxConns(0)},
		"fewer than no connections":    {carrier.WithMaxConns(-1)},
		"transport and connections":    {carrier.WithTransport(transport), carrier.WithMaxConns(10)},
		"connections and transport":    {carrier.WithMaxConns(10), carrier.WithTransport(transport)},
		"empty user agent":             {carrier.WithUserAgent("")},
		"user agent with a line break": {carrier.WithUserAgent("a\nb")},
		"nil logger":                   {carrier.WithLogger(nil)},
		"header Host":                  {carrier.WithHeader("Host", "evil.example")},
		"header Content-Length":        {carrier.WithHeader("content-length", "1")},
		"header Transfer-Encoding":     {carrier.WithHeader("Transfer-Encoding", "chunked")},
		"header of the key":            {carrier.WithHeader("idempotency-key", "k")},
		"another header of a key":      {carrier.WithHeader("X-Idempotency-Key", "k")},
		"header of the credentials":    {carrier.WithAPIKey("secret"), carrier.WithHeader("X-API-Key", "other")},
		"the same in the other order":  {carrier.WithHeader("x-api-key", "other"), carrier.WithAPIKey("secret")},
		"header Authorization":         {carrier.WithHeader("Authorization", "Bearer x")},
		"header without a name":        {carrier.WithHeader("", "x")},
		"header name with a space":     {carrier.WithHeader("X Y", "x")},
		"header value with a break":    {carrier.WithHeader("X-Y", "x\r\nX-Evil: 1")},
		"multiplier below 1":           {carrier.WithRetry(carrier.RetryPolicy{Multiplier: 0.5})},
		"multiplier NaN":               {carrier.WithRetry(carrier.RetryPolicy{Multiplier: nan})},
		"unknown jitter":               {carrier.WithRetry(carrier.RetryPolicy{Jitter: 7})},
		"a success among the statuses": {carrier.WithRetry(carrier.RetryPolicy{Statuses: []int{200}})},
		"no status":                    {carrier.WithRetry(carrier.RetryPolicy{Statuses: []int{5030}})},
		"ratio over 1":                 {carrier.WithBreaker(carrier.BreakerPolicy{FailureRatio: 1.5})},
		"ratio NaN":                    {carrier.WithBreaker(carrier.BreakerPolicy{FailureRatio: nan})},
		"a success among the failures": {carrier.WithBreaker(carrier.BreakerPolicy{FailureStatuses: []int{204}})},
		"budget NaN":                   {carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: nan})},
		"budget over 1000":             {carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: 1001})},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := carrier.New(baseURL, opts...)
			if c != nil {
				t.Error("a client beside an error")
			}
			e := refused(t, err)
			if strings.Contains(e.Error(), "secret") {
				t.Errorf("the key shows: %v", e)
			}
		})
	}
}

func TestCallOptionsThatAreRefused(t *testing.T) {
	client := newClient(t, baseURL, noRequests(t), carrier.WithAPIKey("secret"))
	for name, opt := range map[string]carrier.CallOption{
		"nil":                      nil,
		"empty key":                carrier.WithIdempotencyKey(""),
		"key of 256 characters":    carrier.WithIdempotencyKey(strings.Repeat("k", 256)),
		"key with a line break":    carrier.WithIdempotencyKey("a\nb"),
		"key that is not ASCII":    carrier.WithIdempotencyKey("ключ"),
		"key of an empty order":    carrier.WithIdempotencyKey(carrier.DeriveIdempotencyKey("createShipment", "", 1)),
		"nil CallInfo":             carrier.WithCallInfo(nil),
		"header of the key":        carrier.WithHeader("Idempotency-Key", "k"),
		"header of the API key":    carrier.WithHeader("X-Api-Key", "other"),
		"retry policy":             carrier.WithRetry(carrier.RetryPolicy{Multiplier: 0.1}),
		"header value with breaks": carrier.WithHeader("X-Y", "a\r\nb"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"), opt)
			refused(t, err)
		})
	}
	t.Run("key for a read", func(t *testing.T) {
		_, err := client.GetTracking(t.Context(), "BK1001TR", carrier.WithIdempotencyKey("k"))
		refused(t, err)
	})
	t.Run("key for a write that takes none", func(t *testing.T) {
		_, err := client.CancelShipment(t.Context(), "shp_1", carrier.WithIdempotencyKey("k"))
		refused(t, err)
	})
}

// What the spec's limits forbid is known before sending, and all of it is told at once.
func TestBodiesThatAreRefused(t *testing.T) {
	client := newClient(t, baseURL, noRequests(t))
	for name, test := range map[string]struct {
		change   func(*carrier.ShipmentRequest)
		pointers []string
	}{
		"no reference":        {func(r *carrier.ShipmentRequest) { r.Reference = "" }, []string{"/reference"}},
		"no parcels":          {func(r *carrier.ShipmentRequest) { r.Parcels = nil }, []string{"/parcels"}},
		"weight 0":            {func(r *carrier.ShipmentRequest) { r.Parcels[0].Weight.Value = 0 }, []string{"/parcels/0/weight/value"}},
		"negative weight":     {func(r *carrier.ShipmentRequest) { r.Parcels[0].Weight.Value = -1 }, []string{"/parcels/0/weight/value"}},
		"line of 36":          {func(r *carrier.ShipmentRequest) { r.To.Line1 = strings.Repeat("ß", 36) }, []string{"/to/line1"}},
		"country in words":    {func(r *carrier.ShipmentRequest) { r.From.Country = "Turkey" }, []string{"/from/country"}},
		"unit of another":     {func(r *carrier.ShipmentRequest) { r.Parcels[0].Weight.Unit = "stone" }, []string{"/parcels/0/weight/unit"}},
		"41 parcels":          {func(r *carrier.ShipmentRequest) { r.Parcels = make([]carrier.Parcel, 41) }, []string{"/parcels"}},
		"several at one time": {func(r *carrier.ShipmentRequest) { r.Reference, r.Service = "", "" }, []string{"/reference", "/service"}},
	} {
		t.Run(name, func(t *testing.T) {
			order := smallestOrder("order-1")
			test.change(&order)
			_, err := client.CreateShipment(t.Context(), order)
			refused(t, err)
			var fields carrier.FieldErrors
			if !errors.As(err, &fields) {
				t.Fatalf("no FieldErrors in %v", err)
			}
			for _, want := range test.pointers {
				found := false
				for _, f := range fields {
					found = found || f.Pointer == want
				}
				if !found {
					t.Errorf("nothing at %s: %v", want, fields)
				}
			}
		})
	}
	t.Run("35 characters that are more bytes", func(t *testing.T) {
		order := smallestOrder("order-1")
		order.To.Line1 = strings.Repeat("ß", 35)
		sent := false
		c := newClient(t, baseURL, carrier.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = true
			return canned{201, made}.RoundTrip(r)
		})))
		if _, err := c.CreateShipment(t.Context(), order); err != nil || !sent {
			t.Errorf("sent %v: %v", sent, err)
		}
	})
}

// Zero values of options and policies are the defaults, and work.
func TestZeroValues(t *testing.T) {
	client := newClient(t, baseURL,
		carrier.WithTransport(canned{200, fourEvents}),
		carrier.WithTimeout(0), carrier.WithAttemptTimeout(0), carrier.WithIdleTimeout(0),
		carrier.WithRetry(carrier.RetryPolicy{}), carrier.WithBreaker(carrier.BreakerPolicy{}),
		carrier.WithRetryBudget(carrier.BudgetPolicy{}), carrier.WithMaxResponseBytes(0))
	got, err := client.GetTracking(t.Context(), "BK1001TR", carrier.WithTimeout(-1), carrier.WithAttemptTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != carrier.TrackingStatusInTransit || len(got.Events) != 4 || got.Events[3].Location != "Ankara hub" {
		t.Errorf("%+v", got)
	}
	if at := got.Events[0].At; !at.HasZone() || at.Time().UTC().Format(time.RFC3339) != "2026-11-27T05:15:00Z" {
		t.Errorf("at: %v", at)
	}
}

// An empty list where the spec wants one item at least is not the same as no
// list: "these shipments", of which there are none, must not become "all".
func TestAnEmptyListIsNotAMissingOne(t *testing.T) {
	srv, client := inMemory(t)
	for name, call := range map[string]func() error{
		"createManifest": func() error {
			_, err := client.CreateManifest(t.Context(), carrier.ManifestRequest{Date: "2026-03-02", ShipmentIds: []string{}})
			return err
		},
		"createSubscription": func() error {
			_, err := client.CreateSubscription(t.Context(), carrier.SubscriptionRequest{
				URL: "https://shop.example/", Secret: "whsec_Zm9vYmFyYmF6cXV4", Events: []carrier.SubscriptionEvent{},
			})
			return err
		},
	} {
		err := call()
		var fields carrier.FieldErrors
		if !errors.Is(err, carrier.ErrInvalidRequest) || !errors.As(err, &fields) || fields[0].Rule != "minItems" {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
