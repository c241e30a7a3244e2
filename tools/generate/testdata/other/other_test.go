// Package other_test calls the client that was generated from other.yaml. The
// test of the generator copies it into a module of its own.
package other_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.test/consumer/other"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// carrier answers every request alike and remembers what it was asked.
type carrier struct {
	status      int
	contentType string
	body        string
	failures    int // answers 503 to so many requests first

	requests []*http.Request
	bodies   []string
}

func (c *carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.requests = append(c.requests, r)
	c.bodies = append(c.bodies, string(body))
	if len(c.requests) <= c.failures {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if c.contentType != "" {
		w.Header().Set("Content-Type", c.contentType)
	}
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, c.body)
}

func start(t *testing.T, c *carrier, opts ...resilience.Option) *other.Client {
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	opts = append([]resilience.Option{
		resilience.WithCredential("Authorization", "Bearer secret"),
		resilience.WithRetry(resilience.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}),
	}, opts...)
	client, err := other.New(server.URL+"/api/rest/v2", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func order() other.LabelOrder {
	o := other.LabelOrder{
		Ref:    "r1",
		To:     other.LabelOrder_To{Code: "1234"},
		Sizes:  []other.Size{{W: 1.5, H: 10}},
		Option: other.OptionNew,
	}
	if err := o.Where.FromHome(other.Home{Street: "Main"}); err != nil {
		panic(err)
	}
	return o
}

func TestCalls(t *testing.T) {
	at := resilience.ParseTime("2026-03-04")
	stream := func(s *resilience.Stream, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(s)
		return string(data), errors.Join(err, s.Close())
	}
	type result struct {
		v   any
		err error
	}
	got := func(v any, err error) result { return result{v, err} }
	cases := []struct {
		name    string
		call    func(context.Context, *other.Client) result
		answer  carrier
		request string            // method and URI
		headers map[string]string // "" for none
		body    string
		want    string // the result as JSON
	}{
		{
			name: "JSON body and answer, parameters with a space, media type with a parameter",
			call: func(ctx context.Context, c *other.Client) result {
				return got(c.BuyLabel(ctx, other.BuyLabelParams{DryRun: new(true)}, order()))
			},
			answer:  carrier{status: 200, contentType: "application/json", body: `{"labelNo":7,"option":"newer","at":"2026-03-04 10:00"}`},
			request: "POST /api/rest/v2/labels?dry+run=true",
			headers: map[string]string{"Content-Type": "application/json", "Authorization": "Bearer secret"},
			body:    `{"option":"new","ref":"r1","sizes":[{"h":10,"w":1.5}],"to":{"code":"1234"},"where":{"street":"Main"}}`,
			want:    `{"at":"2026-03-04 10:00","labelNo":7,"option":"newer"}`,
		},
		{
			name:    "integer in the path, an answer that stands elsewhere",
			call:    func(ctx context.Context, c *other.Client) result { return got(c.GetLabel(ctx, 7)) },
			answer:  carrier{status: 200, contentType: "application/json", body: `{"labelNo":7}`},
			request: "GET /api/rest/v2/labels/7",
			headers: map[string]string{"X-Request-Token": "", "Content-Type": ""},
			want:    `{"labelNo":7}`,
		},
		{
			name:    "no content",
			call:    func(ctx context.Context, c *other.Client) result { return got(nil, c.VoidLabel(ctx, 7)) },
			answer:  carrier{status: 204},
			request: "DELETE /api/rest/v2/labels/7",
			want:    `null`,
		},
		{
			name: "a list and an object in the path",
			call: func(ctx context.Context, c *other.Client) result {
				return got(nil, c.DepotsNear(ctx, []int{1, 2}, other.Size{W: 1.5, H: 5}))
			},
			answer:  carrier{status: 204},
			request: "GET /api/rest/v2/depots/1%2C2/near/h%3D5%2Cw%3D1.5",
			want:    `null`,
		},
		{
			name: "stream by its media types, two parameters in one segment",
			call: func(ctx context.Context, c *other.Client) result {
				return got(stream(c.LabelPage(ctx, 7, 1<<40, other.LabelPageParamsTypePng)))
			},
			answer:  carrier{status: 200, contentType: "image/png", body: "PNG"},
			request: "GET /api/rest/v2/labels/7/pages/1099511627776.png",
			want:    `"PNG"`,
		},
		{
			name:    "stream of lines",
			call:    func(ctx context.Context, c *other.Client) result { return got(stream(c.Events(ctx))) },
			answer:  carrier{status: 200, contentType: "application/x-ndjson", body: "{}\n{}\n"},
			request: "GET /api/rest/v2/events",
			want:    `"{}\n{}\n"`,
		},
		{
			name: "parameters of every style",
			call: func(ctx context.Context, c *other.Client) result {
				return got(c.ListDepots(ctx, other.ListDepotsParams{
					Country: "TR",
					Tag:     []string{"a b", "c"},
					ID:      []int{1, 2},
					Area:    []string{"n", "s"},
					Near:    &other.ListDepotsParams_Near{Lat: new(41.5)},
					OpenAt:  &at,
					Day:     new("2026-03-04"),
					Kind:    new(other.DepotKindShop),
					Limit:   new(5),
					Filter:  map[string]string{"k": "v"},
					XTenant: new("t1"),
					Session: new("s1"),
				}))
			},
			answer: carrier{status: 200, contentType: "application/json", body: `[{"id":1,"kind":"new"},{}]`},
			request: "GET /api/rest/v2/depots?tag=a+b&tag=c&id=1,2&area=n|s&near[lat]=41.5&openAt=2026-03-04T00%3A00%3A00Z" +
				"&day=2026-03-04&country=TR&kind=shop&limit=5&filter=%7B%22k%22%3A%22v%22%7D",
			headers: map[string]string{"X-Tenant": "t1", "Cookie": "session=s1"},
			want:    `[{"id":1,"kind":"new"},{}]`,
		},
		{
			name: "only what is required",
			call: func(ctx context.Context, c *other.Client) result {
				return got(c.ListDepots(ctx, other.ListDepotsParams{Country: "TR"}))
			},
			answer:  carrier{status: 200, contentType: "application/json", body: `[]`},
			request: "GET /api/rest/v2/depots?country=TR",
			headers: map[string]string{"X-Tenant": "", "Cookie": ""},
			want:    `[]`,
		},
		{
			name:    "map",
			call:    func(ctx context.Context, c *other.Client) result { return got(c.Prices(ctx)) },
			answer:  carrier{status: 200, contentType: "application/json", body: `{"fast":9.5}`},
			request: "GET /api/rest/v2/prices",
			want:    `{"fast":9.5}`,
		},
		{
			name:    "string",
			call:    func(ctx context.Context, c *other.Client) result { return got(c.Version(ctx)) },
			answer:  carrier{status: 200, contentType: "application/json", body: `"2.1"`},
			request: "GET /api/rest/v2/version",
			want:    `"2.1"`,
		},
		{
			name: "form",
			call: func(ctx context.Context, c *other.Client) result {
				return got(c.Login(ctx, other.LoginFormdataBody{User: "u", Secret: "a&b"}))
			},
			answer:  carrier{status: 200, contentType: "application/json", body: `{"token":"t"}`},
			request: "POST /api/rest/v2/login",
			headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
			body:    "secret=a%26b&user=u",
			want:    `{"token":"t"}`,
		},
		{
			name: "text both ways, a path parameter called body",
			call: func(ctx context.Context, c *other.Client) result {
				r, err := c.AddNote(ctx, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "hello")
				if err != nil {
					return got(nil, err)
				}
				return got(string(r.Body), nil)
			},
			answer:  carrier{status: 200, contentType: "text/plain; charset=utf-8", body: "hello"},
			request: "POST /api/rest/v2/notes/6ba7b810-9dad-11d1-80b4-00c04fd430c8",
			headers: map[string]string{"Content-Type": "text/plain"},
			body:    "hello",
			want:    `"hello"`,
		},
		{
			name: "raw body, a second success",
			call: func(ctx context.Context, c *other.Client) result {
				return got(nil, c.PutBlob(ctx, "my file", []byte{0, 1}))
			},
			answer:  carrier{status: 204},
			request: "PUT /api/rest/v2/blobs/my%20file",
			headers: map[string]string{"Content-Type": "application/octet-stream"},
			body:    "\x00\x01",
			want:    `null`,
		},
		{
			name: "optional body that is there",
			call: func(ctx context.Context, c *other.Client) result {
				return got(nil, c.Ping(ctx, &other.Ping{N: new(3)}))
			},
			answer:  carrier{status: 202},
			request: "POST /api/rest/v2/ping",
			headers: map[string]string{"Content-Type": "application/json"},
			body:    `{"n":3}`,
			want:    `null`,
		},
		{
			name:    "optional body that is not",
			call:    func(ctx context.Context, c *other.Client) result { return got(nil, c.Ping(ctx, nil)) },
			answer:  carrier{status: 202},
			request: "POST /api/rest/v2/ping",
			headers: map[string]string{"Content-Type": ""},
			want:    `null`,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			served := tc.answer
			r := tc.call(t.Context(), start(t, &served))
			if r.err != nil {
				t.Fatal(r.err)
			}
			if have, err := json.Marshal(r.v); err != nil || string(have) != tc.want {
				t.Errorf("result is %s (%v), want %s", have, err, tc.want)
			}
			if len(served.requests) != 1 {
				t.Fatalf("%d requests, want 1", len(served.requests))
			}
			request := served.requests[0]
			if have := request.Method + " " + request.RequestURI; have != tc.request {
				t.Errorf("request is\n%s, want\n%s", have, tc.request)
			}
			if served.bodies[0] != tc.body {
				t.Errorf("body is %q, want %q", served.bodies[0], tc.body)
			}
			for name, want := range tc.headers {
				if have := request.Header.Get(name); have != want {
					t.Errorf("%s is %q, want %q", name, have, want)
				}
			}
		})
	}
}

