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

const pickupOrder = `{"address":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},` +
	`"date":"2026-03-03","from":"13:00","to":"17:00","parcelCount":2}`

func (a api) pickUp(t *testing.T, key, body string) reply {
	t.Helper()
	return a.do(t, "POST", "/pickups", body, "Idempotency-Key", key)
}

func TestLifeOfAPickup(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	ordered := a.pickUp(t, "k", pickupOrder)
	first := decoded[carrier.Pickup](t, ordered, 201)
	if ordered.Header.Get("Location") != "/v1/pickups/pck_3001" || first.ID != "pck_3001" || first.Charge.Amount != "0.00" ||
		first.Address.City != "Istanbul" || first.Date != "2026-03-03" || first.From != "13:00" || first.To != "17:00" ||
		first.ParcelCount != 2 || !first.CreatedAt.Time().Equal(noon) || first.Confirmation != "" {
		t.Errorf("got %s", ordered.body)
	}
	failing := with(pickupOrder, `"instructions":"FAULT-PICKUP-FAILED"`)
	a.pickUp(t, "l", failing).want(t, 201)
	a.Advance(time.Hour)
	if replay := a.pickUp(t, "k", pickupOrder); replay.body != ordered.body || replay.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the replay is %s", replay.body)
	}
	a.Advance(-time.Hour)
	a.pickUp(t, "k", failing).want(t, 422, "idempotency_key_reused")
	cancelled := a.pickUp(t, "m", pickupOrder).want(t, 201)["id"].(string)

	begins := time.Date(2026, 3, 3, 10, 0, 0, 0, time.UTC) // 13:00 in UTC+3
	var last reply
	for _, step := range []struct {
		at               time.Time
		status, failing  string
		cancel, andAgain int
	}{
		{noon, "requested", "requested", 200, 200},
		{noon.Add(2*time.Second - 1), "requested", "requested", 200, 200},
		{noon.Add(2 * time.Second), "confirmed", "confirmed", 200, 200},
		{begins.Add(-1), "confirmed", "confirmed", 200, 200},
		{begins, "confirmed", "confirmed", 409, 200},
		{begins.Add(4*time.Hour - 1), "confirmed", "confirmed", 409, 200},
		{begins.Add(4 * time.Hour), "picked_up", "failed", 409, 200},
	} {
		a.Advance(step.at.Sub(a.Now()))
		for id, want := range map[string]string{"pck_3001": step.status, "pck_3002": step.failing} {
			got := decoded[carrier.Pickup](t, a.get(t, "/pickups/"+id), 200)
			if string(got.Status) != want || (got.Confirmation != "") != (want != "requested") {
				t.Errorf("at %v: %+v, want %s", step.at, got, want)
			}
		}
		// What is cancelled stays as it is.
		again := a.do(t, "DELETE", "/pickups/"+cancelled, "")
		if again.want(t, step.andAgain)["status"] != "cancelled" || last.Response != nil && again.body != last.body {
			t.Errorf("at %v: %s, was %s", step.at, again.body, last.body)
		}
		last = again
		if step.cancel == 409 {
			a.do(t, "DELETE", "/pickups/pck_3001", "").want(t, 409, "already_picked_up")
		}
	}
	if len(a.Ledger()) != 0 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
	a.get(t, "/pickups/pck_9999").want(t, 404, "pickup_not_found")
	a.do(t, "DELETE", "/pickups/pck_9999", "").want(t, 404, "pickup_not_found")
	for _, method := range []string{"GET", "DELETE"} {
		if problem := a.do(t, method, "/pickups/a%20b", "").want(t, 400, "malformed_parameter"); pointers(problem) != "pickupId" {
			t.Errorf("got %v", problem)
		}
	}
}

