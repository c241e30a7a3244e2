package mockcarrier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func frozen() mockcarrier.Option {
	return mockcarrier.WithClock(func() time.Time { return noon })
}

func TestFinishedCases(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	for number, status := range map[string]string{
		"BK1001TR": "in_transit", "BK1002TR": "delivered", "BK1003TR": "out_for_delivery",
	} {
		tracking := a.get(t, "/tracking/"+number).want(t, 200)
		if tracking["trackingNumber"] != number || tracking["status"] != status {
			t.Errorf("%s: got %v", number, tracking)
		}
	}

	events := a.get(t, "/tracking/BK1001TR").want(t, 200)["events"].([]any)
	var got []string
	for _, e := range events {
		e := e.(map[string]any)
		got = append(got, fmt.Sprint(e["status"], " ", e["location"]))
	}
	if fmt.Sprint(got) != "[label_created Istanbul in_transit Istanbul hub]" {
		t.Errorf("the events of BK1001TR are %v", got)
	}
	if signedBy := a.get(t, "/tracking/BK1002TR").want(t, 200)["signedBy"]; signedBy == nil {
		t.Error("nobody signed for BK1002TR")
	}
	a.Advance(1000 * time.Hour)
	if tracking := a.get(t, "/tracking/BK1003TR").want(t, 200); tracking["status"] != "out_for_delivery" {
		t.Errorf("a finished case has moved: %v", tracking)
	}

	for _, number := range []string{"BK9999TR", "BK2001TR", "NOSUCHPARCEL"} {
		a.get(t, "/tracking/"+number).want(t, 404, "tracking_not_found")
	}
}

func TestTrackingNumberLimits(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	for _, number := range []string{"BK1", "BK-1001", "%20BK1001TR", "BK1001TR%2F", strings.Repeat("A", 41)} {
		problem := a.get(t, "/tracking/"+number).want(t, 400, "malformed_parameter")
		if pointers(problem) != "trackingNumber" {
			t.Errorf("%s: %v", number, problem)
		}
	}
}

func TestTrackingIsConditional(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	a.buy(t, "k", order).want(t, 201)
	first := a.get(t, "/tracking/BK2001TR")
	first.want(t, 200)
	etag := first.Header.Get("ETag")
	for _, condition := range []string{etag, `"other", W/` + etag, "*"} {
		again := a.get(t, "/tracking/BK2001TR", "If-None-Match", condition)
		again.want(t, 304)
		if again.body != "" || again.Header.Get("ETag") != etag {
			t.Errorf("%s: got %q, ETag %s", condition, again.body, again.Header.Get("ETag"))
		}
	}
	a.get(t, "/tracking/BK2001TR", "If-None-Match", `"other"`).want(t, 200)
	a.Advance(5 * time.Hour)
	if moved := a.get(t, "/tracking/BK2001TR", "If-None-Match", etag); moved.want(t, 200)["status"] != "picked_up" {
		t.Errorf("got %s", moved.body)
	}
}

func TestLifeOfAParcel(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	a.buy(t, "k", order).want(t, 201)
	at := time.Duration(0)
	for _, step := range []struct {
		at     time.Duration
		status string
		events int
	}{
		{0, "label_created", 1},
		{4*time.Hour - 1, "label_created", 1},
		{4 * time.Hour, "picked_up", 2},
		{8 * time.Hour, "in_transit", 3},
		{20 * time.Hour, "in_transit", 4},
		{44 * time.Hour, "out_for_delivery", 5},
		{48 * time.Hour, "delivered", 6},
		{4800 * time.Hour, "delivered", 6},
	} {
		a.Advance(step.at - at)
		at = step.at
		tracking := a.get(t, "/tracking/BK2001TR").want(t, 200)
		if tracking["status"] != step.status || len(tracking["events"].([]any)) != step.events {
			t.Errorf("after %v: %v with %d events, want %s with %d", at, tracking["status"], len(tracking["events"].([]any)), step.status, step.events)
		}
		if delivered := tracking["deliveredAt"] != nil; delivered != (step.status == "delivered") || (tracking["signedBy"] != nil) != delivered {
			t.Errorf("after %v: delivered at %v, signed by %v", at, tracking["deliveredAt"], tracking["signedBy"])
		}
	}
}

