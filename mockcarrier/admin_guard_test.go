package mockcarrier_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// ask sends a request to a handler as if it had come in on an address.
func ask(h http.Handler, method, path, ip, body string, headers ...string) *recorder {
	req, err := http.NewRequest(method, path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if body == "" {
		req.Body = http.NoBody
	}
	if ip != "" {
		addr := &net.TCPAddr{IP: net.ParseIP(ip), Port: 52188}
		req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, addr))
	}
	req.Host = "localhost:52188"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := newRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

func TestWhichHostsReachTheAdminAPI(t *testing.T) {
	const loopback, loopback6, outside = "127.0.0.1", "::1", "192.0.2.1"
	for _, tc := range []struct {
		ip, host string
		want     int
	}{
		{loopback, "localhost", 200}, {loopback, "LOCALHOST:52188", 200}, {loopback, "127.0.0.1:52188", 200},
		{loopback, "127.8.9.1", 200}, {loopback, "[::1]:52188", 200}, {loopback6, "[::1]", 200}, {loopback6, "::1", 200},
		{loopback, "attacker.example", 403}, {loopback, "attacker.example:52188", 403}, {loopback, "localhost.attacker.example", 403},
		{loopback, "127.0.0.1.attacker.example", 403}, {loopback, "192.0.2.1", 403}, {loopback, "carrier", 403}, {loopback, "", 403},
		{loopback, "localhost.", 403}, {loopback, "0.0.0.0", 403}, {loopback, "2130706433", 403},
		{loopback, "carrier.tests.internal", 200}, {loopback, "Carrier.Tests.Internal:8080", 200}, {loopback, "x.carrier.tests.internal", 403},

		{outside, "localhost", 200}, {outside, "127.0.0.1:52188", 200}, {outside, "192.0.2.1:52188", 200}, {outside, "[2001:db8::1]:52188", 200},
		{outside, "carrier", 200}, {outside, "carrier:52188", 200}, {outside, "carrier.tests.internal", 200},
		{outside, "attacker.example", 403}, {outside, "", 403}, {outside, "carrier.", 403}, {outside, ":52188", 403},
	} {
		c := mockcarrier.New(mockcarrier.WithAdmin(true), mockcarrier.WithAdminHosts("carrier.tests.internal"))
		if rec := ask(c, "GET", "/__mock/health", tc.ip, "", "Host", tc.host); rec.status != tc.want {
			t.Errorf("%q on %s: got %d, want %d", tc.host, tc.ip, rec.status, tc.want)
		}
	}
}

