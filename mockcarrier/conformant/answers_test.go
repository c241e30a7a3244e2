package conformant

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const smallest = `{"reference":"order-1001","service":"standard",` +
	`"from":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},` +
	`"to":{"name":"Deniz Kaya","line1":"12 Park Avenue","city":"Ankara","postalCode":"06000","country":"TR"},` +
	`"parcels":[{"weight":{"value":1.2,"unit":"kg"}}]}`

// atNoon stops the clock.
func atNoon() mockcarrier.Option {
	return mockcarrier.WithClock(mockcarrier.NewManualClock(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)).Now)
}

// ratesFor is a request for the rates of a shipment.
func ratesFor(t *testing.T, shipment string) string {
	t.Helper()
	var given, asked map[string]any
	if err := json.Unmarshal([]byte(shipment), &given); err != nil {
		t.Fatal(err)
	}
	asked = map[string]any{"from": given["from"], "to": given["to"], "parcels": given["parcels"]}
	if insurance, ok := given["insurance"]; ok {
		asked["insurance"] = insurance
	}
	body, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func referring(reference string) string { return strings.Replace(smallest, "order-1001", reference, 1) }

// Each operation gives each answer that the description has for it, and no
// other. Whoever adds an operation adds its answers here.
func TestEveryAnswer(t *testing.T) {
	api := load(t)
	day := 24 * time.Hour
	for name, walk := range map[string]func(t *testing.T){
		"parcels that stay as they are": func(t *testing.T) {
			a := api.start(t)
			for _, number := range []string{"BK1001TR", "BK1002TR", "BK1003TR"} {
				etag := a.get("/tracking/"+number, 200).Header.Get("ETag")
				a.get("/tracking/"+number, 304, "If-None-Match", etag)
			}
			a.get("/tracking/BK9999TR", 404)
			a.get("/tracking/B", 400)
			a.post("/tracking/batch", `{"trackingNumbers":["BK1001TR","BK1002TR","BK9999TR","MC12"]}`, 200)
			a.post("/tracking/batch", `{"trackingNumbers":[]}`, 422)
			a.post("/tracking/batch", `{`, 400)
		},
		"scenarios": func(t *testing.T) {
			a := api.start(t)
			for i := 1; i <= 22; i++ {
				number := fmt.Sprintf("MC%02d", i)
				want := 200
				switch i {
				case 12:
					want = 410
				case 17:
					want = 404
				}
				a.odd = oddities[number]
				for range 7 {
					if number == "MC17" && len(a.Requests()) > 0 {
						want = 0
					}
					a.get("/tracking/"+number, want)
				}
				if number != "MC19" { // which is a fault of getTracking
					a.post("/tracking/batch", `{"trackingNumbers":["`+number+`"]}`, 200)
				}
				a.odd = nil
			}
			// Of the faults, those that answer as the description has it.
			for _, number := range []string{"MC40", "MC41", "MC42", "MC43", "MC44", "MC45", "MC45", "MC46", "MC56", "MC56", "MC57"} {
				a.get("/tracking/"+number, 0)
			}
		},
		"the life of a shipment": func(t *testing.T) {
			clock := mockcarrier.NewManualClock(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
			a := api.start(t, mockcarrier.WithClock(clock.Now), mockcarrier.WithLabelTime(time.Minute))
			for _, service := range []string{"standard", "express", "economy"} {
				a.buy(strings.Replace(smallest, "standard", service, 1), 201)
			}
			a.buy(smallest, 202, "Prefer", "respond-async")
			a.buy(full(t, api), 201)
			for range 130 {
				for i := 2001; i <= 2005; i++ {
					a.get(fmt.Sprintf("/tracking/BK%dTR", i), 0)
					a.get(fmt.Sprintf("/shipments/shp_%d", i), 200)
				}
				a.get("/shipments", 200)
				clock.Advance(time.Hour)
			}
		},
		"lists": func(t *testing.T) {
			a := api.start(t)
			a.get("/shipments", 200)
			for range 3 {
				a.buy(smallest, 201)
			}
			a.get("/shipments?limit=2", 200)
			a.get("/shipments?limit=2&reference=order-1001&idempotencyKey=1&createdAfter=2020-01-01T00:00:00Z", 200)
			a.get("/shipments?limit=0", 400)
			a.get("/shipments?cursor=none", 400)
		},
		"keys": func(t *testing.T) {
			a := api.start(t)
			a.post("/shipments", smallest, 201, "Idempotency-Key", "k")
			a.post("/shipments", smallest, 201, "Idempotency-Key", "k")
			a.post("/shipments", referring("order-2"), 422, "Idempotency-Key", "k")
			a.post("/shipments", smallest, 202, "Idempotency-Key", "l", "Prefer", "respond-async")
			a.post("/shipments", smallest, 202, "Idempotency-Key", "l")
			a.post("/shipments", smallest, 400)
			a.post("/shipments", smallest, 400, "Idempotency-Key", `"`)
			a.post("/shipments", referring("FAULT-409-INPROGRESS"), 409, "Idempotency-Key", "m")
			a.post("/shipments", referring("FAULT-409-INPROGRESS"), 201, "Idempotency-Key", "m")
			b := api.start(t, mockcarrier.WithUniqueReferences())
			b.buy(smallest, 201)
			b.buy(smallest, 409)
		},
		"cancellations": func(t *testing.T) {
			a := api.start(t)
			for _, reference := range []string{"order-1", "order-2", "order-3", "FAULT-REFUND-REJECTED"} {
				a.buy(referring(reference), 201)
			}
			each := func() {
				a.get("/shipments", 200)
				for i := 2001; i <= 2004; i++ {
					a.get(fmt.Sprintf("/shipments/shp_%d", i), 200)
					a.get(fmt.Sprintf("/tracking/BK%dTR", i), 200)
				}
			}
			a.post("/shipments/shp_2001/cancel", "", 200)
			a.post("/shipments/shp_2001/cancel", "", 200)
			a.post("/shipments/shp_2004/cancel", "", 202)
			each()
			a.Advance(2 * time.Hour)
			a.post("/shipments/shp_2002/cancel", "", 202)
			each()
			a.Advance(day)
			a.post("/shipments/shp_2003/cancel", "", 409)
			a.post("/shipments/shp_2002/cancel", "", 200)
			each()
			a.post("/shipments/shp_9999/cancel", "", 404)
			a.post("/shipments/a.b/cancel", "", 400)
			a.get("/shipments/shp_9999", 404)
			a.get("/shipments/a.b", 400)
		},
		"labels": func(t *testing.T) {
			a := api.start(t)
			a.buy(smallest, 201)
			a.buy(referring("FAULT-LABEL-PENDING"), 201)
			a.buy(referring("FAULT-LABEL-BLANK"), 201)
			a.buy(smallest, 201)
			a.get("/shipments/shp_2002/label", 202)
			for _, format := range []string{"", "?format=pdf", "?format=zpl", "?format=png"} {
				etag := a.get("/shipments/shp_2001/label"+format, 200).Header.Get("ETag")
				a.get("/shipments/shp_2001/label"+format, 304, "If-None-Match", etag)
				a.get("/shipments/shp_2003/label"+format, 200)
			}
			a.get("/shipments/shp_2001/label", 416, "Range", "bytes=99999999-")
			a.get("/shipments/shp_2001/label?format=gif", 400)
			a.get("/shipments/shp_9999/label", 404)
			a.post("/shipments/shp_2004/cancel", "", 200)
			a.get("/shipments/shp_2004/label", 409)
			a.Advance(91 * day)
			a.get("/shipments/shp_2001/label", 410)
		},
		"searches": func(t *testing.T) {
			a := api.start(t, atNoon())
			a.get("/tracking?reference=order-1001", 200)
			for range 3 {
				a.buy(smallest, 201)
			}
			a.buy(full(t, api), 201)
			for range 5 {
				a.get("/tracking?reference=order-1001", 200)
				a.get("/tracking?reference=order-1001&limit=2", 200)
				a.Advance(12 * time.Hour)
			}
			a.get("/tracking?reference=order-1001&cursor=none", 400)
			a.get("/tracking", 400)
		},
		"quotes": func(t *testing.T) {
			a := api.start(t, atNoon(), mockcarrier.WithUniqueReferences())
			for _, body := range []string{smallest, full(t, api)} {
				a.post("/shipments/validate", body, 200)
				a.post("/rates", ratesFor(t, body), 200)
			}
			heavy := strings.Replace(smallest, "1.2", "1000", 1)
			a.post("/shipments/validate", heavy, 200)
			a.post("/shipments/validate", strings.Replace(smallest, "standard", "drone", 1), 200)
			a.post("/rates", ratesFor(t, heavy), 200)
			a.post("/rates", strings.Replace(ratesFor(t, smallest), "{", `{"services":["drone","express"],`, 1), 200)
			for _, path := range []string{"/rates", "/shipments/validate"} {
				a.post(path, "{}", 422)
				a.post(path, "{", 400)
			}
			at := func(rate string) string { return strings.Replace(smallest, "{", `{"rateId":"`+rate+`",`, 1) }
			a.post("/shipments/validate", at("rate_6001"), 422) // of another service
			a.post("/shipments/validate", at("rate_9999"), 422)
			a.post("/shipments/validate", at("rate_6002"), 200)
			a.buy(at("rate_6001"), 422)
			a.buy(at("rate_6002"), 201)
			a.post("/shipments/validate", at("rate_6002"), 409) // the reference has been given
			a.Advance(10 * time.Minute)
			a.post("/shipments/validate", at("rate_6002"), 422)
		},
		"pickups": func(t *testing.T) {
			a := api.start(t, atNoon())
			a.buy(smallest, 201)
			const pickup = `{"address":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},` +
				`"date":"2026-03-03","from":"13:00","to":"17:00","parcelCount":2,"shipmentIds":["shp_2001"]}`
			failing := strings.Replace(pickup, "{", `{"instructions":"FAULT-PICKUP-FAILED",`, 1)
			for i, body := range []string{pickup, failing, pickup} {
				for range 2 {
					a.post("/pickups", body, 201, "Idempotency-Key", fmt.Sprint("p", i))
				}
			}
			a.post("/pickups", pickup, 422, "Idempotency-Key", "p1")
			a.post("/pickups", strings.Replace(pickup, "2001", "9", 1), 422, "Idempotency-Key", "n")
			a.post("/pickups", strings.Replace(pickup, "03-03", "03-01", 1), 422, "Idempotency-Key", "n")
			a.post("/pickups", pickup, 400)
			a.Inject(mockcarrier.Status(409).WithCode("idempotency_in_progress").On("createPickup").Times(1))
			a.post("/pickups", pickup, 409, "Idempotency-Key", "n")
			cancel := func(id string, want int) { a.send(a.request("DELETE", "/pickups/"+id, ""), want) }
			cancel("pck_3003", 200)
			for range 30 {
				for i := 3001; i <= 3003; i++ {
					a.get(fmt.Sprintf("/pickups/pck_%d", i), 200)
				}
				cancel("pck_3003", 200)
				a.Advance(time.Hour)
			}
			cancel("pck_3001", 409)
			cancel("pck_9999", 404)
			cancel("a.b", 400)
			a.get("/pickups/pck_9999", 404)
			a.get("/pickups/a.b", 400)
		},
		"manifests": func(t *testing.T) {
			a := api.start(t, atNoon())
			const today = `{"date":"2026-03-02"}`
			a.post("/manifests", today, 422, "Idempotency-Key", "k")
			for range 3 {
				a.buy(smallest, 201)
			}
			a.post("/manifests", `{"date":"2026-03-02","shipmentIds":["shp_2001"]}`, 201, "Idempotency-Key", "some")
			a.post("/manifests", `{"date":"2026-03-02","shipmentIds":["shp_2001","shp_9"]}`, 422, "Idempotency-Key", "again")
			a.post("/manifests", `{"date":"2026-03-01"}`, 422, "Idempotency-Key", "yesterday")
			for range 2 {
				a.post("/manifests", today, 201, "Idempotency-Key", "k")
			}
			a.post("/manifests", `{"date":"2026-03-03"}`, 422, "Idempotency-Key", "k")
			a.post("/manifests", today, 400)
			a.Inject(mockcarrier.Status(409).WithCode("idempotency_in_progress").On("createManifest").Times(1))
			a.post("/manifests", today, 409, "Idempotency-Key", "l")
			for range 5 {
				a.get("/manifests/mft_4001", 200)
				a.get("/manifests/mft_4002", 200)
				a.get("/shipments", 200)
				a.post("/shipments/shp_2001/cancel", "", 409)
				a.get("/tracking/BK2001TR", 200)
				a.Advance(12 * time.Hour)
			}
			a.get("/manifests/mft_9999", 404)
			a.get("/manifests/a.b", 400)
		},
		"addresses": func(t *testing.T) {
			a := api.start(t)
			for _, code := range []string{"34000", "34 000", "3400", "99901", "99902", "99903", "99904"} {
				for _, country := range []string{"TR", "CH", "US", "HK", "AQ"} {
					a.post("/addresses/validate", `{"name":"Ada Books","company":"Ada Books Ltd","line1":"1 main street","city":"istanbul","region":"ny",`+
						`"postalCode":"`+code+`","country":"`+country+`"}`, 200)
					a.get("/service-points?country="+country+"&limit=50&postalCode="+url.QueryEscape(code), 200)
				}
			}
			a.post("/addresses/validate", "{}", 422)
			a.post("/addresses/validate", "{", 400)
			a.get("/service-points?country=TR", 400)
		},
		"status": func(t *testing.T) {
			a := api.start(t)
			for range 8 {
				a.get("/status", 200)
				a.Advance(day)
			}
		},
		"exports":       func(t *testing.T) { exports(t, api) },
		"proofs":        func(t *testing.T) { proofs(t, api) },
		"subscriptions": func(t *testing.T) { subscriptions(t, api) },
		"what any operation may answer": func(t *testing.T) {
			for id, op := range api.operations() {
				request := func(a *account, want int, headers ...string) {
					body := ""
					if op.RequestBody != nil {
						body = smallest
					}
					path := inPath.Replace(op.path) + "?" + op.query(t, "").Encode()
					a.send(a.request(op.method, path, body, append([]string{"Idempotency-Key", "k"}, headers...)...), want)
				}
				a := api.start(t, mockcarrier.WithRateLimit(1, time.Minute))
				request(a, 401, "X-Api-Key", "")
				request(a, 401, "X-Api-Key", "wrong")
				request(a, 401, "X-Api-Key", "", "Authorization", "Bearer wrong")
				request(a, 403, "X-Api-Key", mockcarrier.ForbiddenAPIKey)
				request(a, 0)
				request(a, 429)
				for _, status := range []int{500, 503} {
					a.Inject(mockcarrier.Status(status).RetryAfter(1).Times(1))
					request(a, status)
				}
				if op.RequestBody != nil {
					a := api.start(t)
					request(a, 415, "Content-Type", "text/plain")
				}
				if !slices.Contains(op.statuses(), "401") {
					t.Errorf("%s has no 401", id)
				}
			}
		},
		"too large": func(t *testing.T) {
			api.start(t).buy(smallest+strings.Repeat(" ", 1<<20), 413)
		},
	} {
		t.Run(name, walk)
	}

	for id, op := range api.operations() {
		for _, status := range op.statuses() {
			if !api.seen[id+" "+status] {
				t.Errorf("%s has never answered %s", id, status)
			}
		}
	}
}

// oddities are the scenarios that break the description on purpose, and how.
var oddities = map[string]func(error) bool{
	"MC13": breaches("value is not one of the allowed values"),
	"MC18": breaches(`string doesn't match the format "date-time"`),
	"MC19": breaches("value is not one of the allowed values", `string doesn't match the format "date-time"`),
}

func breaches(parts ...string) func(error) bool {
	return func(err error) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) })
	}
}

