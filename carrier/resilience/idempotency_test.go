package resilience_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type derivedKeyCase struct {
	Name
	Operation string `json:"operation"`
	ID        string `json:"id"`
	Revision  int    `json:"revision"`
	Key       string `json:"key"`
}

func TestDeriveIdempotencyKey(t *testing.T) {
	seen := map[string]string{}
	for _, c := range casesOf[derivedKeyCase](t, "derived_keys.json") {
		got := resilience.DeriveIdempotencyKey(c.Operation, c.ID, c.Revision)
		if got != c.Key {
			t.Errorf("%s: %q, want %q", c.Name.Name, got, c.Key)
		}
		if other := seen[got]; got != "" && other != "" {
			t.Errorf("%q and %q have the same key", other, c.Name.Name)
		}
		seen[got] = c.Name.Name
		if got == "" {
			s := playing(act{Status: 200, Body: `{}`})
			isExactly(t, callThing(t.Context(), onStage(t, s), opOf("keyed"), resilience.WithIdempotencyKey(got)), "ErrInvalidRequest")
			if s.count() != 0 {
				t.Errorf("%s: a call went out with no key", c.Name.Name)
			}
		}
	}
}

type keyCase struct {
	Name
	Key   string `json:"key"`
	Valid bool   `json:"valid"`
}

// Keys of the caller's, by option and by header, raw and quoted.
func TestKeyValidation(t *testing.T) {
	for _, c := range casesOf[keyCase](t, "keys.json") {
		for _, quoted := range []bool{false, true} {
			t.Run(c.Name.Name+map[bool]string{true: "/quoted"}[quoted], func(t *testing.T) {
				op, s := opOf("keyed"), playing(act{Status: 200, Body: `{}`})
				options, onWire := []resilience.Option{resilience.WithOperations(op)}, c.Key
				if quoted {
					options = append(options, resilience.WithQuotedKeys())
					onWire = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Key) + `"`
				}
				d := onStage(t, s, options...)
				var info resilience.CallInfo
				errs := []error{
					callThing(t.Context(), d, op, resilience.WithIdempotencyKey(c.Key), resilience.WithCallInfo(&info)),
					doKey(t, d, op, c.Key, resilience.WithCallInfo(&info)),
				}
				for i, err := range errs {
					switch {
					case !c.Valid:
						isExactly(t, err, "ErrInvalidRequest")
						e := errorOf(t, err)
						if e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || len(c.Key) > 2 && strings.Contains(err.Error(), c.Key) {
							t.Errorf("outcome %v, %d attempts, text %q", e.Outcome, e.Attempts, err)
						}
					case err != nil:
						t.Error(err)
					case info.IdempotencyKey != c.Key:
						t.Errorf("way %d: info has %q, want %q", i, info.IdempotencyKey, c.Key)
					}
				}
				if !c.Valid {
					if s.count() != 0 {
						t.Errorf("%d requests went out", s.count())
					}
					return
				}
				for _, r := range s.requests() {
					if got := r.Header["Idempotency-Key"]; len(got) != 1 || got[0] != onWire {
						t.Errorf("on the wire: %q, want %q", got, onWire)
					}
				}
			})
		}
	}
}

