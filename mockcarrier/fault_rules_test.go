package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	seq := mockcarrier.Sequence(mockcarrier.Status(503).Times(2), mockcarrier.None(), mockcarrier.HTML(502))
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
		"a header, not given":    {fault.With(mockcarrier.Header("X-A", mockcarrier.Present)), "............"},
		"a header":               {fault.With(mockcarrier.Header("x-api-key", mockcarrier.APIKey)), "xxxxxxxxxxxx"},
		"a time that is over":    {fault.Until(noon), "............"},
		"a time to come":         {fault.Until(time.Now().Add(time.Hour)), "xxxxxxxxxxxx"},
		"sequence":               {seq.MayNotFire(), "xx.x........"},
		"sequence, 6 times":      {seq.Times(6), "xx.xxx......"},
		"sequence, looping":      {seq.Looping(), "xx.xxx.xxx.x"},
		"sequence, every 2nd":    {seq.EveryNth(2), ".x.x...x...."},
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

// The decisions of a seed are the same in every process and under every load.
func TestSeedsDecideTheSameEverywhere(t *testing.T) {
	const want = "....xx.xxx.............xxx.x.x.x....x..." // of seed 1, 30 %
	a := newAPI(mockcarrier.StartInMemory(t))
	a.Inject(mockcarrier.Status(503).Chance(0.3, 1))
	if got := pattern(t, a, len(want)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range 3 {
		a := newAPI(mockcarrier.StartInMemory(t))
		a.Inject(mockcarrier.Status(503).Chance(0.3, 1))
		var wg sync.WaitGroup
		var struck atomic.Int32
		for range 8 {
			wg.Go(func() {
				for range len(want) / 8 {
					if r, err := a.try("GET", "/status", ""); err != nil {
						t.Error(err)
					} else if r.StatusCode == 503 {
						struck.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := int(struck.Load()); n != strings.Count(want, "x") {
			t.Errorf("%d of %d concurrent requests were struck, want %d", n, len(want), strings.Count(want, "x"))
		}
	}
}

func TestDelaysThatVary(t *testing.T) {
	waits := func(f mockcarrier.Fault) []time.Duration {
		var list []time.Duration
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t))
			a.Inject(f)
			for range 200 {
				start := time.Now()
				a.get(t, "/status")
				list = append(list, time.Since(start))
			}
			if told := a.Requests()[7].Fault; told != "delay "+list[7].String() {
				t.Errorf("the journal has %q, it took %v", told, list[7])
			}
		})
		return list
	}
	share := func(list []time.Duration, from, to time.Duration) float64 {
		n := 0
		for _, d := range list {
			if from <= d && d < to {
				n++
			}
		}
		return float64(n) / float64(len(list))
	}
	uniform := waits(mockcarrier.Delay(100 * time.Millisecond).UpTo(300 * time.Millisecond))
	if all, low := share(uniform, 100*time.Millisecond, 300*time.Millisecond), share(uniform, 0, 200*time.Millisecond); all != 1 || math.Abs(low-0.5) > 0.15 {
		t.Errorf("%.2f are in range, %.2f in its lower half", all, low)
	}
	spread := waits(mockcarrier.Delay(100 * time.Millisecond).Spread(1))
	// Half are below the median, and 16 % above it by more than a standard deviation.
	if low, high := share(spread, 0, 100*time.Millisecond), share(spread, 272*time.Millisecond, time.Hour); math.Abs(low-0.5) > 0.15 || math.Abs(high-0.16) > 0.1 {
		t.Errorf("%.2f are below the median, %.2f far above", low, high)
	}
	capped := waits(mockcarrier.Delay(100 * time.Millisecond).Spread(1).UpTo(150 * time.Millisecond))
	if over := share(capped, 150*time.Millisecond+1, time.Hour); over != 0 {
		t.Errorf("%.2f are longer than the longest", over)
	}
	if again := waits(mockcarrier.Delay(100 * time.Millisecond).Spread(1)); !slices.Equal(spread, again) {
		t.Error("the same seed gave other waits")
	}
	// Whether a rule strikes does not decide how long it waits.
	if low := share(waits(mockcarrier.Delay(1*time.Nanosecond).UpTo(time.Second).Chance(0.1, 3)), time.Microsecond, 150*time.Millisecond); low > 0.09 {
		t.Errorf("%.2f of all are short", low)
	}
}

func TestRuleThatLasts(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	a.Advance(time.Hour)
	a.Inject(mockcarrier.Status(503).Lasting(30 * time.Second))
	var got []int
	for range 4 {
		got = append(got, a.get(t, "/status").StatusCode)
		a.Advance(10 * time.Second)
	}
	if fmt.Sprint(got) != "[503 503 503 200]" {
		t.Errorf("got %v", got)
	}
}

// None shields what it is for from older rules, and from scenario numbers.
func TestNoneShields(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	a.Inject(mockcarrier.Status(503))
	a.Inject(mockcarrier.None().ForTracking("BK1001TR", "MC46"))
	a.get(t, "/tracking/BK1001TR").want(t, 200)
	a.get(t, "/tracking/MC46").want(t, 200)
	a.get(t, "/tracking/BK1002TR").want(t, 503)
	if journal := a.Requests(); journal[0].Fault != "" || journal[2].Fault != "status 503" {
		t.Errorf("got %q and %q", journal[0].Fault, journal[2].Fault)
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
		"member of the body": {
			mockcarrier.Status(503).With(mockcarrier.Body("/parcels/0/weight/value", 1.2), mockcarrier.Body("/reference", regexp.MustCompile("^order-[12]$"))),
			[]request{create("k1", "order-1"), create("k2", "order-2")},
			[]request{create("k3", "order-3"), {"GET", "/status", "", ""}},
		},
		"parameters": {
			mockcarrier.Status(503).With(mockcarrier.Parameter("shipmentId", "shp_2001"), mockcarrier.Parameter("format", mockcarrier.OneOf("zpl", "png"))),
			[]request{{"GET", "/shipments/shp_2001/label?format=zpl", "", ""}},
			[]request{{"GET", "/shipments/shp_2001/label", "", ""}, {"GET", "/shipments/shp_2002/label?format=zpl", "", ""}, {"GET", "/shipments/shp_2001", "", ""}},
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
		"zero":                      {mockcarrier.Fault{}, `no fault is of kind ""`},
		"unknown kind":              {mockcarrier.Fault{Kind: "flood"}, `no fault is of kind "flood"`},
		"status too low":            {mockcarrier.Status(100), "status 100 is not from 200 to 599"},
		"no status":                 {mockcarrier.Status(0), "status 0"},
		"interim too high":          {mockcarrier.Informational(200, 1), "status 200"},
		"switching protocols":       {mockcarrier.Informational(101, 1), "101"},
		"redirect that is none":     {mockcarrier.Redirect(200, "/"), "status 200"},
		"status without a use":      {mockcarrier.Fault{Kind: mockcarrier.KindStall, Status: 500}, "has no status"},
		"phase that cannot be":      {mockcarrier.ResetBefore().DuringProcessing(), `phase "during"`},
		"spoilt before":             {mockcarrier.MalformedJSON().BeforeProcessing(), `phase "before"`},
		"negative count":            {mockcarrier.Status(500).Times(-1), "negative"},
		"probability above 1":       {mockcarrier.Status(500).Chance(1.5, 1), "probability"},
		"probability not a number":  {mockcarrier.Status(500).Chance(math.NaN(), 1), "probability"},
		"negative wait":             {mockcarrier.Delay(-1), "wait"},
		"negative bytes":            {mockcarrier.Truncate(-1, ""), "bytes"},
		"drip of nothing":           {mockcarrier.Drip(0, time.Second), "pieces"},
		"unknown framing":           {mockcarrier.Truncate(1, "smoke"), "framing"},
		"framing without a use":     {mockcarrier.Fault{Kind: mockcarrier.KindEmpty, Framing: mockcarrier.ByClose}, "framing"},
		"oversize by close":         {mockcarrier.Fault{Kind: mockcarrier.KindOversize, Framing: mockcarrier.ByClose}, "in chunks"},
		"all but all":               {mockcarrier.Status(500).AllButEveryNth(1), "none"},
		"longest below shortest":    {mockcarrier.Delay(time.Minute).UpTo(time.Second), "shorter"},
		"spread below 0":            {mockcarrier.Delay(time.Minute).Spread(-1), "sigma"},
		"spread of no delay":        {mockcarrier.Stall().Spread(1), "do not vary"},
		"lasting less than nothing": {mockcarrier.Stall().Lasting(-1), "lasts"},
		"code without a use":        {mockcarrier.HTML(500).WithCode("c"), "no code"},
		"date without a use":        {mockcarrier.Stall().RetryAfterDate(time.Second), "no Retry-After"},
		"connection's operation":    {mockcarrier.RefuseConnection().On("getStatus"), "a connection has no operation"},
		"connection's phase":        {mockcarrier.Blackhole().AfterProcessing(), "phase"},
		"bad matcher":               {mockcarrier.Stall().With(mockcarrier.Body("reference", "a")), "begins with /"},
		"no steps":                  {mockcarrier.Sequence(), "no steps"},
		"steps of no sequence":      {mockcarrier.Fault{Kind: mockcarrier.KindStall, Loop: true}, "only a sequence"},
		"bad step":                  {mockcarrier.Sequence(mockcarrier.None(), mockcarrier.Status(1)), "step 2: fault status"},
		"sequence in a sequence":    {mockcarrier.Sequence(mockcarrier.Sequence(mockcarrier.None())), "step 1 is a sequence"},
		"narrow step":               {mockcarrier.Sequence(mockcarrier.Stall().On("getStatus")), "step 1 is narrowed down"},
		"steps of both sorts":       {mockcarrier.Sequence(mockcarrier.Stall(), mockcarrier.Blackhole()), "something else"},
		"phase of a sequence":       {mockcarrier.Sequence(mockcarrier.Stall()).AfterProcessing(), "phase"},
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

// Every field of a fault comes back from its JSON.
func TestFaultAsJSON(t *testing.T) {
	some := 0.5
	given := map[string]bool{}
	for _, f := range []mockcarrier.Fault{
		{
			Kind: mockcarrier.KindStatus, Phase: mockcarrier.PhaseDuring, Status: 503, Code: "c", Body: "b",
			Operations: []string{"createShipment"}, Keys: []string{"k"}, References: []string{"r"}, TrackingNumbers: []string{"n"},
			Match: []mockcarrier.Matcher{mockcarrier.Header("X-A", "1"), mockcarrier.Body("/reference", mockcarrier.Present)},
			After: 1, First: 2, Every: 3, AllBut: 4, Probability: &some, Seed: 9, Optional: true,
			Lasts: time.Minute, Ends: noon, Header: http.Header{"Retry-After": {"1"}},
		},
		mockcarrier.Sequence(mockcarrier.Status(503).Times(2), mockcarrier.None()).Looping(),
		mockcarrier.Delay(1500 * time.Millisecond).UpTo(time.Minute).Spread(0.5),
		mockcarrier.Informational(103, 2),
		mockcarrier.Truncate(5, mockcarrier.ByChunks),
		mockcarrier.HTML(503).RetryAfterDate(-time.Second),
	} {
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
		for i, v := range reflect.ValueOf(f).Fields() {
			given[i.Name] = given[i.Name] || !v.IsZero()
		}
	}
	for name, ok := range given {
		if !ok {
			t.Errorf("no fault has a %s", name)
		}
	}

	var back mockcarrier.Fault
	if err := json.Unmarshal([]byte(`{"kind":"status","status":503,"operations":["createShipment"],"first":2,"header":{"retry-after":["1"]}}`), &back); err != nil {
		t.Fatal(err)
	}
	want := mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(2)
	if !reflect.DeepEqual(back, want) {
		t.Errorf("got %+v, want %+v", back, want)
	}
	for _, bad := range []string{`{"kind":"status","status":503,"colour":"red"}`, `{"kind":"flood"}`, `{"kind":"delay","wait":"long"}`, `{"kind":"status","status":503,"lasts":"long"}`,
		`{"kind":"sequence"}`, `{"kind":"status","status":503,"match":[{"in":"body"}]}`, `[]`, `{}`} {
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
		"status 409 in_progress":                    mockcarrier.Status(409).WithCode("in_progress"),
		"status 429, Retry-After: a date in 30s":    mockcarrier.Status(429).RetryAfterDate(30 * time.Second),
		"delay 1s ±σ0.5 to 10s":                     mockcarrier.Delay(time.Second).Spread(0.5).UpTo(10 * time.Second),
		"sequence of status 503 ×2; reset after processing; none, again and again": mockcarrier.Sequence(
			mockcarrier.Status(503).Times(2), mockcarrier.ResetAfter(), mockcarrier.None()).Looping(),
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A misspelled operation is refused where the rule is made, not missed at the end.
func TestFaultOnAnOperationThatIsNone(t *testing.T) {
	for _, name := range []string{"getShipmnt", "", "GetTracking"} {
		err := mockcarrier.Status(503).On(name).Validate()
		if err == nil || !strings.Contains(err.Error(), "getShipment, getStatus") {
			t.Errorf("%q: error is %v", name, err)
		}
	}
	for _, name := range []string{"getShipment", mockcarrier.TokenOperation} {
		if err := mockcarrier.Status(503).On(name).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