func TestAdminHostsAreNames(t *testing.T) {
	for _, bad := range []string{"", "carrier:52188", "http://carrier", "a b"} {
		if _, err := mockcarrier.NewWorlds(1, mockcarrier.WithAdminHosts(bad)); err == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
}

// What a browser sends on behalf of a page says so, and cannot be forged by it.
func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	const here, there = "http://localhost:52188", "https://attacker.example"
	for name, tc := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"a program":                          {"POST", "reset", nil, 204},
		"our own page":                       {"POST", "reset", []string{"Sec-Fetch-Site", "same-origin", "Origin", here}, 204},
		"our own page, an old browser":       {"POST", "reset", []string{"Origin", here}, 204},
		"typed by a person":                  {"GET", "requests", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"another page":                       {"POST", "reset", []string{"Sec-Fetch-Site", "cross-site", "Origin", there}, 403},
		"another page, an old browser":       {"POST", "reset", []string{"Origin", there}, 403},
		"another port of this machine":       {"POST", "reset", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:8080"}, 403},
		"another port, an old browser":       {"POST", "reset", []string{"Origin", "http://localhost:8080"}, 403},
		"a sandboxed page":                   {"POST", "reset", []string{"Origin", "null"}, 403},
		"deleted by another page":            {"DELETE", "faults", []string{"Sec-Fetch-Site", "cross-site", "Origin", there}, 403},
		"put by another page":                {"PUT", "state", []string{"Sec-Fetch-Site", "cross-site", "Origin", there}, 403},
		"read by another page":               {"GET", "requests", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		"read as a script":                   {"GET", "requests", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
		"the journal within another page":    {"GET", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"a link to our page":                 {"GET", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"a form of another page that posts":  {"POST", "reset", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"asks before it sends (a preflight)": {"OPTIONS", "faults", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", there, "Access-Control-Request-Method", "POST"}, 403},
	} {
		c := mockcarrier.New()
		rec := ask(c, tc.method, mockcarrier.AdminPath+tc.path, "127.0.0.1", "", tc.headers...)
		if rec.status != tc.want {
			t.Errorf("%s: got %d, want %d: %s", name, rec.status, tc.want, rec.body.String())
		}
		for header := range rec.header {
			if strings.HasPrefix(header, "Access-Control-") {
				t.Errorf("%s: another origin is let in by %s", name, header)
			}
		}
	}
}

func TestAdminBodies(t *testing.T) {
	const fault = `{"kind":"status","status":503}`
	for name, tc := range map[string]struct {
		method, path, mediaType, body string
		want                          int
	}{
		"JSON":                  {"POST", "faults", "application/json", fault, 201},
		"JSON in a charset":     {"POST", "faults", "application/json; charset=utf-8", fault, 201},
		"what a form can send":  {"POST", "faults", "text/plain", fault, 415},
		"a form":                {"POST", "faults", "application/x-www-form-urlencoded", fault, 415},
		"no media type":         {"POST", "faults", "", fault, 415},
		"a clock in plain text": {"POST", "clock", "text/plain", `{"advance":"1h"}`, 415},
		"a state in plain text": {"PUT", "state", "text/plain", `{}`, 415},
		"1 MiB":                 {"POST", "faults", "application/json", strings.Repeat(" ", 1<<20-len(fault)) + fault, 201},
		"1 byte more":           {"POST", "faults", "application/json", strings.Repeat(" ", 1<<20-len(fault)) + fault + " ", 413},
		"a state over 16 MiB":   {"PUT", "state", "application/json", strings.Repeat(" ", 16<<20+1), 413},
	} {
		c := mockcarrier.New()
		var headers []string
		if tc.mediaType != "" {
			headers = []string{"Content-Type", tc.mediaType}
		}
		if rec := ask(c, tc.method, mockcarrier.AdminPath+tc.path, "127.0.0.1", tc.body, headers...); rec.status != tc.want {
			t.Errorf("%s: got %d, want %d: %s", name, rec.status, tc.want, rec.body.String())
		}
	}
}

func TestAdminHeaders(t *testing.T) {
	c := mockcarrier.New()
	for path, mediaType := range map[string]string{
		"": "text/html; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8",
		"icon.svg": "image/svg+xml", "openapi.yaml": "application/yaml", "carrier.yaml": "application/yaml",
		"requests": "application/json", "ledger": "application/json", "state": "application/json",
	} {
		rec := ask(c, "GET", mockcarrier.AdminPath+path, "127.0.0.1", "")
		if rec.status != 200 || rec.body.Len() == 0 {
			t.Errorf("/%s: got %d, %d bytes", path, rec.status, rec.body.Len())
		}
		for name, want := range map[string]string{
			"Content-Type": mediaType, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		} {
			if got := rec.header.Get(name); got != want {
				t.Errorf("/%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	policy := ask(c, "GET", "/__mock/", "127.0.0.1", "").header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy has no %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	if rec := ask(c, "GET", "/__mock", "127.0.0.1", ""); rec.status != 307 || rec.header.Get("Location") != "/__mock/" {
		t.Errorf("without the slash: got %d to %q", rec.status, rec.header.Get("Location"))
	}
	if n := len(c.Requests()); n != 0 {
		t.Errorf("%d requests to the admin API are in the journal", n)
	}
}

func TestSingleRulesCanBeEnded(t *testing.T) {
	c := mockcarrier.New()
	defer c.Close()
	admin := func(method, path string, want int) string {
		t.Helper()
		rec := ask(c, method, mockcarrier.AdminPath+path, "127.0.0.1", "")
		if rec.status != want {
			t.Errorf("%s %s: got %d, want %d", method, path, rec.status, want)
		}
		return rec.body.String()
	}
	for _, status := range []int{500, 502, 503} {
		c.Inject(mockcarrier.Status(status).On("getStatus").Times(2))
	}
	admin("DELETE", "faults/2", 204)
	admin("DELETE", "faults/2", 404)
	admin("DELETE", "faults/4", 404)
	admin("DELETE", "faults/0", 404)
	admin("DELETE", "faults/all", 404)
	list := admin("GET", "faults", 200)
	for _, part := range []string{`"id":1`, `"id":3`, `"does":"status 500"`, `"for":"getStatus, first 2"`} {
		if !strings.Contains(list, part) {
			t.Errorf("no %s in %s", part, list)
		}
	}
	if strings.Contains(list, `"id":2`) {
		t.Errorf("got %s", list)
	}
	var got []int
	for range 5 {
		got = append(got, ask(c, "GET", "/v1/status", "", "", "X-Api-Key", mockcarrier.APIKey).status)
	}
	if fmt.Sprint(got) != "[503 503 500 500 200]" {
		t.Errorf("got %v", got)
	}
}

func TestJournalOverTheAdminAPI(t *testing.T) {
	c := mockcarrier.New(mockcarrier.WithJournalLimit(100))
	for i := range 10 {
		path := "/v1/status"
		if i%2 == 1 {
			path = "/v1/tracking/BK1001TR"
		}
		ask(c, "GET", path, "", "", "X-Api-Key", mockcarrier.APIKey)
	}
	for query, want := range map[string]string{
		"":                                   "1 2 3 4 5 6 7 8 9 10",
		"?limit=3":                           "8 9 10",
		"?limit=0":                           "",
		"?after=7":                           "8 9 10",
		"?after=10":                          "",
		"?after=2&limit=100":                 "3 4 5 6 7 8 9 10",
		"?operation=getStatus&limit=2":       "7 9",
		"?operation=getTracking&after=4":     "6 8 10",
		"?operation=createShipment":          "",
		"?limit=-1":                          "400",
		"?after=soon":                        "400",
		"?limit=1000000000000000000000000":   "400",
		"?limit=":                            "400",
		"?operation=getStatus&limit=2&x=any": "7 9",
	} {
		rec := ask(c, "GET", "/__mock/requests"+query, "127.0.0.1", "")
		got := fmt.Sprint(rec.status)
		if rec.status == 200 {
			got = strings.Join(members(t, rec.body.String(), "seq"), " ")
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}
