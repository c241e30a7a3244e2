package mockcarrier_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func (a api) closeDay(t *testing.T, key, body string) reply {
	t.Helper()
	return a.do(t, "POST", "/manifests", body, "Idempotency-Key", key)
}

func TestManifest(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	today := `{"date":"2026-03-02"}`
	a.closeDay(t, "early", today).want(t, 422, "nothing_to_manifest")
	for i, body := range []string{
		order, twoParcels(order), order,
		with(order, `"shipDate":"2026-03-02"`), with(order, `"shipDate":"2026-03-03"`), with(order, `"shipDate":"2026-03-01"`),
	} {
		a.buy(t, fmt.Sprint(i), body).want(t, 201)
	}
	a.do(t, "POST", "/shipments/shp_2003/cancel", "").want(t, 200)
	a.buy(t, "pending", order, "Prefer", "respond-async").want(t, 202) // shp_2007
	a.Advance(time.Hour)                                               // which is done now
	a.buy(t, "still pending", order, "Prefer", "respond-async").want(t, 202)

	closed := a.closeDay(t, "early", today) // what was refused may be sent again
	m := decoded[carrier.Manifest](t, closed, 201)
	if fmt.Sprint(m.ShipmentIds) != "[shp_2001 shp_2002 shp_2004 shp_2006 shp_2007]" || m.ID != "mft_4001" || m.Status != carrier.ManifestStatusClosed ||
		m.ShipmentCount != 5 || m.ParcelCount != 6 || m.Date != "2026-03-02" || closed.Header.Get("Location") != "/v1/manifests/mft_4001" {
		t.Errorf("got %s", closed.body)
	}
	if got := a.get(t, "/manifests/mft_4001"); got.want(t, 200) == nil || got.body != closed.body {
		t.Errorf("got %s, made %s", got.body, closed.body)
	}
	if replay := a.closeDay(t, "early", today); replay.body != closed.body || replay.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the replay is %s", replay.body)
	}
	a.closeDay(t, "again", today).want(t, 422, "nothing_to_manifest")

	for id, want := range map[string]struct {
		status string
		cancel int
		code   string
	}{
		"shp_2001": {"manifested", 409, "already_manifested"},
		"shp_2003": {"cancelled", 200, ""},
		"shp_2005": {"created", 200, ""},
		"shp_2008": {"pending", 200, ""},
	} {
		if got := a.get(t, "/shipments/"+id).want(t, 200)["status"]; got != want.status {
			t.Errorf("%s is %v, want %s", id, got, want.status)
		}
		cancelled := a.do(t, "POST", "/shipments/"+id+"/cancel", "")
		if want.cancel == 409 {
			cancelled.want(t, 409, want.code)
		} else {
			cancelled.want(t, want.cancel)
		}
	}
	a.get(t, "/shipments/shp_2001/label").want(t, 200)
	a.Advance(5 * time.Hour) // it is on its way as well
	a.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 409, "already_manifested")
	if len(a.Ledger()) != 8 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
	a.get(t, "/manifests/mft_9999").want(t, 404, "manifest_not_found")
	a.get(t, "/manifests/a%20b").want(t, 400, "malformed_parameter")
}

// However many close the day at once, while shipments are made and cancelled: each
// shipment is on one manifest, or cancelled, or neither.
func TestManifestsAtOnce(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		const each = 50
		a := newAPI(start(t, frozen()))
		var wg sync.WaitGroup
		closed, cancelled := make([]reply, each), make([]reply, each)
		try := func(method, path, body, key string) reply {
			r, err := a.try(method, path, body, "Idempotency-Key", key)
			if err != nil {
				t.Error(err)
			}
			return r
		}
		for i := range each {
			wg.Go(func() {
				try("POST", "/shipments", order, fmt.Sprint("s", i))
				closed[i] = try("POST", "/manifests", `{"date":"2026-03-02"}`, fmt.Sprint("m", i))
			})
			wg.Go(func() { cancelled[i] = try("POST", fmt.Sprintf("/shipments/shp_%d/cancel", 2001+i), "", "") })
		}
		wg.Wait()
		on := map[string]string{}
		note := func(shipment, what string) {
			if on[shipment] != "" {
				t.Errorf("%s is %s and %s", shipment, on[shipment], what)
			}
			on[shipment] = what
		}
		for i, r := range closed {
			if cancelled[i].StatusCode == 200 {
				note(fmt.Sprint("shp_", 2001+i), "cancelled")
			}
			if r.StatusCode != 201 {
				r.want(t, 422, "nothing_to_manifest")
				continue
			}
			m := decoded[carrier.Manifest](t, r, 201)
			if m.ShipmentCount != len(m.ShipmentIds) || m.ParcelCount != len(m.ShipmentIds) {
				t.Errorf("got %s", r.body)
			}
			for _, id := range m.ShipmentIds {
				note(id, "on "+m.ID)
			}
		}
		if err := a.Restore(a.Snapshot()); err != nil {
			t.Error(err)
		}
	})
}