// doKey makes the call through Do, with the key in its header.
func doKey(t *testing.T, d *resilience.Doer, op *resilience.Operation, key string, options ...resilience.CallOption) error {
	t.Helper()
	req := httpRequestOf(resilience.WithCall(t.Context(), options...), origin+"/v1", op)
	req.Header["Idempotency-Key"] = []string{key}
	resp, err := d.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// Without a key of the caller's each call gets one of its own, and says so on
// its result and on its error.
func TestGeneratedKeys(t *testing.T) {
	v4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 50 {
		s := playing(act{Status: 503}, act{Status: 503}, act{Status: 400})
		var info resilience.CallInfo
		e := errorOf(t, callThing(t.Context(), onStage(t, s, atOnce(resilience.RetryPolicy{})), opOf("keyed"), resilience.WithCallInfo(&info)))
		key := e.IdempotencyKey
		if !v4.MatchString(key) || seen[key] || info.IdempotencyKey != key {
			t.Errorf("key %q (in info %q): want a UUIDv4, not seen before: %v", key, info.IdempotencyKey, !seen[key])
		}
		seen[key] = true
		for _, r := range s.requests() {
			if r.Header.Get("Idempotency-Key") != key {
				t.Errorf("an attempt carried %q, want %q", r.Header.Get("Idempotency-Key"), key)
			}
		}
	}
}

// A key where none is taken: nothing is sent, since net/http would take the
// header for leave to send a POST twice.
func TestKeysWhereNoneIsTaken(t *testing.T) {
	for _, safety := range []string{"read", "idempotent", "unsafe"} {
		op, s := opOf(safety), playing(act{Status: 200, Body: `{}`})
		d := onStage(t, s, resilience.WithOperations(op))
		isExactly(t, callThing(t.Context(), d, op, resilience.WithIdempotencyKey("k")), "ErrInvalidRequest")
		isExactly(t, doKey(t, d, op, "k"), "ErrInvalidRequest")
		for _, name := range []string{"X-Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"} {
			for _, values := range [][]string{{"k"}, {}, nil} {
				req := httpRequestOf(t.Context(), origin+"/v1", op)
				req.Header[name] = values
				_, err := d.Do(req)
				isExactly(t, err, "ErrInvalidRequest")
			}
		}
		if s.count() != 0 {
			t.Errorf("%s: %d requests went out", safety, s.count())
		}
		if err := callThing(t.Context(), d, op); err != nil || s.requests()[0].Header.Values("Idempotency-Key") != nil {
			t.Errorf("%s: %v, %v", safety, err, s.requests()[0].Header)
		}
	}
}

// Whether the wire's form is quoted or not, a caller of Do may give either.
func TestKeyOfARequestIsUnquoted(t *testing.T) {
	op := opOf("keyed")
	for _, test := range []struct{ given, key string }{
		{`abc`, `abc`},
		{`"abc"`, `abc`},
		{`"a\"b\\c"`, `a"b\c`},
		{`"abc`, `"abc`},
		{`"`, `"`},
	} {
		s := playing(act{Status: 200, Body: `{}`})
		var info resilience.CallInfo
		if err := doKey(t, onStage(t, s, resilience.WithOperations(op)), op, test.given, resilience.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[0].Header.Get("Idempotency-Key"); got != test.key || info.IdempotencyKey != test.key {
			t.Errorf("%s: sent as %q, in info %q, want %q", test.given, got, info.IdempotencyKey, test.key)
		}
	}
}

// The header of the operation carries the key, whatever it is called, and an
// empty header of the caller's is as none.
func TestKeyHeaderOfTheOperation(t *testing.T) {
	op := opOf("keyed")
	op.KeyHeader = "x-carrier-once"
	s := playing(act{Status: 200, Body: `{}`})
	d := onStage(t, s, resilience.WithOperations(op))
	if err := callThing(t.Context(), d, op, resilience.WithIdempotencyKey("k1")); err != nil {
		t.Fatal(err)
	}
	req := httpRequestOf(t.Context(), origin+"/v1", op)
	req.Header["X-Carrier-Once"] = []string{}
	if _, err := d.Do(req); err != nil {
		t.Fatal(err)
	}
	got := s.requests()
	if v := got[0].Header["X-Carrier-Once"]; len(v) != 1 || v[0] != "k1" || got[0].Header.Get("Idempotency-Key") != "" {
		t.Errorf("the first carried %v", got[0].Header)
	}
	if v := got[1].Header["X-Carrier-Once"]; len(v) != 1 || len(v[0]) != 36 {
		t.Errorf("the second carried %v, want a key of its own", got[1].Header)
	}
}

// The marks by which carriers show that an answer is that of an earlier request.
func TestReplayMarks(t *testing.T) {
	for _, test := range []struct {
		header http.Header
		want   bool
	}{
		{http.Header{"Idempotency-Replayed": {"true"}}, true},
		{http.Header{"Idempotent-Replayed": {"True"}}, true},
		{http.Header{"Idempotency-Replay": {"TRUE"}}, true},
		{http.Header{"Idempotency-Replayed": {"false"}}, false},
		{http.Header{"Idempotency-Replayed": {"1"}}, false},
		{http.Header{"Idempotency-Replayed": {}}, false},
		{http.Header{"X-Replayed": {"true"}}, false},
		{nil, false},
	} {
		var info resilience.CallInfo
		d := onStage(t, playing(act{Status: 200, Body: `{}`, Header: test.header}))
		if err := callThing(t.Context(), d, opOf("keyed"), resilience.WithCallInfo(&info)); err != nil || info.Replayed != test.want {
			t.Errorf("%v: Replayed = %v, %v; want %v", test.header, info.Replayed, err, test.want)
		}
	}
}

type idempotencyCase struct {
	Name
	Answers []struct {
		Status     int    `json:"status"`
		Code       string `json:"code"`
		RetryAfter string `json:"retryAfter"`
		Replayed   bool   `json:"replayed"`
		Cut        bool   `json:"cut"`
		Dropped    bool   `json:"dropped"`
		Hangs      bool   `json:"hangs"` // for longer than an attempt may take
	} `json:"answers"`
	Replayed bool `json:"replayed"` // what CallInfo says of a success
	Took     span `json:"took"`     // all waits and hangs
	verdictData
}

// What the client does with each answer of a server that deduplicates by key:
// the same key and bytes until it is told, and never a second intent.
func TestIdempotencyFromTheClientsSide(t *testing.T) {
	for _, c := range casesOf[idempotencyCase](t, "idempotency.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var acts []act
				for _, a := range c.Answers {
					next := act{Status: a.Status, Header: http.Header{}, Body: `{"id":"s1"}`}
					if a.Code != "" {
						next.Body = fmt.Sprintf(`{"code":%q}`, a.Code)
					}
					if a.RetryAfter != "" {
						next.Header.Set("Retry-After", a.RetryAfter)
					}
					if a.Replayed {
						next.Header.Set("Idempotency-Replayed", "true")
					}
					if a.Cut {
						next.BodyErr = io.ErrUnexpectedEOF
					}
					if a.Dropped {
						next = act{Trace: "got", Err: io.EOF}
					}
					if a.Hangs {
						next = act{Trace: "got", Wait: time.Hour}
					}
					acts = append(acts, next)
				}
				op := opOf("keyed")
				op.Success = []resilience.Success{{Status: 201, ContentTypes: []string{"application/json"}}}
				s := playing(acts...)
				d := onStage(t, s, resilience.WithAttemptTimeout(time.Second), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1, Rand: func() float64 { return 0 }}))
				var info resilience.CallInfo
				begun := time.Now()
				err := callThing(t.Context(), d, op, resilience.WithIdempotencyKey("k-1"), resilience.WithCallInfo(&info))

				got := s.requests()
				if len(got) != len(acts) || info.Attempts != len(acts) || time.Since(begun) != c.Took.d() {
					t.Errorf("%d requests in %v, want %d in %v", len(got), time.Since(begun), len(acts), c.Took.d())
				}
				for i, r := range got {
					if r.Header.Get("Idempotency-Key") != "k-1" || r.Body != `{"n":1}` {
						t.Errorf("request %d carried %q and %q", i+1, r.Header.Get("Idempotency-Key"), r.Body)
					}
				}
				if c.Outcome == "" {
					if err != nil || info.Replayed != c.Replayed || info.StatusCode != 201 {
						t.Errorf("%v, replayed %v, want %v", err, info.Replayed, c.Replayed)
					}
					return
				}
				isExactly(t, err, c.Is...)
				if e := errorOf(t, err); e.Outcome != outcomeOf(t, c.Outcome) || e.IdempotencyKey != "k-1" {
					t.Errorf("outcome %v, key %q", e.Outcome, e.IdempotencyKey)
				}
			})
		})
	}
}

// A code means what it says with its own status alone.
func TestCodesWithOtherStatuses(t *testing.T) {
	for _, test := range []struct {
		safety string
		status int
		code   string
		is     []string
	}{
		{"keyed", 409, "idempotency_in_progress", []string{"ErrConflict", "ErrInProgress", "ErrOutcomeUnknown"}},
		{"keyed", 409, "other", []string{"ErrConflict"}},
		{"keyed", 400, "idempotency_in_progress", []string{"ErrInvalidRequest"}},
		{"idempotent", 409, "idempotency_in_progress", []string{"ErrConflict"}},
		{"keyed", 422, "idempotency_key_reused", []string{"ErrKeyReused"}},
		{"keyed", 409, "idempotency_key_reused", []string{"ErrConflict"}},
		{"keyed", 422, "other", []string{"ErrInvalidRequest"}},
	} {
		d := onStage(t, playing(act{Status: test.status, Body: `{"code":"` + test.code + `"}`}), resilience.WithoutRetry())
		err := callThing(t.Context(), d, opOf(test.safety))
		t.Run(fmt.Sprint(test.safety, test.status, test.code), func(t *testing.T) { isExactly(t, err, test.is...) })
	}
}
