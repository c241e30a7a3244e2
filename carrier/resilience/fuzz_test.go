package resilience_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// fuzzDoer is a Doer that makes one attempt, and a stage to set.
func fuzzDoer(f *testing.F, options ...resilience.Option) (*resilience.Doer, *stage) {
	s := playing(act{Status: 200, Body: `{}`})
	return onStage(f, s, append([]resilience.Option{resilience.WithoutRetry()}, options...)...), s
}

// play makes the stage forget, and play this.
func (s *stage) play(a act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts, s.got = []act{a}, nil
}

// Whatever a carrier writes into its headers, the wait is never negative, two
// lines are never shorter than each of them, and digits are what they say.
func FuzzRetryAfter(f *testing.F) {
	for _, c := range casesOf[retryAfterCase](f, "retry_after.json") {
		f.Add(strings.Join(c.Header["Retry-After"], "\n"), c.Header.Get("Date"), c.Header.Get("Retry-After-Ms"), strings.Join(c.Header["Ratelimit"], "\n"), c.Header.Get("X-Ratelimit-Reset"))
	}
	d, s := fuzzDoer(f)
	wait := func(t *testing.T, h http.Header) time.Duration {
		s.play(act{Status: 503, Header: h})
		got := errorOf(t, callThing(t.Context(), d, opOf("read"))).RetryAfter
		if got < 0 {
			t.Errorf("%v: a wait of %v", h, got)
		}
		return got
	}
	f.Fuzz(func(t *testing.T, retryAfter, date, ms, rateLimit, reset string) {
		h := http.Header{"Date": {date}, "Retry-After-Ms": {ms}, "Ratelimit": strings.Split(rateLimit, "\n"), "X-Ratelimit-Reset": {reset}}
		lines := strings.Split(retryAfter, "\n")
		h["Retry-After"] = lines
		all := wait(t, h)
		for _, line := range lines {
			one := wait(t, http.Header{"Date": {date}, "Retry-After": {line}})
			if one-all > time.Second { // a date is read a moment later
				t.Errorf("%q alone is %v, together they are %v", line, one, all)
			}
			if digits := strings.Trim(line, " \t"); digits != "" && strings.Trim(digits, "0123456789") == "" && len(digits) < 10 && one%time.Second != 0 {
				t.Errorf("%q is %v", line, one)
			}
		}
	})
}

// No body makes the parser of problem details fail, hang, or hide the status.
func FuzzProblem(f *testing.F) {
	for _, c := range casesOf[problemCase](f, "problems.json") {
		a := c.act()
		f.Add(a.Header.Get("Content-Type"), a.Body)
	}
	const secret = "sk_live_51H8xYzQq"
	f.Add("application/json", `{"error":{"code":"`+secret+`","message":"sk\u005flive_51H8xYzQq"}}`)
	d, s := fuzzDoer(f, resilience.WithCredential("X-Api-Key", secret))
	f.Fuzz(func(t *testing.T, contentType, body string) {
		s.play(act{Status: 404, Header: http.Header{"Content-Type": {contentType}}, Body: body})
		err := callThing(t.Context(), d, opOf("read"))
		isExactly(t, err, "ErrNotFound")
		e := errorOf(t, err)
		if e.StatusCode != 404 || strings.ContainsAny(err.Error(), "\r\n") || len(e.Body) > 4<<10 || len(e.RequestID) > 128 {
			t.Errorf("%d, %d bytes kept, id %q: %q", e.StatusCode, len(e.Body), e.RequestID, err)
		}
		if p := e.Problem; p != nil {
			if !json.Valid([]byte(body)) || p.Type == "" {
				t.Errorf("a problem without type, or of no JSON: %+v", p)
			}
			for _, text := range []string{p.Type, p.Title, p.Detail, p.Instance, p.Code, p.RequestID} {
				if strings.Contains(text, secret) {
					t.Errorf("the problem shows the secret: %+v", p)
				}
			}
			if _, err := json.Marshal(p); err != nil {
				t.Errorf("the problem does not encode: %v", err)
			}
		}
		if strings.Contains(string(e.Body)+err.Error(), secret) {
			t.Errorf("the secret shows: %s, %v", e.Body, err)
		}
	})
}

// No JSON makes a time fail to decode, and what went out comes in the same.
func FuzzTime(f *testing.F) {
	for _, c := range casesOf[timeCase](f, "times.json") {
		quoted, _ := json.Marshal(c.Text)
		f.Add(string(quoted))
	}
	for _, seed := range []string{"null", "1795975200", "{}", "[1]", "true", "1e9", `"\ud800"`, "\"\xff\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var direct resilience.Time
		if err := direct.UnmarshalJSON([]byte(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if _, err := direct.MarshalJSON(); err != nil {
			t.Errorf("%q does not go out: %v", in, err)
		}
		var first, second struct{ T resilience.Time }
		if json.Unmarshal([]byte(`{"T":`+in+`}`), &first) != nil {
			if json.Valid([]byte(in)) && !strings.Contains(in, `"T"`) {
				t.Errorf("valid JSON %q makes the decode fail", in)
			}
			return
		}
		out, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%q does not go out: %v", in, err)
		}
		if err := json.Unmarshal(out, &second); err != nil {
			t.Fatalf("%s does not come back: %v", out, err)
		}
		quoted := strings.HasPrefix(strings.TrimSpace(in), `"`)
		if quoted && utf8.ValidString(first.T.Raw()) && (second.T.Raw() != first.T.Raw() || !second.T.Time().Equal(first.T.Time()) || second.T.HasZone() != first.T.HasZone()) {
			t.Errorf("%q went out as %s, and came back as %v (%q), not %v (%q)", in, out, second.T.Time(), second.T.Raw(), first.T.Time(), first.T.Raw())
		}
	})
}