func TestManifestsThatAreRefused(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithAPIKey(mockcarrier.APIKey, "other")))
	other := a
	other.key = "other"
	other.buy(t, "k", order).want(t, 201) // shp_2001
	for i := range 4 {
		a.buy(t, fmt.Sprint(i), order).want(t, 201)
	}
	a.do(t, "POST", "/shipments/shp_2003/cancel", "").want(t, 200)
	a.closeDay(t, "first", `{"date":"2026-03-02","shipmentIds":["shp_2004"]}`).want(t, 201)
	a.buy(t, "pending", order, "Prefer", "respond-async").want(t, 202) // shp_2006
	for name, tc := range map[string]struct{ body, codes string }{
		"yesterday":      {`{"date":"2026-03-01"}`, "/date past"},
		"no day":         {`{"date":"2026-13-01"}`, "/date format"},
		"not open":       {`{"date":"2026-03-02","shipmentIds":["shp_9","shp_2002","shp_2003","shp_2004","shp_2006","shp_2001"]}`, "/shipmentIds/0 not_found, /shipmentIds/2 cancelled, /shipmentIds/3 manifested, /shipmentIds/4 pending, /shipmentIds/5 not_found"},
		"both":           {`{"date":"2026-03-01","shipmentIds":["shp_9"]}`, "/date past, /shipmentIds/0 not_found"},
		"none":           {`{"date":"2026-03-02","shipmentIds":[]}`, "/shipmentIds minItems"},
		"twice":          {`{"date":"2026-03-02","shipmentIds":["shp_2002","shp_2002"]}`, "/shipmentIds uniqueItems"},
		"unknown member": {`{"date":"2026-03-02","colour":"red"}`, "/colour additionalProperties"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fieldCodes(a.closeDay(t, name, tc.body).want(t, 422, "validation_failed")); got != tc.codes {
				t.Errorf("got %s, want %s", got, tc.codes)
			}
		})
	}
	// A refusal has put nothing on a manifest.
	if m := a.closeDay(t, "all", `{"date":"2026-03-02"}`).want(t, 201); fmt.Sprint(m["shipmentIds"]) != "[shp_2002 shp_2005]" || m["id"] != "mft_4002" {
		t.Errorf("got %v", m)
	}
	other.get(t, "/manifests/mft_4002").want(t, 404, "manifest_not_found")
	if m := other.closeDay(t, "all", `{"date":"2026-03-02"}`).want(t, 201); fmt.Sprint(m["shipmentIds"]) != "[shp_2001]" {
		t.Errorf("got %v", m)
	}
	a.Advance(9 * time.Hour) // midnight there
	if got := fieldCodes(a.closeDay(t, "midnight", `{"date":"2026-03-02"}`).want(t, 422)); got != "/date past" {
		t.Errorf("got %s", got)
	}
}

