package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// pattern sends n requests and returns which a fault struck: "x" or ".".
func pattern(t *testing.T, a api, n int) string {
	t.Helper()
	var b strings.Builder
	for range n {
		if a.get(t, "/status").StatusCode == 200 {
			b.WriteByte('.')
		} else {
			b.WriteByte('x')
		}
	}
	return b.String()
}

func TestHowOftenARuleStrikes(t *testing.T) {
	fault := mockcarrier.Status(503).MayNotFire()
	for name, tc := range map[string]struct {
		fault mockcarrier.Fault
		want  string
	}{
		"always":                 {fault, "xxxxxxxxxxxx"},
		"first 2":                {fault.Times(2), "xx.........."},
		"every 3rd":              {fault.EveryNth(3), "..x..x..x..x"},
		"all but every 3rd":      {fault.AllButEveryNth(3), "xx.xx.xx.xx."},
		"after 4":                {fault.Skip(4), "....xxxxxxxx"},
		"after 4, first 2":       {fault.Skip(4).Times(2), "....xx......"},
		"after 1, every 2nd":     {fault.Skip(1).EveryNth(2), "..x.x.x.x.x."},
		"every 3rd, first 2":     {fault.EveryNth(3).Times(2), "..x..x......"},
		"probability 0":          {fault.Chance(0, 1), "............"},
		"probability 1":          {fault.Chance(1, 1), "xxxxxxxxxxxx"},
		"another operation":      {fault.On("getTracking"), "............"},
		"one of two operations":  {fault.On("getTracking", "getStatus"), "xxxxxxxxxxxx"},
		"a reference, not given": {fault.ForReference("order-1"), "............"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t))
			a.Inject(tc.fault)
			if got := pattern(t, a, 12); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestProbabilityIsReproducible(t *testing.T) {
	run := func(seed, ruleSeed uint64) string {
		a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithSeed(seed)))
		a.Inject(mockcarrier.Status(503).Chance(0.3, ruleSeed))
		return pattern(t, a, 400)
	}
	first := run(1, 7)
	if again := run(2, 7); again != first {
		t.Error("the same seed gave other faults")
	}
	if other := run(1, 8); other == first {
		t.Error("another seed gave the same faults")
	}
	five, again, six := run(5, 0), run(5, 0), run(6, 0)
	if five != again || five == six {
		t.Error("WithSeed does not decide where the rule has no seed")
	}
	for seed := range uint64(5) {
		share := float64(strings.Count(run(1, seed+1), "x")) / 400
		if math.Abs(share-0.3) > 0.1 {
			t.Errorf("seed %d: %.2f of the requests were struck", seed, share)
		}
	}
}

func TestNewestRuleWins(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	a.Inject(mockcarrier.Status(500))
	a.Inject(mockcarrier.Status(503).Times(2))
	a.Inject(mockcarrier.Status(429).EveryNth(2).Times(1))
	var got []int
	for range 6 {
		got = append(got, a.get(t, "/status").StatusCode)
	}
	// A rule does not count what a newer one took.
	if fmt.Sprint(got) != "[503 429 503 500 500 500]" {
		t.Errorf("got %v", got)
	}
	a.ClearFaults()
	a.get(t, "/status").want(t, 200)
}

func TestWhatARuleIsAbout(t *testing.T) {
	type request struct{ method, path, key, body string }
	create := func(key, reference string) request {
		return request{"POST", "/shipments", key, orderFor(reference)}
	}
	for name, tc := range map[string]struct {
		fault mockcarrier.Fault
		hit   []request
		miss  []request
	}{
		"key": {
			mockcarrier.Status(503).ForKey("k1", "k2"),
			[]request{create("k1", "a"), create(`"k2"`, "a")},
			[]request{create("k3", "a"), {"GET", "/status", "", ""}},
		},
		"reference": {
			mockcarrier.Status(503).ForReference("order-1"),
			[]request{
				create("k1", "order-1"), {"GET", "/shipments?reference=order-1", "", ""},
				{"GET", "/shipments/shp_2001", "", ""}, {"GET", "/shipments/shp_2001/label", "", ""},
				{"GET", "/tracking/BK2001TR", "", ""},
			},
			[]request{create("k2", "order-2"), {"GET", "/shipments/shp_2002", "", ""}, {"GET", "/shipments", "", ""}},
		},
		"tracking number": {
			mockcarrier.Status(503).ForTracking("BK2001TR"),
			[]request{
				{"GET", "/tracking/BK2001TR", "", ""}, {"GET", "/shipments/shp_2001", "", ""},
				{"POST", "/tracking/batch", "", `{"trackingNumbers":["BK1001TR","BK2001TR"]}`},
			},
			[]request{{"GET", "/tracking/BK1001TR", "", ""}, {"POST", "/tracking/batch", "", `{"trackingNumbers":["BK1001TR"]}`}},
		},
		"operation and reference": {
			mockcarrier.Status(503).On("getLabel").ForReference("order-1"),
			[]request{{"GET", "/shipments/shp_2001/label", "", ""}},
			[]request{{"GET", "/shipments/shp_2001", "", ""}, {"GET", "/shipments/shp_2002/label", "", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t))
			a.buy(t, "first", orderFor("order-1")).want(t, 201)
			a.buy(t, "second", orderFor("order-2")).want(t, 201)
			a.Inject(tc.fault)
			for hit, requests := range map[bool][]request{true: tc.hit, false: tc.miss} {
				for _, r := range requests {
					var headers []string
					if r.key != "" {
						headers = []string{"Idempotency-Key", r.key}
					}
					if got := a.do(t, r.method, r.path, r.body, headers...); (got.StatusCode == 503) != hit {
						t.Errorf("%v: got %s, struck should be %v", r, got.Status, hit)
					}
				}
			}
		})
	}
}