// Whatever a caller passes for a parameter, the path stays the operation's.
func FuzzPathSegment(f *testing.F) {
	for _, c := range casesOf[segmentCase](f, "segments.json") {
		f.Add(c.Value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		segment, err := resilience.PathSegment("id", value)
		if err != nil {
			if segment != "" || !errors.Is(err, resilience.ErrInvalidRequest) {
				t.Errorf("%q: %q, %v", value, segment, err)
			}
			return
		}
		base, _ := url.Parse("https://h/v1/")
		u, err := base.Parse("/v1/shipments/" + segment + "/label")
		if err != nil {
			t.Fatalf("%q gives %q, which is no URL: %v", value, segment, err)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if len(parts) != 5 || parts[2] != "shipments" || parts[4] != "label" || u.RawQuery != "" || u.Fragment != "" || u.Host != "h" {
			t.Errorf("%q turns the URL into %v", value, u)
		}
		if back, err := url.PathUnescape(parts[3]); err != nil || back != value {
			t.Errorf("%q arrives as %q, %v", value, back, err)
		}
		if twice, err := url.PathUnescape(value); err != nil || strings.Contains(twice, "/") != strings.Contains(value, "/") {
			t.Errorf("%q means something else if it is unescaped twice: %q", value, twice)
		}
	})
}

// A key is sent as it is, or not at all.
func FuzzIdempotencyKey(f *testing.F) {
	for _, c := range casesOf[keyCase](f, "keys.json") {
		f.Add(c.Key)
	}
	d, s := fuzzDoer(f)
	quoting, quoted := fuzzDoer(f, resilience.WithQuotedKeys())
	f.Fuzz(func(t *testing.T, key string) {
		printable := key != "" && len(key) <= 255 && strings.Trim(key, " ") == key
		for _, c := range []byte(key) {
			printable = printable && 0x20 <= c && c <= 0x7e
		}
		s.play(act{Status: 200, Body: `{}`})
		err := callThing(t.Context(), d, opOf("keyed"), resilience.WithIdempotencyKey(key))
		if got := s.requests(); printable != (err == nil) || printable && (len(got) != 1 || !slices.Equal(got[0].Header["Idempotency-Key"], []string{key})) || !printable && len(got) != 0 {
			t.Errorf("%q: %v, sent %v", key, err, got)
		}
		if !printable {
			return
		}
		// In quotes it is one string of a structured field, and comes back.
		quoted.play(act{Status: 200, Body: `{}`})
		if err := callThing(t.Context(), quoting, opOf("keyed"), resilience.WithIdempotencyKey(key)); err != nil {
			t.Fatal(err)
		}
		sent := quoted.requests()[0].Header.Get("Idempotency-Key")
		if back, ok := structuredString(sent); !ok || back != key {
			t.Errorf("%q is sent as %s, which is %q", key, sent, back)
		}
	})
}

// structuredString reads a String by RFC 9651, section 4.2.5.
func structuredString(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	var out []byte
	for s = s[1 : len(s)-1]; s != ""; s = s[1:] {
		if s[0] == '"' {
			return "", false
		}
		if s[0] == '\\' {
			if s = s[1:]; s == "" || s[0] != '"' && s[0] != '\\' {
				return "", false
			}
		}
		out = append(out, s[0])
	}
	return string(out), true
}

// Different parts never derive the same key.
func FuzzDerivedKey(f *testing.F) {
	for _, c := range casesOf[derivedKeyCase](f, "derived_keys.json") {
		f.Add(c.Operation, c.ID, c.Revision, "createShipment", "order-1001", 1)
	}
	f.Add("a\x1fb", "c", 1, "a", "b\x1fc", 1)
	f.Add("a", "b\x1f1", 1, "a", "b", 11)
	f.Add("a\x1b", "b", 1, "a", "\x1bb", 1)
	f.Fuzz(func(t *testing.T, op1, id1 string, rev1 int, op2, id2 string, rev2 int) {
		one, two := resilience.DeriveIdempotencyKey(op1, id1, rev1), resilience.DeriveIdempotencyKey(op2, id2, rev2)
		same := op1 == op2 && id1 == id2 && rev1 == rev2
		if (one == two) != (same || one == "" && two == "") || (one == "") != (op1 == "" || id1 == "") {
			t.Errorf("%q %q %d is %q, %q %q %d is %q", op1, id1, rev1, one, op2, id2, rev2, two)
		}
	})
}

// No table and no path make the search for an operation fail.
func FuzzOperations(f *testing.F) {
	for _, c := range casesOf[operationCase](f, "operations.json") {
		f.Add("/tracking/{n}", "/{a}/events", c.Method, c.Path)
	}
	f.Add("/", "//", "GET", "/")
	f.Add("/{", "/}{", "GET", "//%2F//")
	f.Fuzz(func(t *testing.T, first, second, method, path string) {
		ops := []*resilience.Operation{{ID: "first", Method: "GET", Path: first}, {ID: "second", Method: method, Path: second}}
		for _, base := range []string{"", origin, origin + "/v1"} {
			options := []resilience.Option{resilience.WithTransport(playing(act{Status: 200})), resilience.WithOperations(ops...)}
			if base != "" {
				options = append(options, resilience.WithBaseURL(base))
			}
			d, err := resilience.New(options...)
			if err != nil {
				if !errors.Is(err, resilience.ErrInvalidRequest) {
					t.Error(err)
				}
				return
			}
			u, err := url.Parse(origin + path)
			if err != nil {
				return
			}
			req := &http.Request{Method: method, URL: u, Header: http.Header{}}
			if resp, err := d.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			if base != "" {
				_ = d.Call(t.Context(), ops[0], &resilience.Request{Path: path}, nil)
			}
		}
	})
}
