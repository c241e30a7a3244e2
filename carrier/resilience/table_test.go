package resilience_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// an API whose paths are in each other's way.
func tangled() []*resilience.Operation {
	var ops []*resilience.Operation
	for _, o := range []struct{ id, method, path string }{
		{"two", "GET", "/a/{p}/{q}"}, {"one", "GET", "/a/x/{q}"}, {"none", "GET", "/a/x/y"}, {"root", "GET", "/"},
		{"getTracking", "GET", "/tracking/{trackingNumber}"}, {"exportEvents", "GET", "/tracking/events"}, {"trackBatch", "POST", "/tracking/batch"},
		{"getLabel", "GET", "/shipments/{shipmentId}/label"}, {"getStatus", "GET", "/status"},
	} {
		ops = append(ops, &resilience.Operation{ID: o.id, Method: o.method, Path: o.path})
	}
	return ops
}

type operationCase struct {
	Name
	Method string `json:"method"`
	Host   string `json:"host"` // default that of the base URL
	Path   string `json:"path"`
	Want   string `json:"want"` // "": none
}

// Do finds the operation of a request by method and path below the base URL,
// in whatever order the table is.
func TestFindOperation(t *testing.T) {
	for _, c := range casesOf[operationCase](t, "operations.json") {
		for _, reversed := range []bool{false, true} {
			for _, based := range []bool{true, false} {
				ops := tangled()
				if reversed {
					for i, j := 0, len(ops)-1; i < j; i, j = i+1, j-1 {
						ops[i], ops[j] = ops[j], ops[i]
					}
				}
				options := []resilience.Option{resilience.WithTransport(playing(act{Status: 200})), resilience.WithOperations(ops...)}
				if based {
					options = append(options, resilience.WithBaseURL(origin+"/v1"))
				}
				host := c.Host
				if host == "" {
					host = origin
				}
				want := c.Want
				if want == "" {
					want = c.Method + " (unknown)"
				}
				if !based && (c.Want == "" || c.Want == "root") {
					continue // any base path will do then
				}
				if got := operationOf(t, doerFor(t, options...), c.Method, host+c.Path); got != want {
					t.Errorf("%s (base URL %v, reversed %v): %s %s is %q, want %q", c.Name.Name, based, reversed, c.Method, c.Path, got, want)
				}
			}
		}
	}
}