func TestOneKeyForAllAttempts(t *testing.T) {
	served := carrier{status: 200, contentType: "application/json", body: `{}`, failures: 2}
	client := start(t, &served)
	if _, err := client.BuyLabel(t.Context(), other.BuyLabelParams{}, order(), resilience.WithIdempotencyKey("k1")); err != nil {
		t.Fatal(err)
	}
	if len(served.requests) != 3 {
		t.Fatalf("%d requests, want 3", len(served.requests))
	}
	for i, r := range served.requests {
		if have := r.Header.Values("X-Request-Token"); len(have) != 1 || have[0] != "k1" {
			t.Errorf("key of attempt %d is %q, want k1", i+1, have)
		}
		if served.bodies[i] != served.bodies[0] {
			t.Errorf("attempt %d has another body", i+1)
		}
	}
}

func TestUnsafeIsNotRepeated(t *testing.T) {
	served := carrier{failures: 3}
	_, err := start(t, &served).Login(t.Context(), other.LoginFormdataBody{User: "u", Secret: "s"})
	if !errors.Is(err, resilience.ErrUnavailable) || !errors.Is(err, resilience.ErrOutcomeUnknown) {
		t.Errorf("error is %v", err)
	}
	if len(served.requests) != 1 {
		t.Errorf("%d requests, want 1", len(served.requests))
	}
	for name := range served.requests[0].Header {
		if strings.Contains(strings.ToLower(name), "token") || strings.Contains(strings.ToLower(name), "idempotency") {
			t.Errorf("a login carries %s", name)
		}
	}
}