func TestTrackBatch(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	results := a.do(t, "POST", "/tracking/batch", `{"trackingNumbers":["BK1001TR","BK9999TR"]}`).want(t, 200)["results"].([]any)
	good, bad := results[0].(map[string]any), results[1].(map[string]any)
	if good["tracking"].(map[string]any)["status"] != "in_transit" || good["error"] != nil {
		t.Errorf("got %v", good)
	}
	if bad["error"].(map[string]any)["code"] != "tracking_not_found" || bad["tracking"] != nil {
		t.Errorf("got %v", bad)
	}
	for body, where := range map[string]string{
		`{"trackingNumbers":[]}`: "/trackingNumbers",
		`{"trackingNumbers":["` + strings.Repeat(`BK1001TR","`, 30) + `BK1002TR"]}`: "/trackingNumbers",
		`{"trackingNumbers":["BK1001TR","x"]}`:                                      "/trackingNumbers/1",
		`{}`:                                                                        "/trackingNumbers",
	} {
		problem := a.do(t, "POST", "/tracking/batch", body).want(t, 422, "validation_failed")
		if !strings.Contains(pointers(problem), where) {
			t.Errorf("%s: %v", body, problem)
		}
	}
}

func TestCreateAndGetShipment(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	created := a.buy(t, "key-1", order)
	shipment := created.want(t, 201)
	if got := created.Header.Get("Location"); got != "/v1/shipments/shp_2001" {
		t.Errorf("Location %s", got)
	}
	for member, want := range map[string]string{
		"id": "shp_2001", "status": "created", "reference": "order-1001", "service": "standard",
		"trackingNumber": "BK2001TR", "idempotencyKey": "key-1", "createdAt": "2026-03-02T12:00:00Z",
	} {
		if shipment[member] != want {
			t.Errorf("%s is %v, want %s", member, shipment[member], want)
		}
	}
	if charge := fmt.Sprint(shipment["charge"]); charge != "map[amount:6.40 currency:EUR]" {
		t.Errorf("the charge is %s", charge)
	}
	if got := a.get(t, "/shipments/shp_2001"); got.body != created.body {
		t.Errorf("got %s, created %s", got.body, created.body)
	}
	a.get(t, "/shipments/shp_9999").want(t, 404, "shipment_not_found")
	a.get(t, "/shipments/a%20b").want(t, 400, "malformed_parameter")

	label := shipment["labels"].([]any)[0].(map[string]any)["url"].(string)
	a.get(t, strings.TrimPrefix(label, a.URL)).want(t, 200)

	want := mockcarrier.Charge{
		Key: "key-1", Reference: "order-1001", ShipmentID: "shp_2001", TrackingNumber: "BK2001TR",
		Amount: "6.40", Currency: "EUR", At: noon,
	}
	if ledger := a.Ledger(); len(ledger) != 1 || ledger[0] != want {
		t.Errorf("the ledger is %v", ledger)
	}
}

func TestShipmentOfSeveralParcelsAbroad(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	body := strings.NewReplacer(`"standard"`, `"express"`, `1.2`, `1.5`, `"country":"TR"},"parcels":[`,
		`"country":"CH"},"labelFormat":"zpl","parcels":[{"weight":{"value":800,"unit":"g"}},`).Replace(order)
	shipment := a.buy(t, "k", body).want(t, 201)
	if charge := fmt.Sprint(shipment["charge"]); charge != "map[amount:31.90 currency:EUR]" {
		t.Errorf("the charge is %s", charge)
	}
	if warnings := fmt.Sprint(shipment["warnings"]); !strings.Contains(warnings, "customs_missing") {
		t.Errorf("the warnings are %s", warnings)
	}
	if labels := fmt.Sprint(shipment["labels"]); !strings.Contains(labels, "format=zpl") {
		t.Errorf("the labels are %s", labels)
	}
	for _, number := range []string{"BK2001TR", "BK2001P2TR"} {
		tracking := a.get(t, "/tracking/"+number).want(t, 200)
		if tracking["trackingNumber"] != number || len(tracking["parcels"].([]any)) != 2 {
			t.Errorf("got %v", tracking)
		}
	}
	if zpl := a.get(t, "/shipments/shp_2001/label?format=zpl").body; strings.Count(zpl, "^XA") != 2 {
		t.Errorf("not two labels:\n%s", zpl)
	}
}

