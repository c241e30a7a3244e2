package mockcarrier_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// eventsOf returns the lines of an export, which has to be one.
func eventsOf(t *testing.T, r reply) []carrier.ExportedEvent {
	t.Helper()
	if r.StatusCode != 200 {
		t.Fatalf("got %s: %s", r.Status, r.body)
	}
	if got := r.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("it is of type %q", got)
	}
	var events []carrier.ExportedEvent
	for line := range strings.Lines(r.body) {
		var e carrier.ExportedEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func inShort(events []carrier.ExportedEvent) string {
	var list []string
	for _, e := range events {
		list = append(list, fmt.Sprint(e.TrackingNumber, " ", e.Event.Status))
	}
	return strings.Join(list, ", ")
}

func TestExportTrackingEvents(t *testing.T) {
	a := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithAPIKey(mockcarrier.APIKey, "other")))
	if got := eventsOf(t, a.get(t, "/tracking/events")); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	a.buy(t, "1", strings.Replace(orderFor("order-1"), "standard", "express", 1)).want(t, 201)
	a.buy(t, "2", strings.Replace(orderFor("order-2"), `[{"weight"`, `[{"weight":{"value":3,"unit":"lb"}},{"weight"`, 1)).want(t, 201)
	a.buy(t, "3", orderFor("order-3")).want(t, 201)
	a.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 200)
	other := a
	other.key = "other"
	other.buy(t, "1", order).want(t, 201)

	a.Advance(4 * time.Hour)
	all := eventsOf(t, a.get(t, "/tracking/events"))
	const want = "BK2001TR label_created, BK2002TR label_created, BK2002P2TR label_created, BK2003TR label_created, " +
		"BK2001TR cancelled, BK2002TR picked_up, BK2002P2TR picked_up, BK2003TR picked_up"
	if got := inShort(all); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if e := all[2]; e.Reference != "order-2" || e.ShipmentID != "shp_2002" || !e.Event.At.Time().Equal(noon) || e.Event.Location != "Istanbul" {
		t.Errorf("got %+v", e)
	}
	if got := inShort(eventsOf(t, other.get(t, "/tracking/events"))); got != "BK2004TR label_created, BK2004TR picked_up" {
		t.Errorf("the other account got %s", got)
	}

	// It goes on behind each cursor, whatever since says.
	for i, e := range all {
		query := url.Values{"cursor": {e.Cursor}, "since": {"2000-01-01T00:00:00Z"}}
		if got, want := inShort(eventsOf(t, a.get(t, "/tracking/events?"+query.Encode()))), inShort(all[i+1:]); got != want {
			t.Errorf("behind %d: got %s, want %s", i, got, want)
		}
	}
	since := func(at time.Time) string {
		return inShort(eventsOf(t, a.get(t, "/tracking/events?since="+at.Format(time.RFC3339))))
	}
	if got := since(noon); got != want {
		t.Errorf("since then: %s", got)
	}
	if got := since(noon.Add(time.Second)); got != "BK2002TR picked_up, BK2002P2TR picked_up, BK2003TR picked_up" {
		t.Errorf("since a second later: %s", got)
	}
	if got := since(noon.Add(100 * time.Hour)); got != "" {
		t.Errorf("since tomorrow: %s", got)
	}
	a.Advance(21 * time.Hour)
	if got := inShort(eventsOf(t, a.get(t, "/tracking/events"))); strings.Contains(got, "label_created") || !strings.HasPrefix(got, "BK2002TR picked_up") {
		t.Errorf("without since: %s", got)
	}
}

// Cursors are good in any century.
func TestExportInOtherCenturies(t *testing.T) {
	for _, year := range []int{1, 1600, 2300, 9998} {
		clock := mockcarrier.NewManualClock(time.Date(year, 3, 2, 12, 0, 0, 7, time.UTC))
		a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithClock(clock.Now)))
		a.buy(t, "k", order).want(t, 201)
		a.Advance(4 * time.Hour)
		events := eventsOf(t, a.get(t, "/tracking/events"))
		if len(events) != 2 {
			t.Fatalf("%d: got %v", year, events)
		}
		for i, e := range events {
			if rest := eventsOf(t, a.get(t, "/tracking/events?cursor="+e.Cursor)); len(rest) != 1-i {
				t.Errorf("%d: behind event %d there are %v", year, i, rest)
			}
		}
	}
}

func TestExportRefuses(t *testing.T) {
	a := newAPI(mockcarrier.Start(t, frozen()))
	a.buy(t, "k", order).want(t, 201)
	good := eventsOf(t, a.get(t, "/tracking/events"))[0].Cursor
	for _, query := range []string{
		"cursor=", "cursor=x", "cursor=%00", "cursor=" + good + "%0A", "cursor=" + good + "%3D", "cursor=" + good[1:], "cursor=" + good + "AA", "cursor=MS4yLjM=", "cursor=ZW5k", "cursor=MS4yLjN4",
		"since=yesterday", "since=2026-03-02", "since=",
	} {
		problem := a.get(t, "/tracking/events?"+query).want(t, 400, "malformed_parameter")
		if name, _, _ := strings.Cut(query, "="); pointers(problem) != name {
			t.Errorf("%s: it points at %s", query, pointers(problem))
		}
	}
}