// Parts of a label are answered with 206, for which the description has words
// but no answer of its own: only that they are the right bytes is held to it.
func TestPartsOfALabel(t *testing.T) {
	api := load(t)
	a := api.start(t)
	a.buy(smallest, 201)
	_, whole := a.send(a.request("GET", "/shipments/shp_2001/label", ""), 200)
	a.odd = func(error) bool { return true }
	if resp, documented := api.operations()["getLabel"].Responses.Map()["206"]; documented {
		a.odd = nil
		t.Log(*resp.Value.Description)
	}
	resp, part := a.send(a.request("GET", "/shipments/shp_2001/label", "", "Range", "bytes=10-19"), 206)
	if string(part) != string(whole[10:20]) || resp.Header.Get("Content-Range") != fmt.Sprintf("bytes 10-19/%d", len(whole)) {
		t.Errorf("got %q of %v", part, resp.Header)
	}
}

// A long walk through states that nobody has thought of.
func TestRandomWalk(t *testing.T) {
	api := load(t)
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			clock := mockcarrier.NewManualClock(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
			a := api.start(t, mockcarrier.WithClock(clock.Now), mockcarrier.WithLabelTime(time.Minute))
			bodyOf := func(id string) string {
				schema := api.operations()[id].RequestBody.Value.Content["application/json"].Schema
				document, err := json.Marshal(samples{t, random}.document(schema, ""))
				if err != nil {
					t.Fatal(err)
				}
				return string(document)
			}
			for i := range 500 {
				n := 2001 + random.IntN(10)
				switch random.IntN(14) {
				case 0, 1:
					headers := []string(nil)
					if random.IntN(4) == 0 {
						headers = []string{"Prefer", "respond-async"}
					}
					a.buy(bodyOf("createShipment"), 0, headers...)
				case 2:
					a.post(fmt.Sprintf("/shipments/shp_%d/cancel", n), "", 0)
				case 3:
					a.get(fmt.Sprintf("/shipments/shp_%d", n), 0)
				case 4:
					a.get(fmt.Sprintf("/shipments/shp_%d/label?format=%s", n, []string{"pdf", "zpl", "png"}[random.IntN(3)]), 0)
				case 5:
					a.post("/tracking/batch", fmt.Sprintf(`{"trackingNumbers":["BK%dTR","BK%dP2TR"]}`, n, n), 200)
				case 6:
					a.get("/shipments?limit=3", 200)
				case 7:
					a.get("/tracking?limit=3&reference=order-1001", 200)
				case 8:
					a.post("/shipments/validate", bodyOf("validateShipment"), 200)
				case 9:
					a.post("/rates", bodyOf("quoteRates"), 200)
				case 10:
					a.post("/pickups", bodyOf("createPickup"), 0, "Idempotency-Key", fmt.Sprint("p", i))
					a.send(a.request([]string{"GET", "DELETE"}[random.IntN(2)], fmt.Sprintf("/pickups/pck_%d", n+1000), ""), 0)
				case 11:
					a.post("/manifests", fmt.Sprintf(`{"date":"2026-03-09","shipmentIds":["shp_%d"]}`, n), 0, "Idempotency-Key", fmt.Sprint("m", i))
					a.get(fmt.Sprintf("/manifests/mft_%d", n+2000), 0)
				case 12:
					a.post("/addresses/validate", bodyOf("validateAddress"), 200)
				default:
					a.get(fmt.Sprintf("/tracking/BK%dTR", n), 0)
					clock.Advance(time.Duration(random.Int64N(int64(12 * time.Hour))))
				}
			}
			if len(a.Ledger()) < 10 {
				t.Errorf("%d shipments were bought", len(a.Ledger()))
			}
		})
	}
}

// What no operation is for is refused with problem details as well.
func TestProblemsOutsideTheOperations(t *testing.T) {
	api := load(t)
	a := api.start(t)
	schema := api.Components.Schemas["Problem"].Value
	for _, path := range []string{"/nowhere", "/v1/status", "/shipments"} {
		resp, body := a.send(a.request("DELETE", path, ""), 0)
		var document any
		if err := json.Unmarshal(body, &document); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(document); err != nil || resp.StatusCode < 404 || resp.StatusCode > 405 ||
			resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %v: %v", path, resp.Status, resp.Header, err)
		}
	}
}