func TestAsynchronousShipment(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	accepted := a.buy(t, "k", order, "Prefer", "wait=5, respond-async")
	shipment := accepted.want(t, 202)
	if shipment["status"] != "pending" || shipment["trackingNumber"] != nil || accepted.Header.Get("Retry-After") != "2" {
		t.Errorf("got %s, Retry-After %s", accepted.body, accepted.Header.Get("Retry-After"))
	}
	if len(a.Ledger()) != 1 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
	a.get(t, "/tracking/BK2001TR").want(t, 404)
	a.get(t, "/shipments/shp_2001/label").want(t, 202)
	a.Advance(2 * time.Second)
	if shipment := a.get(t, "/shipments/shp_2001").want(t, 200); shipment["status"] != "created" || shipment["trackingNumber"] != "BK2001TR" {
		t.Errorf("got %v", shipment)
	}
	a.get(t, "/tracking/BK2001TR").want(t, 200)
	if replay := a.buy(t, "k", order); replay.StatusCode != 202 || replay.body != accepted.body {
		t.Errorf("the replay is %s %s", replay.Status, replay.body)
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	replaced := func(old, new string) string {
		body := strings.Replace(order, old, new, 1)
		if body == order {
			t.Fatalf("no %s in the order", old)
		}
		return body
	}
	for name, tc := range map[string]struct {
		body     string
		status   int
		pointers string
	}{
		"not JSON":              {"reference=order", 400, ""},
		"nothing":               {"   ", 400, ""},
		"two documents":         {order + "{}", 400, ""},
		"array":                 {"[]", 422, ""},
		"member of wrong type":  {replaced(`1.2`, `"1.2"`), 422, "/parcels/0/weight/value"},
		"unknown member":        {replaced(`{"ref`, `{"colour":"red","ref`), 422, "/colour"},
		"unknown member within": {replaced(`"city"`, `"town/x":"y","city"`), 422, "/from/town~1x"},
		"unknown member deep":   {replaced(`"unit"`, `"Unit":"g","unit"`), 422, "/parcels/0/weight/Unit"},
		"line too long":         {replaced("1 Main Street", strings.Repeat("é", 36)), 422, "/from/line1"},
		"line of most length":   {replaced("1 Main Street", strings.Repeat("é", 35)), 201, ""},
		"no weight":             {replaced(`"value":1.2`, `"value":0`), 422, "/parcels/0/weight/value"},
		"no parcel":             {replaced(`{"weight":{"value":1.2,"unit":"kg"}}`, ``), 422, "/parcels"},
		"no reference":          {replaced(`"reference":"order-1001",`, ``), 422, "/reference"},
		"country in lower case": {replaced(`"TR"`, `"tr"`), 422, "/from/country"},
		"unknown unit":          {replaced(`"kg"`, `"stone"`), 422, "/parcels/0/weight/unit"},
		"no postal code":        {replaced(`"34000"`, `""`), 201, ""},
		"null for an option":    {replaced(`"line1"`, `"line2":null,"line1"`), 422, "/from/line2"},
		"several at once": {
			strings.NewReplacer(`"standard"`, `7`, `"Istanbul"`, `["Istanbul"]`, `"34000"`, `true`, `{"value":1.2,"unit":"kg"}`, `"1.2 kg"`).Replace(order),
			422, "/from/city /from/postalCode /parcels/0/weight /service",
		},
		"limits and unknown members": {
			strings.NewReplacer(`{"ref`, `{"colour":null,"ref`, `"country":"TR"},"to"`, `"country":"tr"},"to"`).Replace(order), 422, "/colour /from/country",
		},
		"null in place": {replaced(`"order-1001"`, `null`), 422, "/reference"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(a.Ledger())
			problem := a.buy(t, name, tc.body).want(t, tc.status)
			if got := pointers(problem); got != tc.pointers {
				t.Errorf("it points at %q, want %q: %v", got, tc.pointers, problem)
			}
			if bought := len(a.Ledger()) - before; bought != 0 && tc.status != 201 {
				t.Errorf("%d bought", bought)
			}
		})
	}
	a.buy(t, "k", order, "-Content-Type", "", "Content-Type", "text/plain").want(t, 415)
	a.buy(t, "k", order, "-Content-Type", "").want(t, 415)
	a.buy(t, "k", "x=y", "-Content-Type", "", "Content-Type", "application/x-www-form-urlencoded").want(t, 415)
	a.buy(t, "k", order, "-Content-Type", "", "Content-Type", "application/json; charset=utf-8").want(t, 201)
	a.buy(t, "big", order+strings.Repeat(" ", 1<<20)).want(t, 413, "body_too_large")
}

