package resilience_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type problemCase struct {
	Name
	Status      int                 `json:"status"`      // default 400
	ContentType string              `json:"contentType"` // default application/problem+json
	JSON        json.RawMessage     `json:"json"`
	Body        *string             `json:"body"` // in place of json
	Want        *resilience.Problem `json:"want"`
	Extensions  map[string]string   `json:"extensions"`
	Shape       bool                `json:"shape"` // of another carrier: everything is an extension
}

func (c problemCase) act() act {
	a := act{Status: c.Status, Header: http.Header{}}
	if a.Status == 0 {
		a.Status = 400
	}
	switch c.ContentType {
	case "":
	case "-":
		a.Untyped = true
	default:
		a.Header.Set("Content-Type", c.ContentType)
	}
	if c.Body != nil {
		a.Body = *c.Body
	} else {
		var compact bytes.Buffer
		_ = json.Compact(&compact, c.JSON)
		a.Body = compact.String()
	}
	return a
}

func TestProblems(t *testing.T) {
	for _, c := range casesOf[problemCase](t, "problems.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			a := c.act()
			err := callThing(t.Context(), onStage(t, playing(a), resilience.WithoutRetry()), opOf("read"))
			e := errorOf(t, err)
			if e.StatusCode != a.Status || string(e.Body) != a.Body {
				t.Errorf("the answer is %d %q, want %d %q", e.StatusCode, e.Body, a.Status, a.Body)
			}
			if c.Want == nil {
				if e.Problem != nil {
					t.Errorf("got %+v, want none", e.Problem)
				}
				return
			}
			if e.Problem == nil {
				t.Fatal("there is no problem")
			}
			got := *e.Problem
			extensions := map[string]string{}
			for name, raw := range got.Extensions {
				extensions[name] = string(raw)
			}
			got.Extensions = nil
			if !reflect.DeepEqual(got, *c.Want) {
				t.Errorf("got\n%+v, want\n%+v", got, *c.Want)
			}
			want := c.Extensions
			if c.Shape {
				var all map[string]json.RawMessage
				if err := json.Unmarshal([]byte(a.Body), &all); err != nil {
					t.Fatal(err)
				}
				want = map[string]string{}
				for name, raw := range all {
					want[name] = string(raw)
				}
			}
			if len(extensions) != len(want) || len(want) > 0 && !reflect.DeepEqual(extensions, want) {
				t.Errorf("extensions %v, want %v", extensions, want)
			}
			if e.RequestID != got.RequestID {
				t.Errorf("RequestID %q, want that of the problem, %q", e.RequestID, got.RequestID)
			}
		})
	}
}

// A body is read for problem details up to 64 KiB, and kept up to 4 KiB.
func TestProblemSizes(t *testing.T) {
	for _, test := range []struct {
		size  int
		known bool
	}{{64 << 10, true}, {64<<10 + 1, false}, {1 << 20, false}} {
		body := `{"code":"x","fill":"`
		body += strings.Repeat("a", test.size-len(body)-2) + `"}`
		e := errorOf(t, callThing(t.Context(), onStage(t, playing(act{Status: 400, Body: body})), opOf("read")))
		if (e.Problem != nil) != test.known || string(e.Body) != body[:4<<10] {
			t.Errorf("%d bytes: problem %v, %d bytes kept", test.size, e.Problem != nil, len(e.Body))
		}
		isExactly(t, e, "ErrInvalidRequest")
	}
}