// Rates, pickups and manifests survive, are their world's, and older states
// have none.
func TestSnapshotOfOrders(t *testing.T) {
	old := newAPI(mockcarrier.StartInMemory(t, frozen()))
	rate := quote(t, old, quoteFor(order)).Rates[1].ID
	old.buy(t, "s1", order).want(t, 201)
	old.buy(t, "s2", orderFor("order-2")).want(t, 201)
	pickup := old.pickUp(t, "p", with(pickupOrder, `"shipmentIds":["shp_2001"]`))
	pickup.want(t, 201)
	old.pickUp(t, "q", pickupOrder).want(t, 201)
	old.do(t, "DELETE", "/pickups/pck_3002", "").want(t, 200)
	manifest := old.closeDay(t, "m", `{"date":"2026-03-02","shipmentIds":["shp_2001"]}`)
	manifest.want(t, 201)
	snapshot := old.Snapshot()
	if strings.Contains(string(snapshot), mockcarrier.APIKey) {
		t.Error("the API key is in the snapshot")
	}

	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	if err := a.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if again := a.Snapshot(); string(again) != string(snapshot) {
		t.Errorf("after Restore the snapshot is\n%s\nand was\n%s", again, snapshot)
	}
	for _, path := range []string{"/pickups/pck_3001", "/pickups/pck_3002", "/manifests/mft_4001", "/shipments/shp_2001", "/shipments/shp_2002"} {
		if got, was := a.get(t, path).body, old.get(t, path).body; got != was {
			t.Errorf("%s: got %s, was %s", path, got, was)
		}
	}
	a.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 409, "already_manifested")
	for key, was := range map[string]reply{"p": pickup, "m": manifest} {
		path, body := "/pickups", with(pickupOrder, `"shipmentIds":["shp_2001"]`)
		if key == "m" {
			path, body = "/manifests", `{"date":"2026-03-02","shipmentIds":["shp_2001"]}`
		}
		if replay := a.do(t, "POST", path, body, "Idempotency-Key", key); replay.body != was.body {
			t.Errorf("the replay is %s, was %s", replay.body, was.body)
		}
	}
	a.buy(t, "at a rate", with(orderFor("order-3"), `"rateId":"`+rate+`"`)).want(t, 201)
	if id := a.pickUp(t, "r", pickupOrder).want(t, 201)["id"]; id != "pck_3003" {
		t.Errorf("the next pickup is %v", id)
	}
	if m := a.closeDay(t, "n", `{"date":"2026-03-02"}`).want(t, 201); m["id"] != "mft_4002" || fmt.Sprint(m["shipmentIds"]) != "[shp_2002 shp_2003]" {
		t.Errorf("the next manifest is %v", m)
	}
	if id := quote(t, a, quoteFor(order)).Rates[0].ID; strings.Contains(string(snapshot), id) {
		t.Errorf("the rate %s is given again", id)
	}

	for name, tc := range map[string]struct{ was, is, says string }{
		"rate":           {`"seq":6002`, `"seq":6001`, "rates[1]"},
		"last rate":      {`"lastRate":6003`, `"lastRate":6002`, "rates[2]"},
		"pickup":         {`"id":"pck_3002","seq":3002`, `"id":"pck_3002","seq":3001`, "pickups[1]"},
		"pickup's id":    {`"id":"pck_3001"`, `"id":""`, "pickups[0]"},
		"another's id":   {`"id":"pck_3001"`, `"id":"pck_3002"`, "pickups[0]"},
		"rate's id":      {`"id":"rate_6002"`, `"id":"rate_6003"`, "rates[1]"},
		"many rates":     {`"lastRate":6003`, `"lastRate":9223372036854775807`, "lastRate"},
		"manifest":       {`"id":"mft_4001"`, `"id":""`, "manifests[0]"},
		"no shipment":    {`"shipmentIds":["shp_2001"],"parcels"`, `"shipmentIds":["shp_9"],"parcels"`, "manifests[0]: there is no shipment"},
		"twice":          {`"shipmentIds":["shp_2001"],"parcels"`, `"shipmentIds":["shp_2001","shp_2001"],"parcels"`, "manifests[0]: there is no shipment"},
		"unknown member": {`"lastRate"`, `"colour":1,"lastRate"`, "colour"},
	} {
		bad := strings.Replace(string(snapshot), tc.was, tc.is, 1)
		if bad == string(snapshot) {
			t.Errorf("%s: nothing is spoilt in %s", name, snapshot)
		}
		if err := a.Restore([]byte(bad)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want one that says %q", name, err, tc.says)
		}
	}

	old.Reset()
	for _, path := range []string{"/pickups/pck_3001", "/manifests/mft_4001"} {
		old.get(t, path).want(t, 404)
	}
	if strings.Contains(string(old.Snapshot()), "pickups") {
		t.Errorf("after a reset the state is %s", old.Snapshot())
	}
	if err := a.Restore(old.Snapshot()); err != nil { // which has none of them, as older ones
		t.Fatal(err)
	}
	a.get(t, "/pickups/pck_3001").want(t, 404)
	if id := a.pickUp(t, "p", pickupOrder).want(t, 201)["id"]; id != "pck_3001" {
		t.Errorf("the first pickup is %v", id)
	}
}

func TestOrdersOfWorldsAreSeparate(t *testing.T) {
	w := newWorlds(t, 2, frozen())
	for _, world := range []string{"", "a", "b"} {
		in(w, world, "POST", "/v1/shipments", order, "Idempotency-Key", "s")
		for path, body := range map[string]string{"/v1/pickups": pickupOrder, "/v1/manifests": `{"date":"2026-03-02"}`, "/v1/rates": quoteFor(order)} {
			rec := in(w, world, "POST", path, body, "Idempotency-Key", path)
			if text := rec.body.String(); rec.status >= 300 || !strings.Contains(text, "pck_3001") && !strings.Contains(text, "mft_4001") && !strings.Contains(text, "rate_6001") {
				t.Errorf("world %q: %s: got %d %s", world, path, rec.status, text)
			}
		}
	}
	in(w, "a", "DELETE", "/v1/pickups/pck_3001", "")
	for world, want := range map[string]string{"": "requested", "a": "cancelled", "b": "requested"} {
		if got := in(w, world, "GET", "/v1/pickups/pck_3001", "").body.String(); !strings.Contains(got, want) {
			t.Errorf("world %q: %s", world, got)
		}
	}
}
