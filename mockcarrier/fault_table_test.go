package mockcarrier_test

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// faultCase is a row of testdata/faults.json: a fault as the admin API takes it,
// that strikes a createShipment, and what two clients make of it. An error of
// net/http is named by the kind of error, or else by a part of its text.
type faultCase struct {
	Name    string
	Fault   mockcarrier.Fault
	TLS     bool
	Bought  int
	NetHTTP struct {
		Status int // 0 if there is none
		Error  string
	}
	SDK struct {
		Status     int
		Outcome    string // "" if the call succeeds
		Is         []string
		RetryAfter string // "" for whatever
	}
}

// sentinels are the errors by which callers tell what went wrong.
var sentinels = map[string]error{
	"ErrNotFound": carrier.ErrNotFound, "ErrInvalidRequest": carrier.ErrInvalidRequest, "ErrUnauthorized": carrier.ErrUnauthorized,
	"ErrForbidden": carrier.ErrForbidden, "ErrConflict": carrier.ErrConflict, "ErrInProgress": carrier.ErrInProgress,
	"ErrKeyReused": carrier.ErrKeyReused, "ErrRateLimited": carrier.ErrRateLimited, "ErrUnavailable": carrier.ErrUnavailable,
	"ErrTimeout": carrier.ErrTimeout, "ErrOutcomeUnknown": carrier.ErrOutcomeUnknown, "ErrResponseTooLarge": carrier.ErrResponseTooLarge,
	"ErrMalformedResponse": carrier.ErrMalformedResponse, "ErrNotReady": carrier.ErrNotReady, "ErrBlocked": carrier.ErrBlocked,
}

func faultCases(t *testing.T) []faultCase {
	t.Helper()
	data, err := os.ReadFile("testdata/faults.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []faultCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Each fault, on both networks, as plain net/http and as this SDK see it.
func TestEachFaultForEachClient(t *testing.T) {
	log.SetOutput(io.Discard) // net/http tells there of bytes behind an answer
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, tc := range faultCases(t) {
		var opts []mockcarrier.Option
		if tc.TLS {
			opts = append(opts, mockcarrier.WithTLS())
		}
		limit := patience
		if tc.NetHTTP.Error == "timeout" {
			limit = wink
		}
		for client, call := range map[string]func(*testing.T, *mockcarrier.Server, faultCase, time.Duration){
			"net/http": callNetHTTP, "SDK": callSDK,
		} {
			check := func(t *testing.T, s *mockcarrier.Server) {
				s.Inject(tc.Fault)
				call(t, s, tc, limit)
				if got := len(s.Ledger()); got != tc.Bought {
					t.Errorf("%d bought, want %d", got, tc.Bought)
				}
			}
			t.Run(tc.Name+"/"+client+"/TCP", func(t *testing.T) {
				t.Parallel()
				check(t, mockcarrier.Start(t, opts...))
			})
			t.Run(tc.Name+"/"+client+"/in memory", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { check(t, mockcarrier.StartInMemory(t, opts...)) })
			})
		}
	}
}

func callNetHTTP(t *testing.T, s *mockcarrier.Server, tc faultCase, limit time.Duration) {
	a := newAPI(s)
	a.client.Timeout = limit
	r, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k")
	status := 0
	if err == nil {
		status = r.StatusCode
		if !json.Valid([]byte(r.body)) {
			err = errors.New("no JSON")
		}
	}
	if status != tc.NetHTTP.Status {
		t.Errorf("status %d, want %d", status, tc.NetHTTP.Status)
	}
	var netErr net.Error
	ok := err != nil && strings.Contains(err.Error(), tc.NetHTTP.Error)
	switch tc.NetHTTP.Error {
	case "":
		ok = err == nil
	case "ECONNRESET":
		ok = errors.Is(err, syscall.ECONNRESET)
	case "ECONNREFUSED":
		ok = errors.Is(err, syscall.ECONNREFUSED)
	case "EOF":
		ok = errors.Is(err, io.EOF)
	case "unexpected EOF":
		ok = errors.Is(err, io.ErrUnexpectedEOF)
	case "timeout":
		ok = errors.As(err, &netErr) && netErr.Timeout()
	case "another host":
		ok = err != nil && strings.Contains(err.Error(), "refused to reach elsewhere.example")
	}
	if !ok {
		t.Errorf("got the error %v, want %q", err, tc.NetHTTP.Error)
	}
}

func callSDK(t *testing.T, s *mockcarrier.Server, tc faultCase, limit time.Duration) {
	var info carrier.CallInfo
	client, err := carrier.New(s.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(s.Transport()),
		carrier.WithoutRetry(), carrier.WithAttemptTimeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.CreateShipment(t.Context(), shipmentRequest(), carrier.WithCallInfo(&info), carrier.WithIdempotencyKey("k"))
	if info.StatusCode != tc.SDK.Status {
		t.Errorf("status %d, want %d", info.StatusCode, tc.SDK.Status)
	}
	for name, sentinel := range sentinels {
		if want := slices.Contains(tc.SDK.Is, name); errors.Is(err, sentinel) != want {
			t.Errorf("is %s: %v: %v", name, !want, err)
		}
	}
	var e *carrier.Error
	if !errors.As(err, &e) {
		if tc.SDK.Outcome != "" || err != nil {
			t.Errorf("got %v, want the outcome %s", err, tc.SDK.Outcome)
		}
		return
	}
	if got := e.Outcome.String(); got != tc.SDK.Outcome {
		t.Errorf("the outcome is %q, want %q: %v", got, tc.SDK.Outcome, err)
	}
	// An HTTP date has no parts of a second.
	if want, wrong := time.ParseDuration(tc.SDK.RetryAfter); wrong == nil && (e.RetryAfter > want || e.RetryAfter < want-time.Second) {
		t.Errorf("Retry-After is %v, want %v", e.RetryAfter, want)
	}
}

// The table has every kind of fault that there is.
func TestFaultTableIsComplete(t *testing.T) {
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	given := map[mockcarrier.Kind]bool{}
	for _, tc := range faultCases(t) {
		given[tc.Fault.Kind] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^\tKind\w+ +Kind = "(.+?)"`).FindAllSubmatch(source, -1) {
		if !given[mockcarrier.Kind(m[1])] {
			t.Errorf("the table has no fault of kind %s", m[1])
		}
		delete(given, mockcarrier.Kind(m[1]))
	}
	if len(given) > 0 {
		t.Errorf("kinds that do not exist: %v", given)
	}
}