func TestListShipments(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	empty := a.get(t, "/shipments").body
	if strings.TrimSpace(empty) != `{"items":[]}` {
		t.Errorf("the empty list is %s", empty)
	}
	for i := range 7 {
		a.buy(t, fmt.Sprint("key-", i), orderFor(fmt.Sprint("order-", i%3))).want(t, 201)
		a.Advance(time.Minute)
	}
	list := func(query string) (ids string, next string) {
		t.Helper()
		page := a.get(t, "/shipments"+query).want(t, 200)
		var all []string
		for _, item := range page["items"].([]any) {
			all = append(all, strings.TrimPrefix(item.(map[string]any)["id"].(string), "shp_200"))
		}
		next, _ = page["nextCursor"].(string)
		return strings.Join(all, ""), next
	}
	for query, want := range map[string]string{
		"":                                   "7654321",
		"?limit=7":                           "7654321",
		"?reference=order-1":                 "52",
		"?reference=order-9":                 "",
		"?idempotencyKey=key-3":              "4",
		"?idempotencyKey=key-3&reference=x":  "",
		"?createdAfter=2026-03-02T12:04:00Z": "76",
		"?createdAfter=2026-03-02T15:04:00%2B03:00&reference=order-0": "7",
	} {
		if got, next := list(query); got != want || next != "" {
			t.Errorf("%s: got %q, then %q, want %q", query, got, next, want)
		}
	}

	var walked []string
	query := "?limit=3"
	for {
		ids, next := list(query)
		walked = append(walked, ids)
		if next == "" {
			break
		}
		a.buy(t, "late-"+next, order).want(t, 201) // what is made meanwhile moves nothing
		query = "?limit=3&cursor=" + next
	}
	if fmt.Sprint(walked) != "[765 432 1]" {
		t.Errorf("the pages are %v", walked)
	}

	for query, name := range map[string]string{
		"?limit=0": "limit", "?limit=101": "limit", "?limit=x": "limit", "?cursor=": "cursor", "?cursor=%25": "cursor",
		"?cursor=bm9wZQ": "cursor", "?createdAfter=soon": "createdAfter", "?reference=" + strings.Repeat("x", 65): "reference",
	} {
		problem := a.get(t, "/shipments"+query).want(t, 400, "malformed_parameter")
		if pointers(problem) != name {
			t.Errorf("%s: %v", query, problem)
		}
	}
}

func TestEndlessPages(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	for i := range 3 {
		a.buy(t, fmt.Sprint(i), order).want(t, 201)
	}
	a.Inject(mockcarrier.EndlessPages())
	query, sizes := "?limit=2", []int(nil)
	for range 6 {
		page := a.get(t, "/shipments"+query).want(t, 200)
		sizes = append(sizes, len(page["items"].([]any)))
		query = "?limit=2&cursor=" + page["nextCursor"].(string)
	}
	if fmt.Sprint(sizes) != "[2 1 0 0 0 0]" {
		t.Errorf("the pages have %v", sizes)
	}
}

