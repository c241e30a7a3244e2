package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestExpectationsOverTheAdminAPI(t *testing.T) {
	w := newWorlds(t, 10)
	post := func(world, path, body string, want int) string {
		t.Helper()
		rec := in(w, world, "POST", "/__mock/"+path, body)
		if rec.status != want {
			t.Fatalf("%s %s: got %d, want %d: %s", path, body, rec.status, want, rec.body.String())
		}
		return rec.body.String()
	}
	verdict := func(world string) (ok bool, report string) {
		t.Helper()
		var v struct {
			OK     bool
			Report string
		}
		if err := json.Unmarshal([]byte(in(w, world, "GET", "/__mock/verification", "").body.String()), &v); err != nil {
			t.Fatal(err)
		}
		return v.OK, v.Report
	}
	reference := func(want string) string {
		return fmt.Sprintf(`"with":[{"in":"body","name":"/reference","equals":%q}]`, want)
	}

	if ok, report := verdict("a"); !ok || report != "" {
		t.Errorf("nothing is expected, and the verdict is %s", report)
	}
	list := post("a", "expectations", `{"operation":"createShipment",`+reference("order-1001")+`,"times":2}`, 201)
	if got := fmt.Sprint(members(t, list, "wanted"), members(t, list, "met")); got != "[2] [false]" {
		t.Errorf("got %s", got)
	}
	in(w, "a", "POST", "/v1/shipments", order, "Idempotency-Key", "1")
	if ok, report := verdict("a"); ok || !strings.Contains(report, "1 expectation was not met") {
		t.Errorf("the verdict is %v %s", ok, report)
	}
	in(w, "a", "POST", "/v1/shipments", order, "Idempotency-Key", "2")
	if ok, report := verdict("a"); !ok {
		t.Errorf("the verdict is %s", report)
	}
	in(w, "a", "POST", "/v1/shipments", orderFor("order-2"), "Idempotency-Key", "3")
	if ok, report := verdict("a"); ok || !strings.Contains(report, "1 request was not expected") {
		t.Errorf("the verdict is %v %s", ok, report)
	}
	if journal := in(w, "a", "GET", "/__mock/requests", "").body.String(); fmt.Sprint(members(t, journal, "unexpected")) != "[<nil> <nil> true]" {
		t.Errorf("got %s", journal)
	}
	if rec := in(w, "a", "DELETE", "/__mock/expectations", ""); rec.status != 204 {
		t.Errorf("got %d", rec.status)
	}
	if ok, report := verdict("a"); !ok {
		t.Errorf("the verdict is %s", report)
	}
	if body := in(w, "a", "GET", "/__mock/expectations", "").body.String(); strings.TrimSpace(body) != "[]" {
		t.Errorf("got %s", body)
	}

	for _, tc := range []struct {
		query string
		ok    bool
	}{{"", true}, {"?order=strict", false}} {
		world := fmt.Sprint("order", tc.ok)
		post(world, "expectations"+tc.query, `[{"operation":"getStatus"},{"operation":"createShipment","atLeast":1}]`, 201)
		in(w, world, "POST", "/v1/shipments", order, "Idempotency-Key", "1")
		in(w, world, "GET", "/v1/status", "")
		if ok, report := verdict(world); ok != tc.ok {
			t.Errorf("%q: the verdict is %v %s", tc.query, ok, report)
		}
	}

	post("b", "expectations", `[{"operation":"getStatus","atMost":0},{"operation":"issueToken","atMost":3}]`, 201)
	in(w, "b", "GET", "/v1/status", "")
	if ok, _ := verdict("b"); ok {
		t.Error("a request that must not come is fine")
	}
	for _, bad := range []string{
		`[]`, `{}`, `nonsense`, `{"operation":"buyShipment"}`, `{"operation":"getStatus","times":-1}`,
		`{"operation":"getStatus","times":1,"atMost":2}`, `{"operation":"getStatus","colour":"red"}`,
		`{"operation":"getStatus","with":[{"in":"moon","equals":1}]}`, `{"operation":"getStatus","with":[{"in":"header"}]}`,
		`[{"operation":"getStatus"},{"operation":"buyShipment"}]`,
	} {
		if body := post("c", "expectations", bad, 400); !strings.Contains(body, `"code":"bad_expectation"`) {
			t.Errorf("%s: got %s", bad, body)
		}
	}
	if c, _ := w.World("c"); len(c.Expectations()) != 0 {
		t.Error("what was refused is expected in part")
	}
}

func TestExplanationOverTheAdminAPI(t *testing.T) {
	c := mockcarrier.New()
	defer c.Close()
	c.Inject(mockcarrier.Status(503).On("createShipment").ForReference("order-1001").Times(1))
	explain := func(body string, want int) string {
		t.Helper()
		rec := in(c, "", "POST", "/__mock/explanation", body)
		if rec.status != want {
			t.Errorf("%s: got %d, want %d", body, rec.status, want)
		}
		return rec.body.String()
	}
	body, _ := json.Marshal(map[string]any{
		"method": "POST", "path": "/v1/shipments", "body": order,
		"header": map[string][]string{"content-type": {"application/json"}, "idempotency-key": {"k"}},
	})
	for _, part := range []string{`"operation":"createShipment"`, `"applies":true`, `"text":"`} {
		if got := explain(string(body), 200); !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
	if got := explain(`{"method":"GET","path":"/v1/status"}`, 200); !strings.Contains(got, `"applies":false`) {
		t.Errorf("got %s", got)
	}
	if got := explain(`{"method":"GET","path":"/v1/trackin/BK1001TR"}`, 200); !strings.Contains(got, `"nearest":"getTracking`) {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{`[]`, `{"method":"G T","path":"/"}`, `{"method":"GET","path":"%"}`, `{"url":"/"}`} {
		explain(bad, 400)
	}
	if n := len(c.Requests()); n != 0 {
		t.Errorf("%d requests were counted", n)
	}
}

func TestTokensAreRevokedOverTheAdminAPI(t *testing.T) {
	a := newAPI(mockcarrier.Start(t))
	token := a.newToken(t)
	bearer := []string{"-X-Api-Key", "", "Authorization", "Bearer " + token}
	a.get(t, "/status", bearer...).want(t, 200)
	if rec := in(a.Carrier, "", "DELETE", "/__mock/tokens", ""); rec.status != 204 {
		t.Errorf("got %d", rec.status)
	}
	a.get(t, "/status", bearer...).want(t, 401)
}
