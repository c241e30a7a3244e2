package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// twoOfThree is what the program mockcarrier does with -fail-every 3.
func twoOfThree() mockcarrier.Fault {
	return mockcarrier.Status(503).RetryAfter(1).AllButEveryNth(3)
}

// badWeather returns the flags that the README gives for such a carrier, which
// must be those of -help.
func badWeather(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`go run ./examples/bookstore (-attempts .*)\n`).FindSubmatch(readme)
	if line == nil {
		t.Fatal("README.md has no such line")
	}
	flags := strings.Fields(string(line[1]))
	for i := 0; i < len(flags); i += 2 {
		if !regexp.MustCompile(`(?m)^  ` + flags[i] + ` +` + flags[i+1] + ` `).MatchString(usage) {
			t.Errorf("-help does not say %s %s", flags[i], flags[i+1])
		}
	}
	return flags
}

func TestCarrierFailsTwoOfThree(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(twoOfThree())
		s := open(t, mock, badWeather(t)...)

		// One after the other: three attempts each, for as long as one likes.
		const calls = 60
		for range calls {
			s.expect(200, s.get("/api/shipments/BK1001TR"))
		}
		if n := asked(mock, "getTracking"); n != 3*calls {
			t.Errorf("%d attempts for %d calls", n, calls)
		}
		for _, order := range []string{"order-1001", "order-1002", "order-1003"} {
			s.expect(201, s.post("/api/orders/"+order+"/shipment"))
			s.expect(200, s.post("/api/orders/"+order+"/shipment"))
		}
		if n := len(mock.Ledger()); n != 3 {
			t.Errorf("%d charges for 3 orders", n)
		}

		// Several at once take each other's lucky turns.
		var staff sync.WaitGroup
		for range 6 {
			staff.Go(func() { s.expect(200, s.get("/api/shipments/BK1002TR")) })
		}
		staff.Wait()
	})
}

// With the defaults the same carrier is taken for broken, and left alone.
func TestCarrierFailsTwoOfThreeWithTheDefaults(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(twoOfThree())
		s := open(t, mock)
		seen := map[int]int{}
		for range 20 {
			seen[s.get("/api/shipments/BK1001TR").status]++
		}
		if seen[200] == 0 || seen[503] == 0 || seen[200]+seen[502]+seen[503] != 20 {
			t.Errorf("got %v", seen)
		}
		if n := asked(mock, "getTracking"); n >= 40 {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestCarrierStopped(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		s := open(t, mock)
		mock.Close()
		s.expect(502, s.get("/api/shipments/BK1001TR"))
		var last answer
		for range 5 {
			last = s.get("/api/shipments/BK1001TR")
		}
		s.expect(503, last)
		if after, err := strconv.Atoi(last.header.Get("Retry-After")); err != nil || after < 1 || after > 6 {
			t.Errorf("Retry-After: %q", last.header.Get("Retry-After"))
		}
		for range 4 {
			if a := s.post("/api/orders/order-1001/shipment"); a.status != 502 && a.status != 503 {
				t.Errorf("a purchase got %d %s", a.status, a.body)
			}
		}
		if n := len(mock.Requests()) + len(mock.Ledger()); n != 0 {
			t.Errorf("the carrier got %d", n)
		}
		if a := s.expect(200, s.do(http.MethodGet, "/readyz", "")); !strings.Contains(a.body, `"status":"degraded"`) ||
			!strings.Contains(a.body, `"tracking":"open"`) {
			t.Errorf("got %s", a.body)
		}
		s.expect(200, s.do(http.MethodGet, "/livez", ""))
		for _, line := range s.log.read(t, "carrier failed") {
			if line.Error.Message == "" || line.User != "ada" {
				t.Errorf("the log has only %+v", line)
			}
		}
	})
}

// The breaker sends nothing while it is open, and closes again by itself.
func TestCarrierComesBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		s := open(t, mock)
		mock.Inject(mockcarrier.Status(500))
		for s.get("/api/shipments/BK1001TR").status != 503 {
			if asked(mock, "getTracking") > 20 {
				t.Fatal("the breaker stays closed")
			}
		}
		before := asked(mock, "getTracking")
		a := s.expect(503, s.get("/api/shipments/BK1001TR"))
		if n := asked(mock, "getTracking"); n != before {
			t.Errorf("%d requests through an open breaker", n-before)
		}
		mock.ClearFaults()
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(after) * time.Second)
		s.expect(200, s.get("/api/shipments/BK1001TR"))
		if a := s.do(http.MethodGet, "/readyz", ""); !strings.Contains(a.body, `"status":"ready"`) {
			t.Errorf("got %s", a.body)
		}
	})
}

