package mockcarrier_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const (
	secret    = "whsec_Zm9vYmFyYmF6cXV4"
	newSecret = "whsec_c2Vjb25kIHNlY3JldA"
	// shopURL is where notifications go that a handler takes in.
	shopURL = "https://shop.example/callbacks"
)

// subscribe makes a subscription with a key of its own, and further members.
func (a api) subscribe(t *testing.T, url string, more ...string) string {
	t.Helper()
	body := fmt.Sprintf(`{"url":%q,"secret":%q`, url, secret)
	for _, member := range more {
		body += "," + member
	}
	made := a.do(t, "POST", "/subscriptions", body+"}", "Idempotency-Key", fmt.Sprint("subscription ", len(a.Requests()))).want(t, 201)
	return made["id"].(string)
}

// statusOf returns the status of a subscription.
func (a api) statusOf(t *testing.T, id string) string {
	t.Helper()
	for _, item := range a.get(t, "/subscriptions").want(t, 200)["items"].([]any) {
		if s := item.(map[string]any); s["id"] == id {
			return s["status"].(string)
		}
	}
	t.Fatalf("there is no subscription %s", id)
	return ""
}

func TestSubscriptions(t *testing.T) {
	a := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithAPIKey(mockcarrier.APIKey, "other")))
	other := a
	other.key = "other"
	if empty := a.get(t, "/subscriptions"); empty.want(t, 200)["items"] == nil {
		t.Errorf("got %s", empty.body)
	}

	const body = `{"url":"` + shopURL + `","secret":"` + secret + `","secrets":["` + newSecret + `"],"events":["tracking_delivered"],"description":"the shop"}`
	made := a.do(t, "POST", "/subscriptions", body, "Idempotency-Key", "k")
	want := map[string]any{
		"id": "sub_5001", "status": "active", "url": shopURL, "events": []any{"tracking_delivered"}, "description": "the shop", "createdAt": "2026-03-02T12:00:00Z",
	}
	if got := made.want(t, 201); fmt.Sprint(got) != fmt.Sprint(want) || made.Header.Get("Location") != "/v1/subscriptions/sub_5001" {
		t.Errorf("got %v %v, want %v", made.Header, got, want)
	}
	again := a.do(t, "POST", "/subscriptions", body, "Idempotency-Key", "k")
	if again.body != made.body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %v %s", again.Header, again.body)
	}
	a.do(t, "POST", "/subscriptions", strings.Replace(body, "the shop", "a shop", 1), "Idempotency-Key", "k").want(t, 422, "idempotency_key_reused")
	a.do(t, "POST", "/subscriptions", body).want(t, 400, "idempotency_key_missing")
	a.subscribe(t, shopURL)
	other.subscribe(t, shopURL)
	a.subscribe(t, shopURL)

	list := func(a api, query string) (ids []string, next string) {
		page := a.get(t, "/subscriptions"+query).want(t, 200)
		for _, item := range page["items"].([]any) {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		next, _ = page["nextCursor"].(string)
		return ids, next
	}
	first, next := list(a, "?limit=2")
	second, end := list(a, "?limit=2&cursor="+next)
	if fmt.Sprint(first, second) != "[sub_5004 sub_5002] [sub_5001]" || next == "" || end != "" {
		t.Errorf("got %v and %v, then %q", first, second, end)
	}
	if theirs, _ := list(other, ""); fmt.Sprint(theirs) != "[sub_5003]" {
		t.Errorf("the other account has %v", theirs)
	}
	a.get(t, "/subscriptions?cursor=c3ViXzUwMDM").want(t, 400, "malformed_parameter") // the other account's
	a.get(t, "/subscriptions?limit=0").want(t, 400, "malformed_parameter")

	for range 2 {
		if r := a.do(t, "DELETE", "/subscriptions/sub_5002", ""); r.StatusCode != 204 || r.body != "" {
			t.Errorf("got %s %s", r.Status, r.body)
		}
	}
	if got := a.statusOf(t, "sub_5002"); got != "ended" {
		t.Errorf("it is %s", got)
	}
	a.do(t, "DELETE", "/subscriptions/sub_5003", "").want(t, 404, "subscription_not_found")
	a.do(t, "DELETE", "/subscriptions/sub_9999", "").want(t, 404, "subscription_not_found")
	a.do(t, "DELETE", "/subscriptions/a.b", "").want(t, 400, "malformed_parameter")
	if got := other.statusOf(t, "sub_5003"); got != "active" {
		t.Errorf("it is %s", got)
	}
}