func TestNotReady(t *testing.T) {
	served := carrier{status: 202}
	if _, err := start(t, &served).LabelPage(t.Context(), 1, 1, other.LabelPageParamsTypePdf); !errors.Is(err, resilience.ErrNotReady) {
		t.Errorf("error is %v, want ErrNotReady", err)
	}
}

func TestRefusedBeforeSending(t *testing.T) {
	bad := order()
	bad.Ref = "too long by far"
	bad.To.Code = "12x"
	bad.To.OldCode = new("")
	bad.Sizes = []other.Size{{W: 0, H: 7}, {W: 121, H: 5}, {W: 121, H: 5}}
	bad.Option = "newest"
	bad.Later = new(other.LabelOrderLater("y")) // may grow: x-extensible-enum
	bad.Where = other.LabelOrder_Where{}
	bad.Marks = map[string]string{"a/b": "four"}
	bad.Grid = [][]string{{"a"}, {"b", "c"}}
	bad.Day = new("4 March")
	bad.Note = new("ünüçö")
	bad.At = new(resilience.ParseTime("soon"))
	fits := order()
	fits.Note = new("ünüç")
	zero := resilience.Time{}
	cases := []struct {
		name string
		call func(context.Context, *other.Client) error
		want []string // pointer and rule
	}{
		{"everything at once", func(ctx context.Context, c *other.Client) error {
			_, err := c.BuyLabel(ctx, other.BuyLabelParams{}, bad)
			return err
		}, []string{
			"/at format", "/day format", "/grid/1/1 pattern", "/marks/a~1b maxLength", "/note maxLength", "/option enum", "/ref maxLength",
			"/sizes maxItems", "/sizes uniqueItems", "/sizes/0/h multipleOf", "/sizes/0/w exclusiveMinimum",
			"/sizes/1/w maximum", "/sizes/2/w maximum", "/to/code pattern", "/to/old~1code~0 pattern", "/where oneOf",
		}},
		{"nothing given", func(ctx context.Context, c *other.Client) error {
			_, err := c.BuyLabel(ctx, other.BuyLabelParams{}, other.LabelOrder{})
			return err
		}, []string{"/ref required", "/sizes required", "/to/code pattern", "/where oneOf"}},
		{"integers in a path", func(ctx context.Context, c *other.Client) error {
			_, err := c.LabelPage(ctx, -1, 0, "gif")
			return err
		}, []string{"labelNo minimum", "page minimum", "type enum"}},
		{"path", func(ctx context.Context, c *other.Client) error { return c.PutBlob(ctx, "..", nil) }, []string{"name path"}},
		{"pattern of a path", func(ctx context.Context, c *other.Client) error { return c.PutBlob(ctx, "A", nil) }, []string{"name pattern"}},
		{"parameters", func(ctx context.Context, c *other.Client) error {
			_, err := c.ListDepots(ctx, other.ListDepotsParams{
				Tag: make([]string, 4), OpenAt: &zero, Limit: new(51), Kind: new(other.DepotKind("x")), XTenant: new("a\r\nb"),
			})
			return err
		}, []string{"X-Tenant header", "country required", "kind enum", "limit maximum", "openAt format", "tag maxItems"}},
		{"form", func(ctx context.Context, c *other.Client) error {
			_, err := c.Login(ctx, other.LoginFormdataBody{User: "u"})
			return err
		}, []string{"/secret required"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			served := carrier{status: 200}
			err := tc.call(t.Context(), start(t, &served))
			if !errors.Is(err, resilience.ErrInvalidRequest) {
				t.Fatalf("error is %v, want ErrInvalidRequest", err)
			}
			var faults resilience.FieldErrors
			if !errors.As(err, &faults) {
				t.Fatalf("no FieldErrors in %#v", err)
			}
			have := map[string]bool{}
			for _, f := range faults {
				have[f.Pointer+" "+f.Rule] = true
				if strings.Contains(f.Message, "far") || strings.Contains(f.Message, "12x") || strings.Contains(f.Message, "newest") {
					t.Errorf("%q repeats the value", f.Message)
				}
			}
			for _, want := range tc.want {
				if !have[want] {
					t.Errorf("nothing says %q", want)
				}
				delete(have, want)
			}
			for extra := range have {
				t.Errorf("unexpected: %q", extra)
			}
			if len(served.requests) != 0 {
				t.Error("something was sent")
			}
		})
	}
	if err := fits.Validate(); err != nil {
		t.Errorf("characters are not bytes: %v", err)
	}
}