func TestUniqueReferences(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithUniqueReferences(), mockcarrier.WithAPIKey("one", "two")))
	a.key = "one"
	a.buy(t, "k", order).want(t, 201)
	a.buy(t, "l", order).want(t, 409, "duplicate_reference")
	a.buy(t, "k", order).want(t, 201) // the same intent
	a.buy(t, "m", orderFor("order-2")).want(t, 201)
	a.key = "two"
	a.buy(t, "k", order).want(t, 201)
	if len(a.Ledger()) != 3 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
}

func TestCancelShipment(t *testing.T) {
	cancel := func(a api, id string) reply { return a.do(t, "POST", "/shipments/"+id+"/cancel", "") }
	t.Run("soon", func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t, frozen()))
		a.buy(t, "k", order).want(t, 201)
		a.Advance(time.Hour)
		first := cancel(a, "shp_2001")
		shipment := first.want(t, 200)
		if shipment["status"] != "cancelled" || fmt.Sprint(shipment["charge"]) != "map[amount:0.00 currency:EUR]" {
			t.Errorf("got %v", shipment)
		}
		a.Advance(time.Hour)
		if again := cancel(a, "shp_2001"); again.body != first.body || again.StatusCode != 200 {
			t.Errorf("again: %s %s", again.Status, again.body)
		}
		a.get(t, "/shipments/shp_2001/label").want(t, 409, "shipment_cancelled")
		a.Advance(100 * time.Hour)
		if tracking := a.get(t, "/tracking/BK2001TR").want(t, 200); tracking["status"] != "cancelled" || len(tracking["events"].([]any)) != 2 {
			t.Errorf("got %v", tracking)
		}
	})
	t.Run("late", func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t, frozen()))
		a.buy(t, "k", order).want(t, 201)
		a.Advance(time.Hour + 1)
		for range 2 {
			if shipment := cancel(a, "shp_2001").want(t, 202); shipment["status"] != "refund_pending" {
				t.Errorf("got %v", shipment)
			}
		}
		a.Advance(24 * time.Hour)
		if shipment := cancel(a, "shp_2001").want(t, 200); shipment["status"] != "refunded" {
			t.Errorf("got %v", shipment)
		}
	})
	t.Run("too late", func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t, frozen()))
		a.buy(t, "k", order).want(t, 201)
		a.Advance(4 * time.Hour)
		cancel(a, "shp_2001").want(t, 409, "already_in_transit")
		cancel(a, "shp_2002").want(t, 404, "shipment_not_found")
		cancel(a, "a%20b").want(t, 400)
	})
}

