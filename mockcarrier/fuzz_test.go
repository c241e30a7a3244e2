package mockcarrier_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// answerTo asks a carrier without a network.
func answerTo(c *mockcarrier.Carrier, r *http.Request) (int, string) {
	rec := newRecorder()
	c.ServeHTTP(rec, r)
	return rec.status, rec.body.String()
}

// Whatever the body is, it is taken or refused with problem details, and bought
// once if it is taken.
func FuzzBody(f *testing.F) {
	for _, body := range []string{order, "{}", "[]", "null", `{"parcels":[null]}`, `{"from":{"line1":7}}`, strings.Repeat("[", 100), order + order, "\x00"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := mockcarrier.New()
		r, _ := http.NewRequest("POST", "/v1/shipments", strings.NewReader(body))
		r.Header = http.Header{"X-Api-Key": {mockcarrier.APIKey}, "Idempotency-Key": {"k"}, "Content-Type": {"application/json"}}
		status, answer := answerTo(c, r)
		switch status {
		case 201:
			if len(c.Ledger()) != 1 {
				t.Errorf("bought %v", c.Ledger())
			}
		case 400, 413, 422:
			if len(c.Ledger()) != 0 {
				t.Errorf("bought %v", c.Ledger())
			}
		default:
			t.Errorf("got %d %s", status, answer)
		}
		if !json.Valid([]byte(answer)) {
			t.Errorf("%q is no JSON", answer)
		}
	})
}

// Whatever the path and the query are, the answer is one of the API's.
func FuzzURL(f *testing.F) {
	for _, path := range []string{"/v1/tracking/BK1001TR", "/v1/v1/status", "/v1/tracking/%2F", "/v1/shipments?limit=%zz&cursor=ZW5k", "/oauth/token", "/__mock/", "*"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		c := mockcarrier.New(mockcarrier.WithAdmin(false))
		c.Expect("getTracking").With(mockcarrier.Parameter("trackingNumber", "BK1001TR")).AnyTimes()
		r := &http.Request{Method: "GET", URL: u, Header: http.Header{"X-Api-Key": {mockcarrier.APIKey}}, Body: http.NoBody}
		if strings.HasPrefix(u.Path, "/v1/tracking/MC") {
			return // a scenario
		}
		if _, err := c.Explain(r); err != nil {
			t.Error(err)
		}
		status, answer := answerTo(c, r)
		switch {
		case status == 200:
		case status < 400 || status >= 500 || !json.Valid([]byte(answer)):
			t.Errorf("got %d %s", status, answer)
		}
	})
}

// Whatever is posted as a fault, it is valid or refused, and the same again as
// JSON.
func FuzzFaultJSON(f *testing.F) {
	for _, text := range []string{
		`{"kind":"status","status":503,"match":[{"in":"body","name":"/reference","equals":1}]}`,
		`{"kind":"sequence","steps":[{"kind":"none","first":2}],"loop":true}`, `{"kind":"delay","wait":"1s","sigma":1e308}`, `{"kind":"refuse"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var fault mockcarrier.Fault
		if json.Unmarshal([]byte(text), &fault) != nil {
			return
		}
		data, err := json.Marshal(fault)
		if err != nil {
			t.Fatal(err)
		}
		var again mockcarrier.Fault
		if err := json.Unmarshal(data, &again); err != nil || again.String() != fault.String() {
			t.Errorf("%s became %s: %v", text, data, err)
		}
		mockcarrier.New().Inject(fault)
	})
}