// The id of a request, wherever the carrier puts it.
func TestRequestID(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, test := range []struct {
		name   string
		header http.Header
		body   string
		want   string
	}{
		{"X-Request-Id", http.Header{"X-Request-Id": {"a"}}, "", "a"},
		{"Request-Id", http.Header{"Request-Id": {"a"}}, "", "a"},
		{"Amazon", http.Header{"X-Amzn-Requestid": {"a"}}, "", "a"},
		{"DHL", http.Header{"Correlation-Id": {"a"}}, "", "a"},
		{"X-Correlation-Id", http.Header{"X-Correlation-Id": {"a"}}, "", "a"},
		{"UPS", http.Header{"Transid": {"a"}}, "", "a"},
		{"the first of several", http.Header{"X-Request-Id": {"a"}, "Request-Id": {"b"}}, `{"requestId":"c"}`, "a"},
		{"the body's", nil, `{"requestId":"c"}`, "c"},
		{"none", nil, `{}`, ""},
		{"too long", http.Header{"X-Request-Id": {long}}, "", long[:128]},
		{"too long in the body", nil, `{"requestId":"` + long + `"}`, long[:128]},
		{"not printable", nil, `{"requestId":"a\n\u001b[31mb\u0085é"}`, "a[31mb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var info resilience.CallInfo
			e := errorOf(t, callThing(t.Context(), onStage(t, playing(act{Status: 404, Header: test.header, Body: test.body})), opOf("read"), resilience.WithCallInfo(&info)))
			if e.RequestID != test.want || info.RequestID != test.want {
				t.Errorf("%q on the error, %q in info, want %q", e.RequestID, info.RequestID, test.want)
			}
			if test.want != "" && !strings.HasSuffix(e.Error(), "(1 attempt, request "+test.want+")") {
				t.Errorf("the text is %q", e)
			}
		})
	}
}

// Only a code that looks like one gets into a text.
func TestCodesInTexts(t *testing.T) {
	for code, want := range map[string]string{
		"tracking_not_found":    "getThing: 404 Not Found (tracking_not_found) (1 attempt)",
		"A.B:c-9":               "getThing: 404 Not Found (A.B:c-9) (1 attempt)",
		"two words":             "getThing: 404 Not Found (1 attempt)",
		"a\nb":                  "getThing: 404 Not Found (1 attempt)",
		strings.Repeat("x", 64): "getThing: 404 Not Found (" + strings.Repeat("x", 64) + ") (1 attempt)",
		strings.Repeat("x", 65): "getThing: 404 Not Found (1 attempt)",
	} {
		body, _ := json.Marshal(map[string]string{"code": code})
		err := callThing(t.Context(), onStage(t, playing(act{Status: 404, Body: string(body)})), opOf("read"))
		if err.Error() != want {
			t.Errorf("%q: the text is %q, want %q", code, err, want)
		}
	}
}

// Members that are all known leave no extensions.
func TestProblemWithoutExtensions(t *testing.T) {
	for body, want := range map[string]bool{
		`{"type":"x","title":"x","status":400,"detail":"x","instance":"x","code":"x","requestId":"x"}`: false,
		`{"title":"x","hint":1}`: true,
	} {
		d := onStage(t, playing(act{Status: 400, Body: body}))
		if p := errorOf(t, callThing(t.Context(), d, opOf("read"))).Problem; p == nil || (p.Extensions != nil) != want {
			t.Errorf("%s: %+v, want extensions: %v", body, p, want)
		}
	}
}

// A name that says nothing gives way to the next, and a nearer place to one further in.
func TestProblemMembersThatSayNothing(t *testing.T) {
	for body, want := range map[string]resilience.Problem{
		`{"error":{"code":"","error_code":"E1"}}`:   {Code: "E1"},
		`{"error":{"code":null,"error_code":"E1"}}`: {Code: "E1"},
		`{"error":{"code":[],"error_code":17}}`:     {Code: "17"},
		`{"title":"x","errors":[{"field":"/a","source":{"pointer":"/b"}},{"source":{"pointer":"/c"}},{"code":"d"}]}`: {
			Title: "x", Errors: []resilience.ProblemError{{Pointer: "/a"}, {Pointer: "/c"}, {Code: "d"}},
		},
	} {
		got := errorOf(t, callThing(t.Context(), onStage(t, playing(act{Status: 400, Body: body, Header: http.Header{"Content-Type": {"application/json"}}})), opOf("read"))).Problem
		if got == nil || got.Code != want.Code || got.Title != want.Title || !slices.Equal(got.Errors, want.Errors) {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}
