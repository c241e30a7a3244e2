package mockcarrier_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestAdmin(t *testing.T) {
	c := mockcarrier.Start(t, frozen(), mockcarrier.WithFault(mockcarrier.Status(500).On("getStatus").Times(1).MayNotFire()))
	origin, client := strings.TrimSuffix(c.URL, "/v1"), c.Client()
	call := func(method, path, body string, want int, headers ...string) any {
		t.Helper()
		req, _ := http.NewRequest(method, origin+path, strings.NewReader(body))
		req.Header.Set("X-Api-Key", mockcarrier.APIKey)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == "Host" {
				req.Host = headers[i+1]
			}
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s %s: got %s, want %d", method, path, resp.Status, want)
		}
		if wantType := "application/problem+json"; want >= 400 && resp.Header.Get("Content-Type") != wantType {
			t.Errorf("%s %s: an error of type %s", method, path, resp.Header.Get("Content-Type"))
		}
		var document any
		if want != http.StatusNoContent {
			if err := json.NewDecoder(resp.Body).Decode(&document); err != nil {
				t.Errorf("%s %s: %v", method, path, err)
			}
		}
		return document
	}
	list := func(method, path, body string, want int) []any {
		t.Helper()
		items, ok := call(method, path, body, want).([]any)
		if !ok {
			t.Errorf("%s is no list", path)
		}
		return items
	}
	size := func(path string) int {
		t.Helper()
		return len(list("GET", mockcarrier.AdminPath+path, "", 200))
	}
	object := func(v any) map[string]any { return v.(map[string]any) }

	if health := object(call("GET", "/__mock/health", "", 200)); health["status"] != "ok" || health["now"] != "2026-03-02T12:00:00Z" {
		t.Errorf("got %v", health)
	}
	if size("ledger")+size("requests") != 0 || size("faults") != 1 {
		t.Error("something is there from the start")
	}

	made := list("POST", "/__mock/faults", `{"kind":"status","status":503,"operations":["createShipment"],"first":1}`, 201)
	if len(made) != 2 {
		t.Errorf("got %v", made)
	}
	call("POST", "/__mock/faults", `[{"kind":"reset","phase":"after","operations":["getStatus"],"every":2},{"kind":"delay","wait":"1ms","operations":["getTracking"]}]`, 201)
	call("POST", "/v1/shipments", order, 503, "Idempotency-Key", "k")
	call("POST", "/v1/shipments", order, 201, "Idempotency-Key", "k")
	if charges := list("GET", "/__mock/ledger", "", 200); len(charges) != 1 || object(charges[0])["reference"] != "order-1001" {
		t.Errorf("the ledger is %v", charges)
	}
	requests := list("GET", "/__mock/requests?operation=createShipment", "", 200)
	if len(requests) != 2 || size("requests?operation=getTracking") != 0 {
		t.Fatalf("the journal is %v", requests)
	}
	if entry := object(requests[0]); entry["fault"] != "status 503" || entry["body"] != order || entry["duration"] == "" {
		t.Errorf("got %v", entry)
	}

	if now := object(call("POST", "/__mock/clock", `{"advance":"72h"}`, 200))["now"]; now != "2026-03-05T12:00:00Z" {
		t.Errorf("it is %v", now)
	}
	if tracking := object(call("GET", "/v1/tracking/BK2001TR", "", 200)); tracking["status"] != "delivered" {
		t.Errorf("got %v", tracking)
	}
	call("DELETE", "/__mock/faults", "", 204)
	if size("faults") != 0 {
		t.Error("faults are left")
	}
	call("POST", "/__mock/reset", "", 204)
	if size("ledger")+size("requests") != 0 || !c.Now().Equal(noon) {
		t.Error("something is left")
	}
	if size("faults") != 1 {
		t.Error("the fault of the start is gone")
	}

	for _, bad := range []string{`{"kind":"flood"}`, `{"kind":"status","status":503,"colour":"red"}`, `nonsense`, ``, `{"kind":"status"}`, `[]`} {
		call("POST", "/__mock/faults", bad, 400)
	}
	for _, bad := range []string{`{"advance":"soon"}`, `{}`, `{"to":"72h"}`, `72h`} {
		call("POST", "/__mock/clock", bad, 400)
	}
	call("POST", "/__mock/faults", strings.Repeat(" ", 2<<20), 413)
	call("GET", "/__mock/nothing", "", 404)
	call("PUT", "/__mock/faults", "", 405)

	// Only this machine's own programs are meant.
	call("GET", "/__mock/ledger", "", 403, "Host", "attacker.example")
	call("POST", "/__mock/reset", "", 403, "Origin", "https://attacker.example")
	call("POST", "/__mock/reset", "", 204, "Host", "localhost:1")
}

func TestWhereTheAdminAPIIs(t *testing.T) {
	local := func(ip string) *http.Request {
		req, _ := http.NewRequest("GET", "/__mock/health", http.NoBody)
		if ip != "" {
			addr := &net.TCPAddr{IP: net.ParseIP(ip), Port: 80}
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, addr))
		}
		req.Host = "localhost"
		return req
	}
	for name, tc := range map[string]struct {
		opts []mockcarrier.Option
		ip   string // that the request has come in on
		want int
	}{
		"loopback":               {nil, "127.0.0.1", 200},
		"loopback 6":             {nil, "::1", 200},
		"loopback, switched off": {[]mockcarrier.Option{mockcarrier.WithAdmin(false)}, "127.0.0.1", 404},
		"outside":                {nil, "192.0.2.1", 404},
		"outside, asked for":     {[]mockcarrier.Option{mockcarrier.WithAdmin(true)}, "192.0.2.1", 200},
		"unknown":                {nil, "", 404},
	} {
		rec := newRecorder()
		mockcarrier.New(tc.opts...).ServeHTTP(rec, local(tc.ip))
		if rec.status != tc.want {
			t.Errorf("%s: got %d, want %d", name, rec.status, tc.want)
		}
	}
}
