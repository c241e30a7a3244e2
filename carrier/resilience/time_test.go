package resilience_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type timeCase struct {
	Name
	Text string     `json:"text"`
	Time *time.Time `json:"time"` // null: no moment can be read
	Zone bool       `json:"zone"`
}

// Times as carriers write them, through every way in and out.
func TestTimes(t *testing.T) {
	for _, c := range casesOf[timeCase](t, "times.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			quoted, err := json.Marshal(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			var fromJSON, fromText resilience.Time
			if err := json.Unmarshal(quoted, &fromJSON); err != nil {
				t.Fatal(err)
			}
			if err := fromText.UnmarshalText([]byte(c.Text)); err != nil {
				t.Fatal(err)
			}
			var bound resilience.Time
			if err := bound.Bind(c.Text); err != nil {
				t.Fatal(err)
			}
			for way, got := range map[string]resilience.Time{"ParseTime": resilience.ParseTime(c.Text), "JSON": fromJSON, "text": fromText, "Bind": bound} {
				if c.Time == nil {
					if !got.IsZero() || !got.Time().IsZero() {
						t.Errorf("%s: %v, want no moment", way, got.Time())
					}
				} else if got.IsZero() || !got.Time().Equal(*c.Time) {
					t.Errorf("%s: %v, want %v", way, got.Time(), c.Time)
				}
				if got.HasZone() != c.Zone || got.Raw() != c.Text || got.String() != c.Text {
					t.Errorf("%s: zone %v, raw %q; want %v, %q", way, got.HasZone(), got.Raw(), c.Zone, c.Text)
				}
				if !got.HasZone() && got.Time().Location() != time.UTC {
					t.Errorf("%s: a time without zone is in %v", way, got.Time().Location())
				}
				text, err := got.MarshalText()
				if err != nil || string(text) != c.Text {
					t.Errorf("%s: goes out as text %q, %v", way, text, err)
				}
				out, err := json.Marshal(got)
				want := string(quoted)
				if c.Text == "" {
					want = "null"
				}
				if err != nil || string(out) != want {
					t.Errorf("%s: goes out as JSON %s, %v; want %s", way, out, err, want)
				}
			}
		})
	}
}

