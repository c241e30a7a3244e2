package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// verdictOf runs a test of a server and returns what it fails with at its end.
func verdictOf(t *testing.T, test func(a api), opts ...mockcarrier.Option) string {
	t.Helper()
	tb := &recordingTB{}
	a := newAPI(mockcarrier.StartInMemory(tb, opts...))
	test(a)
	tb.finish()
	return strings.Join(tb.errors, "\n")
}

func TestExpectations(t *testing.T) {
	create := func(a api, references ...string) {
		for _, r := range references {
			_, _ = a.try("POST", "/shipments", orderFor(r), "Idempotency-Key", fmt.Sprint(r, len(a.Requests())))
		}
	}
	track := func(a api, numbers ...string) {
		for _, n := range numbers {
			_, _ = a.try("GET", "/tracking/"+n, "")
		}
	}
	for name, tc := range map[string]struct {
		opts []mockcarrier.Option
		test func(a api)
		want string // all of the failure; "" if the test passes
	}{
		"once": {test: func(a api) {
			a.Expect("createShipment")
			create(a, "order-1")
		}},
		"other operations may come": {test: func(a api) {
			a.Expect("createShipment")
			track(a, "BK1001TR")
			create(a, "order-1")
		}},
		"never came": {
			test: func(a api) { a.Expect("createShipment") },
			want: `mockcarrier: 1 expectation was not met:
  expected        with     wanted  came
  createShipment  nothing  1       0`,
		},
		"too rarely": {
			test: func(a api) {
				a.Expect("createShipment").With(mockcarrier.Body("/reference", "order-1")).Times(3)
				a.Expect("getTracking").AtLeast(2)
				create(a, "order-1", "order-1")
				track(a, "BK1001TR")
			},
			want: `mockcarrier: 2 expectations were not met:
  expected        with                         wanted      came
  createShipment  body /reference = "order-1"  3           2
  getTracking     nothing                      at least 2  1`,
		},
		"too often": {
			test: func(a api) {
				a.Expect("getTracking").Times(1)
				track(a, "BK1001TR", "BK1002TR")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation    method  path                   why
  2  getTracking  GET     /v1/tracking/BK1002TR  getTracking: it has had 1 already`,
		},
		"as often as may be": {test: func(a api) {
			a.Expect("getTracking").AtMost(2)
			a.Expect("createShipment").AnyTimes()
			track(a, "BK1001TR", "BK1002TR")
		}},
		"never": {
			test: func(a api) {
				a.Expect("createShipment").Times(0)
				create(a, "order-1")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation       method  path           why
  1  createShipment  POST    /v1/shipments  createShipment: it has had 0 already`,
		},
		"nearly": {
			test: func(a api) {
				a.Expect("createShipment").With(
					mockcarrier.Body("/reference", "order-1"), mockcarrier.Body("/service", "standard"),
					mockcarrier.Header("Prefer", mockcarrier.Absent))
				create(a, "order-2")
			},
			want: `mockcarrier: 1 expectation was not met:
  expected        with                                                                       wanted  came
  createShipment  body /reference = "order-1", body /service = "standard", no header Prefer  1       0
  nearest to createShipment with body /reference = "order-1", body /service = "standard", no header Prefer: request 1, POST /v1/shipments
    ✓ operation createShipment
    ✗ body /reference: got "order-2", want "order-1"
    ✓ body /service "standard"
    ✓ header Prefer nothing
mockcarrier: 1 request was not expected:
  #  operation       method  path           why
  1  createShipment  POST    /v1/shipments  it is like none that is expected`,
		},
		"the whole body": {
			test: func(a api) {
				want := shipmentRequest()
				want.Parcels[0].Weight.Value = 2
				want.To.Line2 = new("c/o Park")
				want.Parcels = append(want.Parcels, want.Parcels[0])
				a.Expect("createShipment").With(mockcarrier.Body("", want))
				_, _ = a.try("POST", "/shipments", strings.Replace(order, `{"ref`, `{"customs":{},"ref`, 1), "Idempotency-Key", "k")
			},
			want: `mockcarrier: 1 expectation was not met:
  expected        with                                                                  wanted  came
  createShipment  body = {"from":{"city":"Istanbul","country":"TR","line1":"1 Main St…  1       0
  nearest to createShipment with body = {"from":{"city":"Istanbul","country":"TR","line1":"1 Main St…: request 1, POST /v1/shipments
    ✓ operation createShipment
    ✗ body differs:
        /parcels/0/weight/value: got 1.2, want 2
        /parcels/1: got nothing, want {"weight":{"unit":"kg","value":2}}
        /to/line2: got nothing, want "c/o Park"
        /customs: got {}, want nothing
mockcarrier: 1 request was not expected:
  #  operation       method  path           why
  1  createShipment  POST    /v1/shipments  it is like none that is expected`,
		},
		"the nearest of two": {
			test: func(a api) {
				want := shipmentRequest()
				want.Parcels[0].Weight.Value = 2
				want.To.Line1 = "13 Park Avenue"
				a.Expect("createShipment").With(mockcarrier.Body("", want)).AtMost(1)
				a.Expect("createShipment").With(mockcarrier.BodyIncludes(map[string]any{"service": "express"})).AtMost(1)
				create(a, "order-1001")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation       method  path           why
  1  createShipment  POST    /v1/shipments  it is like none that is expected
  nearest to request 1: createShipment with body at least {"service":"express"}
    ✓ operation createShipment
    ✗ body differs:
        /service: got "standard", want "express"`,
		},
		"in order": {test: func(a api) {
			mockcarrier.InOrder(
				a.Expect("createShipment"), a.Expect("getTracking").AtLeast(2), a.Expect("getShipment").AtMost(1), a.Expect("cancelShipment"))
			create(a, "order-1")
			track(a, "BK2001TR", "BK2001TR", "BK2001TR")
			_, _ = a.try("POST", "/shipments/shp_2001/cancel", "")
		}},
		"out of order": {
			test: func(a api) {
				mockcarrier.InOrder(a.Expect("createShipment"), a.Expect("getTracking"))
				track(a, "BK1001TR")
				create(a, "order-1")
				track(a, "BK1001TR")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation    method  path                   why
  1  getTracking  GET     /v1/tracking/BK1001TR  getTracking: it comes after createShipment, of which 0 of 1 came`,
		},
		"back to the first of an order": {
			test: func(a api) {
				mockcarrier.InOrder(a.Expect("createShipment").AtLeast(1), a.Expect("getTracking").AnyTimes(), a.Expect("cancelShipment"))
				create(a, "order-1")
				_, _ = a.try("POST", "/shipments/shp_2001/cancel", "")
				create(a, "order-2")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation       method  path           why
  3  createShipment  POST    /v1/shipments  createShipment: it is over, since a later one of its order has begun`,
		},
		"the narrower counts first": {test: func(a api) {
			any := a.Expect("getTracking").Times(2)
			one := a.Expect("getTracking").With(mockcarrier.Parameter("trackingNumber", "BK1001TR"))
			track(a, "BK1001TR", "BK1002TR", "BK1001TR")
			if any.Came() != 2 || one.Came() != 1 {
				t.Errorf("%v: %d, %v: %d", any, any.Came(), one, one.Came())
			}
		}},
		"strict": {
			opts: []mockcarrier.Option{mockcarrier.WithStrict()},
			test: func(a api) {
				a.Expect("getTracking")
				track(a, "BK1001TR")
				_, _ = a.try("GET", "/status", "")
			},
			want: `mockcarrier: 1 request was not expected:
  #  operation  method  path        why
  2  getStatus  GET     /v1/status  none for this operation is expected`,
		},
		"strict, without expectations": {
			opts: []mockcarrier.Option{mockcarrier.WithStrict()},
			test: func(a api) { _, _ = a.try("GET", "/status", "") },
			want: `mockcarrier: 1 request was not expected:
  #  operation  method  path        why
  1  getStatus  GET     /v1/status  none for this operation is expected`,
		},
		"strict, and only what is expected": {
			opts: []mockcarrier.Option{mockcarrier.WithStrict()},
			test: func(a api) {
				a.Expect("getTracking").AnyTimes()
				track(a, "BK1001TR", "BK1001TR")
			},
		},
		"reset": {test: func(a api) {
			a.Expect("getTracking")
			a.Expect("getStatus")
			_, _ = a.try("GET", "/status", "")
			a.Reset()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictOf(t, tc.test, tc.opts...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestMatchers(t *testing.T) {
	for name, tc := range map[string]struct {
		matcher mockcarrier.Matcher
		matches bool
	}{
		"text":                      {mockcarrier.Body("/reference", "order-1001"), true},
		"other text":                {mockcarrier.Body("/reference", "order-1002"), false},
		"number":                    {mockcarrier.Body("/parcels/0/weight/value", 1.20), true},
		"number of another type":    {mockcarrier.Body("/parcels/0/weight/value", json.Number("12e-1")), true},
		"text for a number":         {mockcarrier.Body("/parcels/0/weight/value", "1.2"), false},
		"object":                    {mockcarrier.Body("/parcels/0/weight", carrier.Weight{Value: 1.2, Unit: "kg"}), true},
		"object with less":          {mockcarrier.Body("/parcels/0/weight", map[string]any{"value": 1.2}), false},
		"array":                     {mockcarrier.Body("/parcels", []any{map[string]any{"weight": carrier.Weight{Value: 1.2, Unit: "kg"}}}), true},
		"longer array":              {mockcarrier.Body("/parcels", []any{1, 2}), false},
		"whole body":                {mockcarrier.Body("", json.RawMessage(order)), true},
		"whole body of a type":      {mockcarrier.Body("", shipmentRequest()), true},
		"part of the body":          {mockcarrier.BodyIncludes(map[string]any{"from": map[string]any{"city": "Istanbul"}, "parcels": []any{map[string]any{}}}), true},
		"other part":                {mockcarrier.BodyIncludes(map[string]any{"from": map[string]any{"city": "Ankara"}}), false},
		"part that is not there":    {mockcarrier.BodyIncludes(map[string]any{"customs": nil}), false},
		"present":                   {mockcarrier.Body("/from/city", mockcarrier.Present), true},
		"not present":               {mockcarrier.Body("/customs", mockcarrier.Present), false},
		"absent":                    {mockcarrier.Body("/customs", mockcarrier.Absent), true},
		"no index":                  {mockcarrier.Body("/parcels/1", mockcarrier.Absent), true},
		"null":                      {mockcarrier.Body("/reference", nil), false},
		"like":                      {mockcarrier.Body("/reference", regexp.MustCompile(`^order-\d+$`)), true},
		"not like":                  {mockcarrier.Body("/reference", regexp.MustCompile(`^basket-`)), false},
		"number is not like":        {mockcarrier.Body("/parcels/0/weight/value", regexp.MustCompile(`1`)), false},
		"one of":                    {mockcarrier.Body("/service", mockcarrier.OneOf("express", "standard")), true},
		"none of":                   {mockcarrier.Body("/service", mockcarrier.OneOf("express")), false},
		"header":                    {mockcarrier.Header("idempotency-key", "k"), true},
		"other header":              {mockcarrier.Header("Idempotency-Key", "l"), false},
		"header like":               {mockcarrier.Header("X-Trace", regexp.MustCompile("b")), true},
		"one of the header's lines": {mockcarrier.Header("X-Trace", "b"), true},
		"no header":                 {mockcarrier.Header("X-Other", mockcarrier.Absent), true},
		"parameter":                 {mockcarrier.Parameter("dry", true), true},
		"no parameter":              {mockcarrier.Parameter("wet", mockcarrier.Absent), true},
		"parameter that has to be":  {mockcarrier.Parameter("wet", mockcarrier.Present), false},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(m mockcarrier.Matcher) {
				t.Helper()
				verdict := verdictOf(t, func(a api) {
					a.Expect("createShipment").With(m)
					a.do(t, "POST", "/shipments?dry=true", order, "Idempotency-Key", "k", "X-Trace", "a", "X-Trace", "b").want(t, 201)
				})
				if (verdict == "") != tc.matches {
					t.Errorf("%+v: %s", m, verdict)
				}
			}
			check(tc.matcher)
			// It is the same when it has been JSON.
			data, err := json.Marshal(tc.matcher)
			if err != nil {
				t.Fatal(err)
			}
			var back mockcarrier.Matcher
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			if name != "null" { // which JSON cannot tell from nothing
				check(back)
			}
		})
	}
	yes := true
	for says, m := range map[string]mockcarrier.Matcher{
		"none of parameter, header and body": {In: "trailer", Name: "x", Equals: 1},
		"it has no name":                     {In: mockcarrier.InHeader, Equals: 1},
		"a JSON pointer begins with /":       {In: mockcarrier.InBody, Name: "reference", Equals: 1},
		"it says 0 things":                   {In: mockcarrier.InBody, Name: "/reference"},
		"it says 2 things":                   {In: mockcarrier.InBody, Name: "/reference", Equals: 1, Present: &yes},
		"only a body can include":            {In: mockcarrier.InHeader, Name: "x", Includes: 1},
		"error parsing regexp":               {In: mockcarrier.InHeader, Name: "x", Matches: "("},
		"unsupported type":                   {In: mockcarrier.InBody, Name: "/x", Equals: make(chan int)},
	} {
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", m, err, says)
		}
		mustPanic(t, says, func() { mockcarrier.New().Expect("createShipment").With(m) })
	}
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	f()
}

func TestExpectationsThatMakeNoSense(t *testing.T) {
	c := mockcarrier.New()
	mustPanic(t, "operation", func() { c.Expect("createShipmen") })
	mustPanic(t, "times", func() { c.Expect("createShipment").Times(-1) })
	mustPanic(t, "at most", func() { c.Expect("createShipment").AtMost(-2) })
	mustPanic(t, "two carriers", func() { mockcarrier.InOrder(c.Expect("getStatus"), mockcarrier.New().Expect("getStatus")) })
}

func TestExpectationReports(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	a.Expect("getTracking").With(mockcarrier.Parameter("trackingNumber", "BK1001TR")).Times(1)
	a.Expect("getStatus").AtMost(3)
	a.get(t, "/tracking/BK1001TR").want(t, 200)
	want := []mockcarrier.ExpectationReport{
		{Operation: "getTracking", With: []string{`parameter trackingNumber = "BK1001TR"`}, Wanted: "1", Came: 1, Met: true},
		{Operation: "getStatus", Wanted: "at most 3", Met: true},
	}
	if got := a.Expectations(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if entry := a.Requests()[0]; entry.Expected != `getTracking with parameter trackingNumber = "BK1001TR"` || entry.Unexpected {
		t.Errorf("got %+v", entry)
	}
	if err := a.Verify(); err != nil {
		t.Error(err)
	}
	later := a.Expect("getStatus").With(mockcarrier.Header("X-A", "1"))
	if err := a.Verify(); err == nil || !strings.Contains(err.Error(), "1 expectation was not met") {
		t.Errorf("got %v", err)
	}
	a.get(t, "/status", "X-A", "1").want(t, 200)
	if err := a.Verify(); err != nil || later.Came() != 1 {
		t.Errorf("got %v, %d came", err, later.Came())
	}
}

// Each of many requests at the same time is counted by one expectation.
func TestExpectationsUnderLoad(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithStrict()))
	even := a.Expect("createShipment").With(mockcarrier.Body("/reference", mockcarrier.OneOf("order-0", "order-2"))).Times(40)
	rest := a.Expect("createShipment").Times(40)
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			if _, err := a.try("POST", "/shipments", orderFor(fmt.Sprint("order-", i%4)), "Idempotency-Key", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if even.Came() != 40 || rest.Came() != 40 {
		t.Errorf("%d and %d", even.Came(), rest.Came())
	}
}

// What net/http sends again by itself is no request of the caller's.
func TestExpectationsCountAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t))
		a.get(t, "/status").want(t, 200)
		e := a.Expect("createShipment")
		a.Inject(mockcarrier.CloseAfter().Times(1))
		a.buy(t, "k", order).want(t, 201)
		if e.Came() != 1 || len(a.Requests()) != 3 {
			t.Errorf("%d counted, the journal is %+v", e.Came(), a.Requests())
		}
	})
}

func TestExplain(t *testing.T) {
	c := mockcarrier.New(mockcarrier.WithClock(mockcarrier.NewManualClock(noon).Now))
	c.Inject(mockcarrier.Status(503).On("createShipment").ForReference("order-1001").Skip(1).Times(2))
	c.Inject(mockcarrier.Delay(1).On("getStatus").ForKey("k").With(mockcarrier.Header("X-Api-Key", "other")))
	c.Inject(mockcarrier.Stall().Lasting(1).Until(noon))
	c.Inject(mockcarrier.RefuseConnection())
	c.Expect("createShipment").With(mockcarrier.Body("/service", "standard")).AtLeast(1)
	c.Expect("getStatus")

	request := func(method, path, body string) *http.Request {
		r, err := http.NewRequest(method, "http://carrier.test/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("X-Api-Key", "secret")
		return r
	}
	r := request("POST", "/shipments", order)
	for range 2 { // the body can be read again, and nothing is counted
		got, err := c.Explain(r)
		if err != nil {
			t.Fatal(err)
		}
		want := `✓ operation createShipment
✗ fault stall for all requests, for 1ns, until 2026-03-02T12:00:00Z
    ✗ time: got it is over, want while it is in force
✗ fault delay 1ns for getStatus, key k, header X-Api-Key = "other"
    ✗ operation: got createShipment, want getStatus
    ✓ key k
    ✗ header X-Api-Key: got [redacted], want "other"
✗ fault status 503 for createShipment, reference order-1001, after 1, first 2
    ✓ operation createShipment
    ✓ reference order-1001
    ✗ turn: got it leaves the first 1 alone, want createShipment, reference order-1001, after 1, first 2
✓ expectation createShipment with body /service = "standard", at least 1
    ✓ operation createShipment
    ✓ body /service "standard"
✗ expectation getStatus, 1
    ✗ operation: got createShipment, want getStatus
`
		if got.String() != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if len(got.Faults) != 3 || got.Faults[2].Applies || !got.Expectations[0].Applies {
			t.Errorf("got %+v", got)
		}
	}
	got, err := c.Explain(request("GET", "/v1/shipment", ""))
	if want := "✗ operation: none; the nearest is listShipments: GET /v1/shipments\n"; err != nil || got.String() != want {
		t.Errorf("got %v %v, want %s", got, err, want)
	}
	if len(c.Requests()) != 0 {
		t.Error("it is in the journal")
	}
}