func TestLabels(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithLabelTime(5*time.Second)))
	a.buy(t, "k", order).want(t, 201)
	pending := a.get(t, "/shipments/shp_2001/label")
	if document := pending.want(t, 202); document["status"] != "pending" || pending.Header.Get("Retry-After") != "5" {
		t.Errorf("got %s, Retry-After %s", pending.body, pending.Header.Get("Retry-After"))
	}
	a.Advance(5 * time.Second)

	pdf := a.get(t, "/shipments/shp_2001/label")
	pdf.want(t, 200)
	if pdf.Header.Get("Content-Type") != "application/pdf" || !strings.HasPrefix(pdf.body, "%PDF-1.") ||
		!strings.Contains(pdf.body, "(BK2001TR) Tj") || !strings.Contains(pdf.body, "(Deniz Kaya) Tj") {
		t.Errorf("no label: %v", pdf.Header)
	}
	zpl := a.get(t, "/shipments/shp_2001/label?format=zpl")
	if zpl.want(t, 200); zpl.Header.Get("Content-Type") != "application/zpl" || !strings.HasPrefix(zpl.body, "^XA") {
		t.Errorf("got %q", zpl.body)
	}
	image := a.get(t, "/shipments/shp_2001/label?format=png")
	if image.want(t, 200); image.Header.Get("Content-Type") != "image/png" {
		t.Errorf("got %v", image.Header)
	}
	if _, err := png.Decode(strings.NewReader(image.body)); err != nil {
		t.Error(err)
	}
	a.get(t, "/shipments/shp_2001/label?format=gif").want(t, 400, "malformed_parameter")
	a.get(t, "/shipments/shp_9999/label").want(t, 404, "shipment_not_found")

	etag := pdf.Header.Get("ETag")
	if etag == "" || pdf.Header.Get("Accept-Ranges") != "bytes" || pdf.ContentLength != int64(len(pdf.body)) {
		t.Errorf("got %v", pdf.Header)
	}
	a.get(t, "/shipments/shp_2001/label", "If-None-Match", etag).want(t, 304)
	rest := a.get(t, "/shipments/shp_2001/label", "Range", "bytes=100-", "If-Range", etag)
	if rest.want(t, 206); rest.body != pdf.body[100:] {
		t.Errorf("got %d of %d bytes", len(rest.body), len(pdf.body))
	}
	whole := a.get(t, "/shipments/shp_2001/label", "Range", "bytes=100-", "If-Range", `"other"`)
	if whole.want(t, 200); whole.body != pdf.body {
		t.Errorf("got %d of %d bytes", len(whole.body), len(pdf.body))
	}
	beyond := a.get(t, "/shipments/shp_2001/label", "Range", "bytes=99999999-")
	if beyond.want(t, 416); beyond.Header.Get("Content-Range") != fmt.Sprintf("bytes */%d", len(pdf.body)) {
		t.Errorf("got %v", beyond.Header)
	}

	a.Advance(90 * 24 * time.Hour)
	a.get(t, "/shipments/shp_2001/label").want(t, 410, "label_expired")
}

func TestStatus(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	status := a.get(t, "/status").want(t, 200)
	if status["state"] != "operational" || status["time"] != "2026-03-02T12:00:00Z" ||
		!strings.Contains(fmt.Sprint(status["maintenance"]), "startsAt:2026-03-08T01:00:00Z") {
		t.Errorf("got %v", status)
	}
}

func TestCredentials(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithAPIKey("one", "two")))
	for key, code := range map[string]string{
		"": "missing_api_key", "three": "invalid_api_key", mockcarrier.APIKey: "invalid_api_key",
	} {
		a.key = key
		refused := a.get(t, "/status")
		refused.want(t, 401, code)
		if refused.Header.Get("WWW-Authenticate") == "" {
			t.Error("no WWW-Authenticate")
		}
	}
	a.key = mockcarrier.ForbiddenAPIKey
	a.get(t, "/status").want(t, 403, "not_entitled")

	a.key = "one"
	a.buy(t, "k", order).want(t, 201)
	a.get(t, "/shipments/shp_2001").want(t, 200)
	a.key = "two"
	a.get(t, "/shipments/shp_2001").want(t, 404)
	if list := a.get(t, "/shipments").body; strings.TrimSpace(list) != `{"items":[]}` {
		t.Errorf("another account sees %s", list)
	}
	a.get(t, "/tracking/BK2001TR").want(t, 200) // numbers are for everybody
}

func TestRequestIDs(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	for id, same := range map[string]bool{
		"mine-1": true, "a.b_c:d/e+f=g@h": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, `a"b`: false, "é": false, "": false,
	} {
		if got := a.get(t, "/status", "X-Request-Id", id).Header.Get("X-Request-Id"); (got == id) != same || got == "" {
			t.Errorf("%q came back as %q", id, got)
		}
	}
	one, other := a.get(t, "/status").Header.Get("X-Request-Id"), a.get(t, "/status").Header.Get("X-Request-Id")
	if one == other {
		t.Errorf("two requests are %s", one)
	}
}