func TestWhereNotificationsMayGo(t *testing.T) {
	a := newAPI(mockcarrier.Start(t))
	for i, tc := range []struct{ url, code string }{
		{"https://shop.example", ""}, {"https://shop.example:8443/a?b=c", ""}, {"HTTPS://shop.example/", ""},
		{"https://:443/", "format"}, {"http://:80/", "format"}, {"https://shop.example/\r\nX: y", "format"}, {"https://shop.example\\@127.0.0.1/", "format"},
		{"http://[::ffff:127.0.0.1]/", ""}, {"http://[0:0:0:0:0:0:0:1]/", ""}, {"http://[::1%25lo]/", "https"}, {"http://[::]/", "https"},
		{"http://0.0.0.0/", "https"}, {"http://127.1/", "https"}, {"http://2130706433/", "https"}, {"http://localhost./", "https"},
		{"http://127.0.0.1:8080/callbacks", ""}, {"http://localhost:1/", ""}, {"http://[::1]/", ""}, {"http://127.8.9.1/", ""},
		{"http://shop.example/", "https"}, {"http://192.0.2.1/", "https"}, {"http://127.0.0.1.shop.example/", "https"}, {"http://localhost.shop.example/", "https"},
		{"ftp://shop.example/", "https"}, {"//shop.example/callbacks", "https"}, {"/callbacks", "format"}, {"mailto:shop@shop.example", "format"},
		{"https:///callbacks", "format"}, {"https://shop.example:port/", "format"}, {"https://[::1/", "format"}, {"nonsense", "format"},
		{"https://user@shop.example/", "userinfo"}, {"https://user:password@shop.example/", "userinfo"}, {"https://shop.example/#part", "fragment"},
	} {
		r := a.do(t, "POST", "/subscriptions", fmt.Sprintf(`{"url":%q,"secret":%q}`, tc.url, secret), "Idempotency-Key", fmt.Sprint(i))
		if tc.code == "" {
			r.want(t, 201)
			continue
		}
		problem := r.want(t, 422, "validation_failed")
		if code := problem["errors"].([]any)[0].(map[string]any)["code"]; pointers(problem) != "/url" || code != tc.code {
			t.Errorf("%s: got %s, want %s", tc.url, r.body, tc.code)
		}
	}
}

// No answer, no entry of the journal, no line of the log and no state that the
// admin API shows has a secret; what the program saves has, to go on signing.
func TestSecretsOfSubscriptionsAreNotShown(t *testing.T) {
	var log bytes.Buffer
	shop := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	a := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithWebhookHandler(shop),
		mockcarrier.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	const good = `{"url":"` + shopURL + `","secret":"` + secret + `","secrets":["` + newSecret + `"]}`
	var answers strings.Builder
	for i, body := range []string{
		good, good[:len(good)-1], strings.Replace(good, `"secret"`, `"Secret"`, 1), strings.Replace(good, shopURL, "nowhere", 1),
		strings.Replace(good, `"secrets":[`, `"secrets":["short",`, 1), `["` + secret + `","` + newSecret + `"]`,
		`{"url":{"x":"` + secret + `"},"secret":7}`,
	} {
		answers.WriteString(a.do(t, "POST", "/subscriptions", body, "Idempotency-Key", fmt.Sprint(i)).body)
	}
	a.do(t, "POST", "/subscriptions", good, "Idempotency-Key", "0")
	answers.WriteString(a.do(t, "POST", "/subscriptions", strings.Replace(good, "whsec", "other", 1), "Idempotency-Key", "0").body)
	answers.WriteString(a.get(t, "/subscriptions").body)
	a.buy(t, "k", order).want(t, 201)
	a.Advance(48 * 3600e9)

	origin := strings.TrimSuffix(a.URL, "/v1")
	for _, path := range []string{"requests", "state", "deliveries", "verification", "ledger"} {
		resp, err := a.client.Get(origin + mockcarrier.AdminPath + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp.Status, err)
		}
		_ = resp.Body.Close()
		if path == "state" && !strings.Contains(body.String(), "sub_5001") {
			t.Errorf("no subscription in %s", body.String())
		}
		answers.WriteString(body.String())
	}
	if len(a.Deliveries()) == 0 || log.Len() == 0 {
		t.Error("nothing was delivered, or logged")
	}
	fmt.Fprintf(&answers, "%+v %+v", a.Requests(), a.Deliveries())
	for _, r := range a.Requests() {
		answers.Write(r.Body)
	}
	for where, text := range map[string]string{"answer": answers.String(), "log": log.String()} {
		for _, s := range []string{secret, newSecret} {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("a secret is in an %s: %s", where, text[max(0, i-200):i])
			}
		}
	}
	if first := string(a.Requests()[0].Body); first != `{"secret":"[redacted]","secrets":"[redacted]","url":"`+shopURL+`"}` {
		t.Errorf("the journal has %s", first)
	}
	if snapshot := string(a.Snapshot()); !strings.Contains(snapshot, secret) || !strings.Contains(snapshot, newSecret) {
		t.Error("the snapshot cannot sign")
	}
}

// Nor has what says why an expectation or a fault did not apply.
func TestSecretsOfSubscriptionsAreNotExplained(t *testing.T) {
	c := mockcarrier.New()
	defer c.Close()
	const body = `{"url":"` + shopURL + `","secret":"` + secret + `","secrets":["` + newSecret + `"]}`
	for _, m := range []mockcarrier.Matcher{
		mockcarrier.Body("/secret", "guessed"), mockcarrier.Body("/secrets/0", "guessed"), mockcarrier.Body("", "guessed"),
		mockcarrier.BodyIncludes(map[string]any{"secret": "guessed", "secrets": []string{"guessed"}}),
		mockcarrier.Body("/secret", regexp.MustCompile("^whsec")),
	} {
		c.Expect("createSubscription").With(m)
		c.Inject(mockcarrier.Status(503).On("createSubscription").With(m))
	}
	for _, text := range []string{body, `["` + secret + `","` + newSecret + `"]`} {
		r, err := http.NewRequest("POST", "http://carrier.test/v1/subscriptions", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		said, err := c.Explain(r)
		if err != nil {
			t.Fatal(err)
		}
		if all := fmt.Sprintf("%s %+v", said, said); strings.Contains(all, secret) || strings.Contains(all, newSecret) || !strings.Contains(all, "got [redacted]") {
			t.Errorf("got %s", all)
		}
	}
}