func TestCarrierHangs(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Stall().On("getTracking"))
		s := open(t, mock)
		took := elapsed(func() {
			if a := s.expect(504, s.get("/api/shipments/BK1001TR")); a.code() != "carrier_timeout" {
				t.Errorf("got %s", a.body)
			}
		})
		if took > 5*time.Second {
			t.Errorf("it took %v, and the limit is 5s", took)
		}
		synctest.Wait()
		noneLeft(t, mock)
	})
}

// A body that stalls is a carrier that hangs.
func TestCarrierHangsInTheBody(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.StallBody(10).On("getTracking").Times(1))
		s := open(t, mock)
		s.expect(200, s.get("/api/shipments/BK1001TR"))
		if n := asked(mock, "getTracking"); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestAnswersOfTheCarrier(t *testing.T) {
	leak := `{"code":"x","detail":"http://10.0.0.7:8443/v1 key ` + mockcarrier.APIKey + `"}`
	for name, tc := range map[string]struct {
		fault  mockcarrier.Fault
		status int
		level  string
	}{
		"400":            {mockcarrier.Status(400).WithBody(leak), 502, "WARN"},
		"401":            {mockcarrier.Status(401).WithBody(leak), 502, "ERROR"},
		"403":            {mockcarrier.Status(403), 502, "ERROR"},
		"404":            {mockcarrier.Status(404).WithBody(leak), 404, ""},
		"429 for long":   {mockcarrier.Status(429).RetryAfter(3600), 502, "WARN"},
		"500":            {mockcarrier.Status(500).WithBody(leak), 502, "WARN"},
		"504":            {mockcarrier.Status(504), 504, "WARN"},
		"HTML":           {mockcarrier.HTML(200), 502, "WARN"},
		"malformed JSON": {mockcarrier.MalformedJSON(), 502, "WARN"},
		"empty":          {mockcarrier.EmptyOK(), 502, "WARN"},
		"redirect":       {mockcarrier.Redirect(302, "http://10.0.0.7/v1"), 502, "WARN"},
		"oversize":       {mockcarrier.Oversize(9 << 20), 502, "WARN"},
		"reset":          {mockcarrier.ResetBefore(), 502, "WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				mock.Inject(tc.fault)
				s := open(t, mock)
				a := s.expect(tc.status, s.get("/api/shipments/BK1001TR"))
				if strings.Contains(a.body, "10.0.0.7") {
					t.Errorf("the answer shows an address: %s", a.body)
				}
				lines := s.log.read(t, "carrier failed")
				if tc.level == "" {
					if len(lines) != 0 {
						t.Errorf("logged %+v", lines)
					}
				} else if len(lines) != 1 || lines[0].Level != tc.level || lines[0].RequestID != a.header.Get(requestIDHeader) {
					t.Errorf("logged %+v", lines)
				}
			})
		})
	}
}

// A caller that leaves ends the attempt at the carrier, and there is no other.
func TestCallerLeaves(t *testing.T) {
	for name, fault := range map[string]mockcarrier.Fault{
		"during an attempt": mockcarrier.Stall(),
		"during a wait":     mockcarrier.Status(503).RetryAfter(2),
	} {
		for method, path := range map[string]string{
			http.MethodGet:  "/api/shipments/BK1001TR",
			http.MethodPost: "/api/orders/order-1001/shipment",
		} {
			t.Run(fmt.Sprint(method, " ", name), func(t *testing.T) {
				inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
					mock.Inject(fault)
					s := open(t, mock)
					ctx, leave := context.WithTimeout(t.Context(), time.Second)
					defer leave()
					if _, err := s.try(ctx, method, path, ada, strings.NewReader("{}")); !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("got %v", err)
					}
					synctest.Wait()
					noneLeft(t, mock)
					time.Sleep(time.Minute)
					if n := len(mock.Requests()); n != 1 {
						t.Errorf("%d requests for a caller that has left", n)
					}
					lines := s.log.read(t, "request")
					if len(lines) != 1 || lines[0].Status != statusClientLeft {
						t.Errorf("logged %+v", lines)
					}
				})
			})
		}
	}
}