func TestPickupsThatAreRefused(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithAPIKey(mockcarrier.APIKey, "other")))
	other := a
	other.key = "other"
	other.buy(t, "k", order).want(t, 201)
	a.buy(t, "k", order).want(t, 201)
	a.buy(t, "l", order).want(t, 201)
	a.do(t, "POST", "/shipments/shp_2003/cancel", "").want(t, 200)
	on := func(date, from, to string) string {
		return strings.NewReplacer("2026-03-03", date, "13:00", from, "17:00", to).Replace(pickupOrder)
	}
	for name, tc := range map[string]struct{ body, codes string }{
		"an hour":               {on("2026-03-03", "13:00", "14:00"), ""},
		"today":                 {on("2026-03-02", "13:00", "15:01"), ""}, // it is 15:00 there
		"less than an hour":     {on("2026-03-03", "13:00", "13:59"), "/to window_too_short"},
		"backwards":             {on("2026-03-03", "17:00", "13:00"), "/to window_too_short"},
		"over":                  {on("2026-03-02", "13:00", "15:00"), "/to past"},
		"yesterday":             {on("2026-03-01", "13:00", "17:00"), "/date past"},
		"yesterday and short":   {on("2026-03-01", "13:00", "13:00"), "/date past, /to window_too_short"},
		"no day":                {on("2026-02-30", "13:00", "17:00"), "/date format"},
		"no date":               {on("tomorrow", "13:00", "17:00"), "/date pattern"},
		"no time":               {on("2026-03-03", "13:00", "24:00"), "/to pattern"},
		"no parcels":            {strings.Replace(pickupOrder, `"parcelCount":2`, `"parcelCount":0`, 1), "/parcelCount minimum"},
		"shipments":             {with(pickupOrder, `"shipmentIds":["shp_2002"]`), ""},
		"shipments not to take": {with(pickupOrder, `"shipmentIds":["shp_2002","shp_9","shp_2003","shp_2001"]`), "/shipmentIds/1 not_found, /shipmentIds/2 cancelled, /shipmentIds/3 not_found"},
		"a shipment twice":      {with(pickupOrder, `"shipmentIds":["shp_2002","shp_2002"]`), "/shipmentIds uniqueItems"},
	} {
		t.Run(name, func(t *testing.T) {
			status := 201
			if tc.codes != "" {
				status = 422
			}
			if got := fieldCodes(a.pickUp(t, name, tc.body).want(t, status)); got != tc.codes {
				t.Errorf("got %s, want %s", got, tc.codes)
			}
		})
	}
	made := a.pickUp(t, "mine", pickupOrder).want(t, 201)["id"].(string)
	other.get(t, "/pickups/"+made).want(t, 404, "pickup_not_found")
	other.do(t, "DELETE", "/pickups/"+made, "").want(t, 404, "pickup_not_found")
	a.do(t, "POST", "/pickups", pickupOrder).want(t, 400, "idempotency_key_missing")
	a.Advance(9*time.Hour - 1) // 23:59:59 there
	a.pickUp(t, "late", on("2026-03-02", "13:00", "17:00")).want(t, 422)
	a.pickUp(t, "today", on("2026-03-02", "22:00", "23:59")).want(t, 422)
	a.Advance(1)
	if got := fieldCodes(a.pickUp(t, "midnight", on("2026-03-02", "22:00", "23:59")).want(t, 422)); got != "/date past" {
		t.Errorf("got %s", got)
	}
}

// One of many requests with one key orders a driver or closes the day, and the
// others are told so.
func TestConcurrentRequestsWithOneKeyActOnce(t *testing.T) {
	for path, tc := range map[string]struct{ body, first, second string }{
		"/pickups":   {pickupOrder, "pck_3001", "/pickups/pck_3002"},
		"/manifests": {`{"date":"2026-03-02"}`, "mft_4001", "/manifests/mft_4002"},
	} {
		t.Run(path, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t, frozen()))
			a.buy(t, "s", order).want(t, 201)
			var wg sync.WaitGroup
			answers := make([]reply, 50)
			for i := range answers {
				wg.Go(func() {
					var err error
					if answers[i], err = a.try("POST", path, tc.body, "Idempotency-Key", "k"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			first := 0
			for _, r := range answers {
				switch {
				case r.StatusCode == 201 && !strings.Contains(r.body, tc.first):
					t.Errorf("another: %s", r.body)
				case r.StatusCode == 201 && r.Header.Get("Idempotency-Replayed") == "":
					first++
				case r.StatusCode != 201:
					r.want(t, 409, "idempotency_in_progress")
				}
			}
			if first != 1 {
				t.Errorf("%d first answers", first)
			}
			a.get(t, tc.second).want(t, 404)
		})
	}
}

// A lost answer, and the same key again: one driver comes.
func TestPickupThroughALostAnswer(t *testing.T) {
	s := mockcarrier.StartInMemory(t, frozen())
	s.Inject(mockcarrier.HTML(502).AfterProcessing().On("createPickup").ForReference("order-1001").Times(1))
	s.Expect("createPickup").With(mockcarrier.Body("/date", "2026-03-03"), mockcarrier.Body("/shipmentIds/0", "shp_2001")).Times(2)
	s.Expect("createShipment").Times(1)
	client := sdk(t, s)
	shipment, err := client.CreateShipment(t.Context(), shipmentRequest())
	if err != nil {
		t.Fatal(err)
	}
	pickup, err := client.CreatePickup(t.Context(), carrier.PickupRequest{
		Address: shipmentRequest().From, Date: "2026-03-03", From: "13:00", To: "17:00", ParcelCount: 1, ShipmentIds: []string{shipment.ID},
	})
	if err != nil || pickup.ID != "pck_3001" {
		t.Fatalf("%v: got %+v", err, pickup)
	}
	var seen []string
	for _, r := range s.Requests()[1:] {
		seen = append(seen, fmt.Sprint(r.Operation, " ", r.Replayed))
	}
	if fmt.Sprint(seen) != "[createPickup false createPickup true]" {
		t.Errorf("the journal has %v", seen)
	}
	if cancelled, err := client.CancelPickup(t.Context(), pickup.ID); err != nil || cancelled.Status != carrier.PickupStatusCancelled {
		t.Errorf("%v: got %+v", err, cancelled)
	}
}