func operationOf(t *testing.T, d *resilience.Doer, method, url string) string {
	t.Helper()
	var info resilience.CallInfo
	req, err := http.NewRequestWithContext(resilience.WithCall(t.Context(), resilience.WithCallInfo(&info)), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Do(req); err != nil {
		t.Fatal(err)
	}
	return info.Operation
}

// Without a base URL the operation is found by the end of the path: the
// longest, and then the most literal, of those that fit.
func TestFindOperationBySuffix(t *testing.T) {
	d := doerFor(t, resilience.WithTransport(playing(act{Status: 200})), resilience.WithOperations(tangled()...))
	for path, want := range map[string]string{
		"/status": "getStatus", "/any/base/status": "getStatus", "/v2/tracking/BK1": "getTracking", "/v2/tracking/events": "exportEvents",
		"/v2/a/x/y": "none", "/v2/a/x/z": "one", "/a/b/status": "two", "/b/status": "getStatus", "/nothing": "GET (unknown)", "/v2/shipments//label": "GET (unknown)",
	} {
		if got := operationOf(t, d, "GET", origin+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// A path value that names another operation is refused by Call.
func TestShadowedPaths(t *testing.T) {
	ops := tangled()
	byID := map[string]*resilience.Operation{}
	for _, op := range ops {
		byID[op.ID] = op
	}
	s := playing(act{Status: 200})
	d := onStage(t, s, resilience.WithOperations(ops...))
	for _, test := range []struct {
		op, path string
		refused  bool
	}{
		{"getTracking", "/tracking/BK1", false},
		{"getTracking", "/tracking/events", true},
		{"getTracking", "/tracking/events/", true},
		{"getTracking", "/tracking/batch", true}, // of another method, and yet not a number
		{"exportEvents", "/tracking/events", false},
		{"two", "/a/b/c", false},
		{"two", "/a/x/c", true},
		{"two", "/a/x/y", true},
		{"one", "/a/x/y", true},
		{"one", "/a/x/z", false},
		{"none", "/a/x/y", false},
		{"getTracking", "/tracking/events2", false},
	} {
		before := s.count()
		err := d.Call(t.Context(), byID[test.op], &resilience.Request{Path: test.path}, nil)
		if !test.refused {
			if err != nil || s.count() != before+1 {
				t.Errorf("%s %s: %v", test.op, test.path, err)
			}
			continue
		}
		isExactly(t, err, "ErrInvalidRequest")
		if s.count() != before || !strings.Contains(err.Error(), "names another operation") {
			t.Errorf("%s %s: %v, %d requests", test.op, test.path, err, s.count()-before)
		}
	}
}

// Safety is taken from the spec, else from method and key header.
func TestSafetyByMethod(t *testing.T) {
	for _, test := range []struct {
		op    resilience.Operation
		sent  int // of three, with 503
		keyed bool
	}{
		{resilience.Operation{Method: "GET"}, 3, false},
		{resilience.Operation{Method: "HEAD"}, 3, false},
		{resilience.Operation{Method: "OPTIONS"}, 3, false},
		{resilience.Operation{Method: "PUT"}, 3, false},
		{resilience.Operation{Method: "DELETE"}, 3, false},
		{resilience.Operation{Method: "POST"}, 1, false},
		{resilience.Operation{Method: "PATCH"}, 1, false},
		{resilience.Operation{Method: "TRACE"}, 1, false},
		{resilience.Operation{Method: "POST", KeyHeader: "Idempotency-Key"}, 3, true},
		{resilience.Operation{Method: "PATCH", KeyHeader: "X-Once"}, 3, true},
		{resilience.Operation{Method: "PUT", KeyHeader: "X-Once"}, 3, false},
		{resilience.Operation{Method: "POST", Safety: resilience.SafetyRead}, 3, false},
		{resilience.Operation{Method: "POST", Safety: resilience.SafetyIdempotent}, 3, false},
		{resilience.Operation{Method: "POST", Safety: resilience.SafetyIdempotent, KeyHeader: "X-Once"}, 3, false},
		{resilience.Operation{Method: "PUT", Safety: resilience.SafetyKeyed, KeyHeader: "X-Once"}, 3, true},
		{resilience.Operation{Method: "GET", Safety: resilience.SafetyUnsafe}, 1, false},
		{resilience.Operation{Method: "POST", Safety: resilience.SafetyKeyed}, 1, false}, // no header to carry it
	} {
		op := test.op
		op.ID, op.Path = "x", "/x"
		s := playing(act{Status: 503})
		e := errorOf(t, onStage(t, s, atOnce(resilience.RetryPolicy{})).Call(t.Context(), &op, &resilience.Request{Path: "/x"}, nil))
		if s.count() != test.sent || (e.IdempotencyKey != "") != test.keyed {
			t.Errorf("%+v: %d requests, key %q; want %d, %v", test.op, s.count(), e.IdempotencyKey, test.sent, test.keyed)
		}
	}
}

// Query and escapes of a request arrive as they were given.
func TestRequestURLs(t *testing.T) {
	for _, test := range []struct{ base, path, query, want string }{
		{"/v1", "/things/a", "", "/v1/things/a"},
		{"/v1", "/things/a", "x=1&y=%20", "/v1/things/a?x=1&y=%20"},
		{"/v1", "/things/a%20b", "", "/v1/things/a%20b"},
		{"/v1", "/things/a%2Bb", "q=%2F", "/v1/things/a%2Bb?q=%2F"},
		{"/a%2Fb", "/things/a", "", "/a%2Fb/things/a"},
		{"/a%2Fb", "/things/c%3Fd", "", "/a%2Fb/things/c%3Fd"},
		{"", "/things/a", "", "/things/a"},
	} {
		s := playing(act{Status: 200})
		d := onStage(t, s, resilience.WithBaseURL(origin+test.base))
		if err := d.Call(t.Context(), &resilience.Operation{ID: "x", Method: "GET", Path: "/things/{x}"}, &resilience.Request{Path: test.path, Query: test.query}, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[0].URL; got != origin+test.want {
			t.Errorf("%+v: sent to %s, want %s", test, got, origin+test.want)
		}
	}
}

// Every byte that a path parameter can have.
func TestPathSegmentBytes(t *testing.T) {
	const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	for i := range 256 {
		value := "x" + string([]byte{byte(i)}) + "y"
		want := fmt.Sprintf("x%%%02Xy", i)
		switch {
		case strings.IndexByte(bare, byte(i)) >= 0:
			want = value
		case i < 0x20, i >= 0x7f, i == '/', i == '\\', i == '%':
			want = ""
		}
		got, err := resilience.PathSegment("id", value)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", value, got, err, want)
		}
	}
}