// Whatever is bought and cancelled in between, also at the same moment, who goes
// on from the last cursor each time gets each event once.
func TestExportInTurnsHasEachEventOnce(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		a := newAPI(mockcarrier.StartInMemory(t, frozen()))
		var got []carrier.ExportedEvent
		query, bought := "", 0
		for range 60 {
			switch random.IntN(5) {
			case 0, 1:
				bought++
				service := []string{"express", "standard", "economy"}[random.IntN(3)]
				body := strings.Replace(order, "standard", service, 1)
				if random.IntN(2) == 0 {
					body = strings.Replace(body, `[{"weight"`, `[{"weight":{"value":3,"unit":"lb"}},{"weight"`, 1)
				}
				a.buy(t, fmt.Sprint(bought), body).want(t, 201)
			case 2:
				if bought > 0 {
					a.do(t, "POST", fmt.Sprintf("/shipments/shp_%d/cancel", 2001+random.IntN(bought)), "") // or it is too late
				}
			case 3:
				a.Advance(time.Duration(random.IntN(5)) * time.Hour)
			case 4:
				got = append(got, eventsOf(t, a.get(t, "/tracking/events"+query))...)
				if len(got) > 0 {
					query = "?cursor=" + got[len(got)-1].Cursor
				}
			}
		}
		a.Advance(200 * time.Hour)
		got = append(got, eventsOf(t, a.get(t, "/tracking/events"+query))...)
		all := eventsOf(t, a.get(t, "/tracking/events?since="+noon.Format(time.RFC3339)))
		if len(all) == 0 || inShort(got) != inShort(all) {
			t.Errorf("seed %d:\n%s\nat once:\n%s", seed, inShort(got), inShort(all))
		}
		if !slices.IsSortedFunc(all, func(a, b carrier.ExportedEvent) int { return a.Event.At.Time().Compare(b.Event.At.Time()) }) {
			t.Errorf("seed %d: not the oldest first", seed)
		}
	}
}

// A big export is sent as it is made: the first lines are there before the last
// are, and it is never in memory as a whole.
func TestExportIsSentInPieces(t *testing.T) {
	const shipments, parcels = 300, 40 // as many as a shipment may have
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	many := strings.Replace(order, `[{"weight":{"value":1.2,"unit":"kg"}}]`,
		"["+strings.TrimSuffix(strings.Repeat(`{"weight":{"value":1.2,"unit":"kg"}},`, parcels), ",")+"]", 1)
	for i := range shipments {
		a.buy(t, fmt.Sprint(i), many).want(t, 201)
	}
	a.Advance(100 * time.Hour)
	req, err := http.NewRequest("GET", a.URL+"/tracking/events?since="+noon.Format(time.RFC3339), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", a.key)
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ContentLength != -1 {
		t.Errorf("its length is known: %d", resp.ContentLength)
	}
	var size, grown uint64
	buffer := make([]byte, 64<<10)
	for next := uint64(0); ; {
		n, err := resp.Body.Read(buffer)
		if size += uint64(n); err != nil {
			break
		}
		if size >= next {
			next += 8 << 20
			runtime.GC()
			runtime.ReadMemStats(&during)
			grown = max(grown, during.HeapAlloc-min(during.HeapAlloc, before.HeapAlloc))
		}
	}
	if want := uint64(shipments * parcels * 6 * 200); size < want {
		t.Fatalf("only %d bytes, fewer than %d", size, want)
	}
	if grown > size/8 {
		t.Errorf("%d bytes of memory for an export of %d", grown, size)
	}
	t.Logf("%d bytes of memory for an export of %d", grown, size)
}

// The faults of bodies strike an export as they strike a label.
func TestExportMeetsFaults(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		a := newAPI(start(t, frozen()))
		for i := range 20 {
			a.buy(t, fmt.Sprint(i), order).want(t, 201)
		}
		a.Advance(48 * time.Hour)
		const path = "/tracking/events?since=2026-01-01T00:00:00Z"
		whole := a.get(t, path).body
		for name, tc := range map[string]struct {
			fault mockcarrier.Fault
			cut   bool
			size  int
		}{
			"cut by length": {mockcarrier.Truncate(500, mockcarrier.ByLength), true, 500},
			"cut in chunks": {mockcarrier.Truncate(500, mockcarrier.ByChunks), true, 500},
			"cut by close":  {mockcarrier.Truncate(500, mockcarrier.ByClose), false, 500},
			"reset":         {mockcarrier.ResetBody(500), true, -1},
			"drip":          {mockcarrier.Drip(int64(len(whole)/4), time.Millisecond), false, len(whole)},
			"delay":         {mockcarrier.Delay(time.Millisecond).AfterProcessing(), false, len(whole)},
			"status":        {mockcarrier.Status(503).AfterProcessing(), false, -1},
		} {
			a.Inject(tc.fault.On("exportTrackingEvents").Times(1))
			r, err := a.try("GET", path, "")
			if (err != nil) != tc.cut || tc.size >= 0 && r.body != whole[:tc.size] {
				t.Errorf("%s: %d bytes, %v", name, len(r.body), err)
			}
			if name == "status" && r.StatusCode != 503 {
				t.Errorf("got %s", r.Status)
			}
		}
	})
}