// JSON that is no string at all.
func TestTimesThatAreNoStrings(t *testing.T) {
	for in, want := range map[string]struct {
		unix int64 // 0: no moment
		raw  string
		out  string
	}{
		"null":                    {0, "", "null"},
		"1795975200":              {1795975200, "1795975200", `"1795975200"`},
		"1000000000":              {1000000000, "1000000000", `"1000000000"`},
		"9999999999":              {9999999999, "9999999999", `"9999999999"`},
		"999999999":               {0, "999999999", `"999999999"`},
		"10000000000":             {0, "10000000000", `"10000000000"`},
		"1795975200000":           {0, "1795975200000", `"1795975200000"`},
		"20261128":                {0, "20261128", `"20261128"`},
		"-1795975200":             {0, "-1795975200", `"-1795975200"`},
		"1795975200.5":            {0, "1795975200.5", `"1795975200.5"`},
		"true":                    {0, "true", `"true"`},
		"{}":                      {0, "{}", `"{}"`},
		`["2026-11-28"]`:          {0, `["2026-11-28"]`, `"[\"2026-11-28\"]"`},
		`"2026-11-28T10\u003a00"`: {1795860000, "2026-11-28T10:00", `"2026-11-28T10:00"`},
	} {
		v := struct{ T resilience.Time }{resilience.ParseTime("2020-01-01")}
		if err := json.Unmarshal([]byte(`{"T":`+in+`}`), &v); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if want.unix == 0 && !v.T.IsZero() || want.unix != 0 && v.T.Time().Unix() != want.unix || v.T.Raw() != want.raw {
			t.Errorf("%s: %v, raw %q; want %d, %q", in, v.T.Time(), v.T.Raw(), want.unix, want.raw)
		}
		if want.unix != 0 && v.T.HasZone() != !strings.Contains(in, "T") {
			t.Errorf("%s: zone %v", in, v.T.HasZone())
		}
		if out, err := json.Marshal(v.T); err != nil || string(out) != want.out {
			t.Errorf("%s: goes out as %s, %v; want %s", in, out, err, want.out)
		}
	}
	// Called directly, with what json would not hand over.
	for _, in := range []string{"", " ", `"`, `"a`, `"\q"`, "nul"} {
		var got resilience.Time
		if err := got.UnmarshalJSON([]byte(in)); err != nil || !got.IsZero() {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}

func TestNewTime(t *testing.T) {
	at := time.Date(2026, 11, 28, 10, 0, 0, 500, time.FixedZone("", 3*3600))
	got := resilience.NewTime(at)
	const want = "2026-11-28T10:00:00.0000005+03:00"
	if got.Raw() != want || fmt.Sprint(got) != want || !got.HasZone() || got.IsZero() || !got.Time().Equal(at) {
		t.Errorf("got %q, zone %v", got.Raw(), got.HasZone())
	}
	if out, err := json.Marshal(got); err != nil || string(out) != `"`+want+`"` {
		t.Errorf("goes out as %s, %v", out, err)
	}
	for _, none := range []resilience.Time{resilience.NewTime(time.Time{}), {}} {
		if out, err := json.Marshal(none); err != nil || string(out) != "null" || !none.IsZero() || none.HasZone() || none.Raw() != "" {
			t.Errorf("no time goes out as %s, %v; zone %v, raw %q", out, err, none.HasZone(), none.Raw())
		}
	}
}

type segmentCase struct {
	Name
	Value   string `json:"value"`
	Segment string `json:"segment"`
	Error   string `json:"error"`
}

func TestPathSegments(t *testing.T) {
	for _, c := range casesOf[segmentCase](t, "segments.json") {
		got, err := resilience.PathSegment("trackingNumber", c.Value)
		if c.Error == "" {
			if err != nil || got != c.Segment {
				t.Errorf("%s: %q, %v; want %q", c.Name.Name, got, err, c.Segment)
			}
			continue
		}
		var fields resilience.FieldErrors
		if got != "" || !errors.As(err, &fields) || len(fields) != 1 || fields[0].Pointer != "trackingNumber" || fields[0].Rule != "path" || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: %q, %v; want an error of trackingNumber with %q", c.Name.Name, got, err, c.Error)
		}
		isExactly(t, err, "ErrInvalidRequest")
		if len(c.Value) > 2 && strings.Contains(err.Error(), c.Value) {
			t.Errorf("%s: the error repeats the value: %v", c.Name.Name, err)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	var none resilience.FieldErrors
	if none.Err() != nil {
		t.Errorf("nothing was added: %v", none.Err())
	}
	var e resilience.FieldErrors
	for i := range 5 {
		e.Add(resilience.Index("/parcels", i)+"/weight", "minimum", "must be above 0")
		want := strings.Repeat("/parcels/%d/weight: must be above 0; ", min(i+1, 3))
		want = strings.TrimSuffix(want, "; ")
		want = fmt.Sprintf(want, []any{0, 1, 2}[:min(i+1, 3)]...)
		if i >= 3 {
			want += fmt.Sprintf("; and %d more", i-2)
		}
		if e.Error() != want {
			t.Errorf("%d: %q, want %q", i+1, e.Error(), want)
		}
	}
	err := e.Err()
	isExactly(t, err, "ErrInvalidRequest")
	refused := resilience.Refuse(opOf("keyed"), err)
	isExactly(t, refused, "ErrInvalidRequest")
	var found resilience.FieldErrors
	if !errors.As(refused, &found) || len(found) != 5 || found[4] != (resilience.FieldError{Pointer: "/parcels/4/weight", Rule: "minimum", Message: "must be above 0"}) {
		t.Errorf("found %v", found)
	}
	if got := errorOf(t, refused); got.Operation != "makeThing" || got.Outcome != resilience.OutcomeNotSent || !strings.HasPrefix(got.Error(), "makeThing: invalid request: /parcels/0/weight: must be above 0; ") {
		t.Errorf("refused: %v", got)
	}
	if got := errorOf(t, resilience.Refuse(nil, err)); got.Operation != "" || !strings.HasPrefix(got.Error(), "invalid request: ") {
		t.Errorf("refused without operation: %v", got)
	}
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		expr, s string
		want    bool
	}{
		{"^[A-Z]{2}$", "TR", true},
		{"^[A-Z]{2}$", "TRX", false},
		{"[0-9]", "a1b", true}, // not anchored, as in JSON Schema
		{"[0-9]", "ab", false},
		{"", "anything", true},
		{"(?<!a)b", "ab", true}, // RE2 does not know it: it refuses nothing
		{"[", "x", true},
	} {
		p := resilience.NewPattern(test.expr)
		for range 2 {
			if got := p.Match(test.s); got != test.want {
				t.Errorf("%q matches %q: %v, want %v", test.expr, test.s, got, test.want)
			}
		}
	}
}
