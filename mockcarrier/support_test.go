package mockcarrier_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const order = `{"reference":"order-1001","service":"standard",` +
	`"from":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},` +
	`"to":{"name":"Deniz Kaya","line1":"12 Park Avenue","city":"Ankara","postalCode":"06000","country":"TR"},` +
	`"parcels":[{"weight":{"value":1.2,"unit":"kg"}}]}`

// orderFor returns an order with another reference.
func orderFor(reference string) string { return strings.Replace(order, "order-1001", reference, 1) }

// networks run a test on TCP and on the network in memory.
var networks = map[string]func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server{
	"TCP":       mockcarrier.Start,
	"in memory": mockcarrier.StartInMemory,
}

func onBothNetworks(t *testing.T, test func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server)) {
	for name, start := range networks {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

// reply is an answer that has been read.
type reply struct {
	*http.Response
	body string
}

// api sends requests as an account of a server.
type api struct {
	*mockcarrier.Server
	client *http.Client
	key    string
}

func newAPI(s *mockcarrier.Server) api { return api{s, s.Client(), mockcarrier.APIKey} }

// try sends a request. Headers come in pairs of name and value.
func (a api) try(method, path, body string, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, a.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("X-Api-Key", a.key)
	for i := 0; i < len(headers); i += 2 {
		if name := headers[i]; strings.HasPrefix(name, "-") {
			req.Header.Del(name[1:])
		} else {
			req.Header.Add(name, headers[i+1])
		}
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return reply{resp, string(content)}, err
}

// do is try for a request whose answer comes.
func (a api) do(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := a.try(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (a api) get(t *testing.T, path string, headers ...string) reply {
	t.Helper()
	return a.do(t, "GET", path, "", headers...)
}

// buy makes a shipment with a key.
func (a api) buy(t *testing.T, key, body string, headers ...string) reply {
	t.Helper()
	return a.do(t, "POST", "/shipments", body, append([]string{"Idempotency-Key", key}, headers...)...)
}

// want checks the status, and for an error that it is problem details with a
// code. It returns the document.
func (r reply) want(t *testing.T, status int, code ...string) map[string]any {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("got %s, want %d: %s", r.Status, status, r.body)
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Error("no X-Request-Id")
	}
	var document map[string]any
	if r.body != "" && strings.Contains(r.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal([]byte(r.body), &document); err != nil {
			t.Fatalf("%v in %s", err, r.body)
		}
	}
	if status >= 400 {
		if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("an error of type %q", got)
		}
		if document["requestId"] != r.Header.Get("X-Request-Id") || document["status"] != float64(status) {
			t.Errorf("request id %v, status %v in %v", r.Header.Get("X-Request-Id"), r.StatusCode, document)
		}
		for _, member := range []string{"type", "title", "detail", "instance", "code"} {
			if text, _ := document[member].(string); text == "" {
				t.Errorf("no %s in %s", member, r.body)
			}
		}
		if len(code) > 0 && document["code"] != code[0] {
			t.Errorf("code %v, want %s", document["code"], code[0])
		}
	}
	return document
}

// pointers returns the pointers of a problem's errors.
func pointers(problem map[string]any) string {
	var list []string
	errs, _ := problem["errors"].([]any)
	for _, e := range errs {
		pointer, _ := e.(map[string]any)["pointer"].(string) // missing for the whole document
		list = append(list, pointer)
	}
	return strings.Join(list, " ")
}

// fieldCodes returns pointer and code of each of a problem's errors.
func fieldCodes(problem map[string]any) string {
	var list []string
	errs, _ := problem["errors"].([]any)
	for _, e := range errs {
		e := e.(map[string]any)
		list = append(list, fmt.Sprint(e["pointer"], " ", e["code"]))
	}
	return strings.Join(list, ", ")
}

// decoded checks the status of an answer, and decodes it.
func decoded[T any](t *testing.T, r reply, status int) T {
	t.Helper()
	r.want(t, status)
	var v T
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

// recordingTB is a testing.TB whose failures are kept, and whose cleanups run
// when finish is called.
type recordingTB struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	errors   []string
	logs     []string
	failed   bool
}

var errFatal = errors.New("fatal")

func (tb *recordingTB) Helper() {}
func (tb *recordingTB) Failed() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.failed
}

func (tb *recordingTB) Cleanup(f func()) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.cleanups = append(tb.cleanups, f)
}

func (tb *recordingTB) Error(args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.failed = true
	tb.errors = append(tb.errors, fmt.Sprint(args...))
}

func (tb *recordingTB) Log(args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.logs = append(tb.logs, fmt.Sprint(args...))
}

func (tb *recordingTB) Logf(format string, args ...any) { tb.Log(fmt.Sprintf(format, args...)) }

func (tb *recordingTB) Fatal(args ...any) {
	tb.Error(args...)
	panic(errFatal)
}

func (tb *recordingTB) finish() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
	tb.cleanups = nil
}
