package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// members returns one member of each object in a JSON list, as text.
func members(t *testing.T, list, name string) []string {
	t.Helper()
	var objects []map[string]any
	if err := json.Unmarshal([]byte(list), &objects); err != nil {
		t.Fatalf("%v in %s", err, list)
	}
	var values []string
	for _, object := range objects {
		values = append(values, fmt.Sprint(object[name]))
	}
	return values
}

func newWorlds(t *testing.T, limit int, opts ...mockcarrier.Option) *mockcarrier.Worlds {
	t.Helper()
	w, err := mockcarrier.NewWorlds(limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// in asks in a world, as a program on this machine.
func in(w http.Handler, world, method, path, body string, headers ...string) *recorder {
	headers = append(headers, "X-Api-Key", mockcarrier.APIKey)
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	if world != "" {
		headers = append(headers, mockcarrier.WorldHeader, world)
	}
	return ask(w, method, path, "127.0.0.1", body, headers...)
}

func TestWorldsAreSeparate(t *testing.T) {
	w := newWorlds(t, 10, frozen())
	for i, world := range []string{"", "a", "b"} {
		for n := range i + 1 {
			rec := in(w, world, "POST", "/v1/shipments", order, "Idempotency-Key", fmt.Sprint("k", n))
			if want := fmt.Sprintf(`"id":"shp_%d"`, 2001+n); rec.status != 201 || !strings.Contains(rec.body.String(), want) {
				t.Errorf("world %q: got %d %s, want %s", world, rec.status, rec.body.String(), want)
			}
		}
	}
	in(w, "a", "POST", "/__mock/clock", `{"advance":"72h"}`)
	in(w, "b", "POST", "/__mock/faults", `{"kind":"status","status":503}`)
	for world, want := range map[string]struct {
		tracked int
		status  string
		charges int
	}{
		"":  {200, `"status":"label_created"`, 1},
		"a": {200, `"status":"delivered"`, 2},
		"b": {503, "", 3},
	} {
		rec := in(w, world, "GET", "/v1/tracking/BK2001TR", "")
		if rec.status != want.tracked || !strings.Contains(rec.body.String(), want.status) {
			t.Errorf("world %q: got %d %s", world, rec.status, rec.body.String())
		}
		if n := len(members(t, in(w, world, "GET", "/__mock/ledger", "").body.String(), "key")); n != want.charges {
			t.Errorf("world %q: %d charges, want %d", world, n, want.charges)
		}
		c, err := w.World(world)
		if err != nil || len(c.Ledger()) != want.charges {
			t.Errorf("world %q from Go: %v", world, err)
		}
	}
	if rec := in(w, "a", "POST", "/__mock/reset", ""); rec.status != 204 {
		t.Errorf("reset: got %d", rec.status)
	}
	list := in(w, "", "GET", "/__mock/worlds", "").body.String()
	for name, want := range map[string]string{"world": "[ a b]", "requests": "[2 0 4]", "charges": "[1 0 3]", "faults": "[0 0 1]"} {
		if got := fmt.Sprint(members(t, list, name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestWorldsEnd(t *testing.T) {
	w := newWorlds(t, 2)
	for _, world := range []string{"a", "b"} {
		in(w, world, "GET", "/v1/status", "")
	}
	rec := in(w, "c", "GET", "/v1/status", "")
	if rec.status != 409 || !strings.Contains(rec.body.String(), `"code":"too_many_worlds"`) || rec.header.Get("X-Request-Id") == "" {
		t.Errorf("a third world: got %d %v %s", rec.status, rec.header, rec.body.String())
	}
	if _, err := w.World("c"); err == nil || !strings.Contains(err.Error(), "2 worlds already") {
		t.Errorf("a third world, from Go: %v", err)
	}
	if rec := in(w, "", "DELETE", "/__mock/worlds/a", ""); rec.status != 204 {
		t.Errorf("got %d", rec.status)
	}
	for _, gone := range []string{"a", "never", "%2F"} {
		if rec := in(w, "", "DELETE", "/__mock/worlds/"+gone, ""); rec.status != 404 {
			t.Errorf("%s: got %d", gone, rec.status)
		}
	}
	if rec := in(w, "c", "GET", "/v1/status", ""); rec.status != 200 {
		t.Errorf("after one has ended: got %d", rec.status)
	}
	if got := w.Names(); !slices.Equal(got, []string{"", "b", "c"}) {
		t.Errorf("there are %q", got)
	}
	w.Close()
	if rec := in(w, "d", "GET", "/v1/status", ""); rec.status != 503 {
		t.Errorf("after Close: got %d", rec.status)
	}
}

func TestEndOfAWorldEndsItsRequests(t *testing.T) {
	w := newWorlds(t, 1)
	in(w, "a", "POST", "/__mock/faults", `{"kind":"stall"}`)
	server := httptest.NewUnstartedServer(w)
	server.Config.ConnContext = w.ConnContext
	server.Start()
	defer server.Close()
	held := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest("GET", server.URL+"/v1/status", http.NoBody)
		req.Header.Set(mockcarrier.WorldHeader, "a")
		resp, err := server.Client().Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		held <- err
	}()
	c, err := w.World("a")
	if err != nil {
		t.Fatal(err)
	}
	for len(c.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if !w.End("a") || w.End("a") || w.End("") {
		t.Error("the world did not end once")
	}
	if err := <-held; err == nil {
		t.Error("a request that was held got an answer")
	}
	if journal := c.Requests(); journal[0].Connection != 1 || journal[0].Nth != 1 {
		t.Errorf("got %+v", journal[0])
	}
}

func TestWorldNames(t *testing.T) {
	w := newWorlds(t, 100)
	for name, want := range map[string]int{
		"checkout-7": 200, "a.b_C": 200, strings.Repeat("x", 64): 200,
		strings.Repeat("x", 65): 400, "a b": 400, "a/b": 400, "İ": 400, "?": 400,
	} {
		if rec := in(w, name, "GET", "/v1/status", ""); rec.status != want {
			t.Errorf("%q: got %d, want %d", name, rec.status, want)
		}
		if rec := in(w, name, "GET", "/__mock/ledger", ""); rec.status != want {
			t.Errorf("%q, admin: got %d, want %d", name, rec.status, want)
		}
	}
	for _, lines := range [][]string{{""}, {"a", "b"}, {"a", "a"}} {
		req, _ := http.NewRequest("GET", "/v1/status", http.NoBody)
		req.Header[mockcarrier.WorldHeader] = lines
		rec := newRecorder()
		w.ServeHTTP(rec, req)
		if rec.status != 400 {
			t.Errorf("%q: got %d", lines, rec.status)
		}
	}
}

// A page of another origin makes no world, and learns nothing of those there are.
func TestWorldsAreGuarded(t *testing.T) {
	w := newWorlds(t, 10)
	for _, path := range []string{"/__mock/worlds", "/__mock/ledger"} {
		if rec := in(w, "a", "GET", path, "", "Host", "attacker.example"); rec.status != 403 {
			t.Errorf("%s: got %d", path, rec.status)
		}
	}
	if got := w.Names(); len(got) != 1 {
		t.Errorf("there are %q", got)
	}
	off := newWorlds(t, 10, mockcarrier.WithAdmin(false))
	if rec := in(off, "", "GET", "/__mock/worlds", ""); rec.status != 404 {
		t.Errorf("switched off: got %d", rec.status)
	}
}

func TestWorldsBeginOnce(t *testing.T) {
	w := newWorlds(t, 5)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			world := fmt.Sprint("w", i%5)
			if rec := in(w, world, "POST", "/v1/shipments", order, "Idempotency-Key", fmt.Sprint(i)); rec.status != 201 {
				t.Errorf("%s: got %d %s", world, rec.status, rec.body.String())
			}
		})
	}
	wg.Wait()
	for _, name := range w.Names()[1:] {
		if c, err := w.World(name); err != nil || len(c.Ledger()) != 10 {
			t.Errorf("%s: %v, ledger %v", name, err, c.Ledger())
		}
	}
}

func TestWorldsSnapshotAndRestore(t *testing.T) {
	old := newWorlds(t, 3, frozen())
	in(old, "", "POST", "/v1/shipments", order, "Idempotency-Key", "k")
	in(old, "a", "POST", "/v1/shipments", orderFor("order-2"), "Idempotency-Key", "k")
	in(old, "a", "POST", "/__mock/clock", `{"advance":"5h"}`)
	snapshot := old.Snapshot()

	w := newWorlds(t, 3, frozen())
	in(w, "b", "GET", "/v1/status", "")
	if err := w.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if got := w.Names(); !slices.Equal(got, []string{"", "a"}) {
		t.Errorf("there are %q", got)
	}
	if got := string(w.Snapshot()); got != string(snapshot) {
		t.Errorf("got %s, want %s", got, snapshot)
	}
	rec := in(w, "a", "POST", "/v1/shipments", orderFor("order-2"), "Idempotency-Key", "k")
	if rec.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %d %v", rec.status, rec.header)
	}

	ended := newWorlds(t, 3, frozen())
	ended.Close()
	if err := ended.Restore(snapshot); err != nil || len(ended.Names()) != 1 {
		t.Errorf("after Close there are %q: %v", ended.Names(), err)
	}

	for name, tc := range map[string]struct{ was, is, says string }{
		"cut":             {string(snapshot), string(snapshot[:20]), "unexpected EOF"},
		"newer":           {`{"version":1,"worlds"`, `{"version":2,"worlds"`, "of version 2"},
		"unknown member":  {`{"version":1,"worlds"`, `{"colour":1,"worlds"`, "colour"},
		"no main world":   {`"":{`, `"main":{`, "the main world is missing"},
		"a bad name":      {`"a":{`, `"a b":{`, `world "a b"`},
		"a broken world":  {`"clockOffset":"5h0m0s"`, `"clockOffset":"x"`, `world "a"`},
		"the main broken": {`"clockOffset":"0s"`, `"clockOffset":"x"`, "clockOffset"},
		"too many":        {`"a":{`, `"x":` + string(mockcarrier.New().Snapshot()) + `,"y":` + string(mockcarrier.New().Snapshot()) + `,"z":{},"a":{`, "4 worlds"},
	} {
		bad := strings.Replace(string(snapshot), tc.was, tc.is, 1)
		if err := w.Restore([]byte(bad)); bad == string(snapshot) || err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want one that says %q", name, err, tc.says)
		}
	}
	if got := string(w.Snapshot()); got != string(snapshot) {
		t.Errorf("a snapshot that was refused has changed something: %s", got)
	}
}

func TestStateOverTheAdminAPI(t *testing.T) {
	w := newWorlds(t, 3, frozen())
	in(w, "a", "POST", "/v1/shipments", order, "Idempotency-Key", "k")
	state := in(w, "a", "GET", "/__mock/state", "").body.String()
	if rec := in(w, "b", "PUT", "/__mock/state", state); rec.status != 204 {
		t.Errorf("got %d %s", rec.status, rec.body.String())
	}
	if rec := in(w, "b", "GET", "/v1/shipments/shp_2001", ""); rec.status != 200 {
		t.Errorf("got %d", rec.status)
	}
	if rec := in(w, "b", "PUT", "/__mock/state", `{"version":9}`); rec.status != 400 || !strings.Contains(rec.body.String(), "version 9") {
		t.Errorf("got %d %s", rec.status, rec.body.String())
	}
}