func TestFaultIsCopied(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	f := mockcarrier.Status(503).On("getStatus").WithHeader("X-A", "1")
	g := f.WithHeader("X-A", "2").On("getTracking")
	if len(f.Operations) != 1 || f.Header.Get("X-A") != "1" || len(f.Header["X-A"]) != 1 || len(g.Header["X-A"]) != 2 {
		t.Errorf("a copy changed its origin: %v %v", f, g)
	}
	a.Inject(f)
	f.Operations[0] = "getTracking"
	f.Header.Set("X-A", "changed")
	if r := a.get(t, "/status"); r.StatusCode != 503 || r.Header.Get("X-A") != "1" {
		t.Errorf("got %s %v", r.Status, r.Header)
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		fault mockcarrier.Fault
		says  string
	}{
		"zero":                     {mockcarrier.Fault{}, `no fault is of kind ""`},
		"unknown kind":             {mockcarrier.Fault{Kind: "flood"}, `no fault is of kind "flood"`},
		"status too low":           {mockcarrier.Status(100), "status 100 is not from 200 to 599"},
		"no status":                {mockcarrier.Status(0), "status 0"},
		"interim too high":         {mockcarrier.Informational(200, 1), "status 200"},
		"switching protocols":      {mockcarrier.Informational(101, 1), "101"},
		"redirect that is none":    {mockcarrier.Redirect(200, "/"), "status 200"},
		"status without a use":     {mockcarrier.Fault{Kind: mockcarrier.KindStall, Status: 500}, "has no status"},
		"phase that cannot be":     {mockcarrier.ResetBefore().DuringProcessing(), `phase "during"`},
		"spoilt before":            {mockcarrier.MalformedJSON().BeforeProcessing(), `phase "before"`},
		"negative count":           {mockcarrier.Status(500).Times(-1), "negative"},
		"probability above 1":      {mockcarrier.Status(500).Chance(1.5, 1), "probability"},
		"probability not a number": {mockcarrier.Status(500).Chance(math.NaN(), 1), "probability"},
		"negative wait":            {mockcarrier.Delay(-1), "wait"},
		"negative bytes":           {mockcarrier.Truncate(-1, ""), "bytes"},
		"drip of nothing":          {mockcarrier.Drip(0, time.Second), "pieces"},
		"unknown framing":          {mockcarrier.Truncate(1, "smoke"), "framing"},
		"framing without a use":    {mockcarrier.Fault{Kind: mockcarrier.KindEmpty, Framing: mockcarrier.ByClose}, "framing"},
		"oversize by close":        {mockcarrier.Fault{Kind: mockcarrier.KindOversize, Framing: mockcarrier.ByClose}, "in chunks"},
		"all but all":              {mockcarrier.Status(500).AllButEveryNth(1), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.fault.Validate()
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Validate says %v, want %q", err, tc.says)
			}
			defer func() {
				if recover() == nil {
					t.Error("Inject took it")
				}
			}()
			mockcarrier.New().Inject(tc.fault)
		})
	}
}

// everyField is a fault that is not valid, but has a value in every field.
func everyField(t *testing.T) mockcarrier.Fault {
	t.Helper()
	f := mockcarrier.Status(503).DuringProcessing().On("createShipment").ForKey("k").ForReference("r").ForTracking("n").
		Skip(1).Times(2).EveryNth(3).AllButEveryNth(4).Chance(0.5, 9).MayNotFire().RetryAfter(1).WithBody("b")
	f.Wait, f.Bytes, f.Count, f.Framing = 1500*time.Millisecond, 5, 2, mockcarrier.ByChunks
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("%s has no value", v.Type().Field(i).Name)
		}
	}
	return f
}

func TestFaultAsJSON(t *testing.T) {
	f := everyField(t)
	f.Framing = "" // the one that a status cannot have
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back mockcarrier.Fault
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f, back) {
		t.Errorf("got back %+v of %+v: %s", back, f, data)
	}

	if err := json.Unmarshal([]byte(`{"kind":"status","status":503,"operations":["createShipment"],"first":2,"header":{"retry-after":["1"]}}`), &back); err != nil {
		t.Fatal(err)
	}
	want := mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(2)
	if !reflect.DeepEqual(back, want) {
		t.Errorf("got %+v, want %+v", back, want)
	}
	for _, bad := range []string{`{"kind":"status","status":503,"colour":"red"}`, `{"kind":"flood"}`, `{"kind":"delay","wait":"long"}`, `[]`, `{}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestFaultInWords(t *testing.T) {
	for want, f := range map[string]mockcarrier.Fault{
		"status 503, Retry-After: 1":                mockcarrier.Status(503).RetryAfter(1),
		"reset after processing":                    mockcarrier.ResetAfter(),
		"truncate 30 bytes by chunked":              mockcarrier.Truncate(30, mockcarrier.ByChunks),
		"drip 1 bytes 2s":                           mockcarrier.Drip(1, 2*time.Second),
		`content-type "text/plain"`:                 mockcarrier.ContentType("text/plain"),
		"informational 103 ×2":                      mockcarrier.Informational(http.StatusEarlyHints, 2),
		"redirect 307, Location: https://a.example": mockcarrier.Redirect(307, "https://a.example"),
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