func TestRateLimit(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithRateLimit(2, time.Minute)))
	for _, left := range []string{"1", "0"} {
		r := a.get(t, "/status")
		r.want(t, 200)
		if got := r.Header.Get("RateLimit"); got != `"default";r=`+left+`;t=60` {
			t.Errorf("RateLimit %s", got)
		}
		if got := r.Header.Get("RateLimit-Policy"); got != `"default";q=2;w=60` {
			t.Errorf("RateLimit-Policy %s", got)
		}
	}
	a.Advance(500 * time.Millisecond)
	over := a.buy(t, "k", order)
	over.want(t, 429, "rate_limited")
	if got := over.Header.Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %s", got)
	}
	a.Advance(59500 * time.Millisecond)
	a.buy(t, "k", order).want(t, 201)
}

func TestRoutes(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithUnmatchedAllowed()))
	a.get(t, "/nowhere").want(t, 404, "not_found")
	a.get(t, "/tracking//BK1001TR").want(t, 404, "not_found")
	a.get(t, "/tracking/").want(t, 404, "not_found")
	for path, allow := range map[string]string{"/shipments": "GET, POST", "/shipments/shp_2001/cancel": "POST", "/status": "GET"} {
		r := a.do(t, "DELETE", path, "")
		if r.want(t, 405, "method_not_allowed"); !sameMembers(r.Header.Get("Allow"), allow) {
			t.Errorf("%s: Allow %s, want %s", path, r.Header.Get("Allow"), allow)
		}
	}
	for path, says := range map[string]string{
		"/v1/tracking/BK1001TR": "The base URL has /v1 already", "/v1": "The base URL has /v1 already", "/nowhere": "The API has no /v1/nowhere.",
	} {
		if detail := a.get(t, path).want(t, 404, "not_found")["detail"].(string); !strings.Contains(detail, says) {
			t.Errorf("%s: %s", path, detail)
		}
	}
	req, _ := http.NewRequest("GET", strings.TrimSuffix(a.URL, "/v1")+"/tracking/BK1001TR", nil)
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 404 || !strings.Contains(string(text), "It begins at /v1.") {
		t.Errorf("got %s %s", resp.Status, text)
	}
	head := a.do(t, "HEAD", "/tracking/BK1001TR", "")
	if head.want(t, 200); head.body != "" || head.ContentLength < 100 {
		t.Errorf("HEAD: %q, length %d", head.body, head.ContentLength)
	}
}

func sameMembers(a, b string) bool {
	members := func(s string) map[string]bool {
		m := map[string]bool{}
		for _, part := range strings.Split(s, ", ") {
			m[part] = true
		}
		return m
	}
	return fmt.Sprint(members(a)) == fmt.Sprint(members(b))
}

func TestReset(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	a.buy(t, "k", order).want(t, 201)
	a.Inject(mockcarrier.Status(503))
	a.Advance(time.Hour)
	a.Reset()
	if len(a.Requests()) != 0 || len(a.Ledger()) != 0 || !a.Now().Equal(noon) {
		t.Errorf("left: %v, %v, %v", a.Requests(), a.Ledger(), a.Now())
	}
	a.get(t, "/shipments/shp_2001").want(t, 404)
	if again := a.buy(t, "k", orderFor("order-2")); again.want(t, 201)["id"] != "shp_2001" {
		t.Errorf("got %s", again.body)
	}
}

func TestJournal(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		a := newAPI(start(t, frozen(), mockcarrier.WithUnmatchedAllowed()))
		a.Inject(mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(1))
		a.buy(t, "k", order, "Authorization", "Bearer secret").want(t, 503)
		a.buy(t, "k", order).want(t, 201)
		a.buy(t, "k", order).want(t, 201)
		a.get(t, "/tracking/BK1001TR?a=b").want(t, 200)
		a.get(t, "/nowhere").want(t, 404)

		journal := a.Requests()
		if len(journal) != 5 {
			t.Fatalf("%d requests", len(journal))
		}
		for i, want := range []mockcarrier.Request{
			{Operation: "createShipment", Status: 503, Fault: "status 503, Retry-After: 1", Key: "k"},
			{Operation: "createShipment", Status: 201, Key: "k"},
			{Operation: "createShipment", Status: 201, Key: "k", Replayed: true},
			{Operation: "getTracking", Status: 200, Query: "a=b"},
			{Status: 404},
		} {
			got := journal[i]
			if got.Seq != i+1 || got.Connection != 1 || got.Nth != i+1 || !got.At.Equal(noon) || got.Duration <= 0 || got.RequestID == "" {
				t.Errorf("entry %d: %+v", i, got)
			}
			if got.Operation != want.Operation || got.Status != want.Status || got.Fault != want.Fault ||
				got.Key != want.Key || got.Replayed != want.Replayed || got.Query != want.Query {
				t.Errorf("entry %d: %+v, want %+v", i, got, want)
			}
		}
		if journal[3].Parameters["trackingNumber"] != "BK1001TR" || !bytes.Contains(journal[4].Answer, []byte("not_found")) || journal[3].Answer != nil {
			t.Errorf("got %+v and %+v", journal[3], journal[4])
		}
		if journal[0].Method != "POST" || journal[0].Path != "/v1/shipments" || string(journal[0].Body) != order || journal[0].BodySize != len(order) {
			t.Errorf("got %+v", journal[0])
		}
		for _, entry := range journal {
			text, err := json.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte(mockcarrier.APIKey)) || bytes.Contains(text, []byte("secret")) {
				t.Errorf("a secret in %s", text)
			}
		}
		// What is handed out is the caller's.
		journal[0].Header.Set("X", "y")
		journal[0].Body[0] = 'x'
		if again := a.Requests()[0]; again.Header.Get("X") != "" || again.Body[0] != '{' {
			t.Error("the journal was changed from outside")
		}
	})
}

func TestJournalIsBounded(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithJournalLimit(10)))
	for range 25 {
		a.get(t, "/status").want(t, 200)
	}
	journal := a.Requests()
	if len(journal) > 10 || len(journal) < 5 || journal[len(journal)-1].Seq != 25 {
		t.Errorf("%d entries, the last is %d", len(journal), journal[len(journal)-1].Seq)
	}
	a.buy(t, "big", strings.Repeat(" ", 100<<10)).want(t, 400)
	if last := a.Requests()[len(a.Requests())-1]; len(last.Body) != 64<<10 || last.BodySize != 100<<10 {
		t.Errorf("%d of %d bytes are kept", len(last.Body), last.BodySize)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]mockcarrier.Option{
		"nil": nil, "no keys": mockcarrier.WithAPIKey(), "empty key": mockcarrier.WithAPIKey("a", ""),
		"no clock": mockcarrier.WithClock(nil), "policy": mockcarrier.WithIdempotencyPolicy(7),
		"TTL": mockcarrier.WithIdempotencyTTL(0), "logger": mockcarrier.WithLogger(nil),
		"latency": mockcarrier.WithLatency(-1), "label": mockcarrier.WithLabelTime(-1),
		"token life": mockcarrier.WithTokenLife(0), "client": mockcarrier.WithOAuth2Client("", "s"), "secret": mockcarrier.WithOAuth2Client("c", ""),
		"quota": mockcarrier.WithRateLimit(0, time.Second), "window": mockcarrier.WithRateLimit(1, 0),
		"journal": mockcarrier.WithJournalLimit(0),
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.HasPrefix(err.Error(), "mockcarrier: ") {
					t.Errorf("%s: New panics with %v", name, err)
				}
			}()
			mockcarrier.New(o)
		}()
		tb := &recordingTB{}
		func() {
			defer func() { _ = recover() }()
			mockcarrier.StartInMemory(tb, o)
		}()
		if !tb.Failed() {
			t.Errorf("%s: StartInMemory took it", name)
		}
	}
	keys := []string{"mine"}
	o := mockcarrier.WithAPIKey(keys...)
	keys[0] = "changed"
	a := newAPI(mockcarrier.StartInMemory(t, o))
	a.key = "mine"
	a.get(t, "/status").want(t, http.StatusOK)
}
