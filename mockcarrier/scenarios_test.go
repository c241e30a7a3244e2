package mockcarrier_test

import (
	"errors"
	"fmt"
	"image/png"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestScenarioStates(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	for number, status := range map[string]string{
		"MC01": "label_created", "MC02": "in_transit", "MC03": "out_for_delivery", "MC04": "delivered",
		"MC05": "available_for_pickup", "MC06": "delivered", "MC07": "exception", "MC08": "return_to_sender",
		"MC09": "returned", "MC10": "cancelled", "MC11": "lost", "MC13": "handed_to_a_drone", "MC14": "in_transit",
		"MC16": "in_transit", "MC18": "in_transit", "MC20": "in_transit", "MC21": "in_transit", "MC22": "delivered",
	} {
		for _, number := range []string{number, number + "TR7"} {
			tracking := a.get(t, "/tracking/"+number).want(t, 200)
			if tracking["status"] != status || tracking["trackingNumber"] != number {
				t.Errorf("%s: got %v", number, tracking)
			}
			if events := len(tracking["events"].([]any)); strings.HasPrefix(number, "MC21") && events != 500 {
				t.Errorf("%s: %d events", number, events)
			}
			if parcels, _ := tracking["parcels"].([]any); strings.HasPrefix(number, "MC16") && len(parcels) != 3 {
				t.Errorf("%s: %d parcels", number, len(parcels))
			}
		}
	}
	if at := a.get(t, "/tracking/MC18").body; strings.Contains(at, "+03:00") {
		t.Errorf("MC18: a time has a zone: %s", at)
	}
	if odd := a.get(t, "/tracking/MC19").want(t, 200); odd["status"] != "" || odd["estimatedDelivery"] != nil {
		t.Errorf("MC19: got %v", odd)
	}
	a.get(t, "/tracking/MC99").want(t, 404)
	a.get(t, "/tracking/MC40").want(t, 404, "tracking_not_found")
	a.get(t, "/tracking/MC12").want(t, 410, "tracking_expired")
}

// A number that was given twice shows the history of both parcels, and is found
// twice.
func TestRecycledNumber(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	var story []string
	for _, e := range a.get(t, "/tracking/MC14").want(t, 200)["events"].([]any) {
		e := e.(map[string]any)
		story = append(story, fmt.Sprint(e["at"].(string)[:4], " ", e["status"]))
	}
	if got := strings.Join(story, ", "); got != "2025 label_created, 2025 picked_up, 2025 in_transit, 2025 out_for_delivery, 2025 delivered, "+
		"2026 label_created, 2026 picked_up, 2026 in_transit, 2026 in_transit" {
		t.Errorf("got %s", got)
	}
	results := a.do(t, "POST", "/tracking/batch", `{"trackingNumbers":["MC14","MC12","MC01"]}`).want(t, 200)["results"].([]any)
	var found []string
	for _, r := range results {
		entry := r.(map[string]any)
		if tracking, ok := entry["tracking"].(map[string]any); ok {
			found = append(found, fmt.Sprint(entry["trackingNumber"], " ", tracking["status"]))
		} else {
			found = append(found, fmt.Sprint(entry["trackingNumber"], " ", entry["error"].(map[string]any)["code"]))
		}
	}
	if got := strings.Join(found, ", "); got != "MC14 in_transit, MC14 delivered, MC12 tracking_expired, MC01 label_created" {
		t.Errorf("got %s", got)
	}
}

func TestScenariosThatMove(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	for _, number := range []string{"MC15", "MC15TR", "MC15"} { // each number by itself
		if number == "MC15" && len(a.Requests()) > 0 {
			a.Reset()
		}
		for i, status := range []string{"label_created", "picked_up", "in_transit", "in_transit", "out_for_delivery", "delivered", "delivered"} {
			tracking := a.get(t, "/tracking/"+number).want(t, 200)
			if events := len(tracking["events"].([]any)); tracking["status"] != status || events != min(i+1, 6) {
				t.Errorf("%s: call %d: %v with %d events", number, i+1, tracking["status"], events)
			}
		}
	}
	for range 3 {
		a.get(t, "/tracking/MC17").want(t, 404, "tracking_not_found")
	}
	if got := a.get(t, "/tracking/MC17").want(t, 200)["status"]; got != "label_created" {
		t.Errorf("MC17: %v", got)
	}
}

func TestScenarioFaults(t *testing.T) {
	timeout := errors.New("timeout")
	for number, want := range map[string][]any{ // what comes, request by request
		"MC12": {410, 410}, "MC17": {404, 404, 404, 200}, "MC40": {404}, "MC41": {400}, "MC42": {429, 429}, "MC43": {429},
		"MC44": {429}, "MC45": {503, 200}, "MC46": {503, 503, 503}, "MC47": {502}, "MC48": {200}, "MC49": {200},
		"MC50": {200}, "MC51": {timeout}, "MC52": {syscall.ECONNRESET}, "MC53": {syscall.ECONNRESET},
		"MC56": {401, 200}, "MC57": {403, 403}, "MC58": {204}, "MC60": {204},
	} {
		t.Run(number, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(mockcarrier.StartInMemory(t))
				a.client.Timeout = 10 * time.Second
				for i, want := range want {
					r, err := a.try("GET", "/tracking/"+number+"TR", "")
					var netErr net.Error
					if errors.As(err, &netErr) && netErr.Timeout() {
						err = timeout
					}
					if status, ok := want.(int); ok && (err != nil || r.StatusCode != status) {
						t.Errorf("request %d: got %v %v, want %d", i+1, r.Response, err, status)
					}
					if wantErr, ok := want.(error); ok && !errors.Is(err, wantErr) {
						t.Errorf("request %d: got %v, want %v", i+1, err, wantErr)
					}
				}
				switch number {
				case "MC57":
					a.Advance(time.Minute)
					a.get(t, "/tracking/MC57TR").want(t, 200)
				case "MC45":
					a.get(t, "/tracking/MC45OTHER").want(t, 503) // each number once
				case "MC44":
					if got := a.get(t, "/tracking/MC44").Header.Get("X-RateLimit-Reset"); got != fmt.Sprint(a.Now().Unix()+1) {
						t.Errorf("X-RateLimit-Reset %s", got)
					}
				case "MC43":
					if at, err := time.Parse(time.RFC1123, a.get(t, "/tracking/MC43").Header.Get("Retry-After")); err != nil || !at.Equal(a.Now().Add(time.Second)) {
						t.Errorf("Retry-After %v, %v", at, err)
					}
				}
			})
		})
	}
	// Those that need a look at the body fail to read.
	a := newAPI(mockcarrier.StartInMemory(t))
	for _, number := range []string{"MC54", "MC59"} {
		if _, err := a.try("GET", "/tracking/"+number, ""); err == nil {
			t.Errorf("%s: it could be read", number)
		}
	}
	if got := a.get(t, "/tracking/MC55").Header.Get("Content-Type"); got != "text/plain" {
		t.Errorf("MC55: %s", got)
	}
}

func TestReferenceFaults(t *testing.T) {
	for reference, want := range map[string]string{
		"FAULT-RESET-AFTER-COMMIT": "bought", "FAULT-TIMEOUT-AFTER-COMMIT-7": "bought", "FAULT-503-BEFORE-COMMIT": "not bought",
	} {
		t.Run(reference, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(mockcarrier.StartInMemory(t))
				a.client.Timeout = time.Second
				for i := range 2 {
					key := fmt.Sprint("k", i)
					if r, err := a.try("POST", "/shipments", orderFor(reference), "Idempotency-Key", key); err == nil && r.StatusCode == 201 &&
						r.Header.Get("Idempotency-Replayed") != "true" { // net/http may have sent again by itself
						t.Errorf("%s: got %s", key, r.Status)
					}
					if bought := len(a.Ledger()) - i; (bought == 1) != (want == "bought") {
						t.Errorf("%s: %d bought", key, bought)
					}
					a.buy(t, key, orderFor(reference)).want(t, 201)
					if len(a.Ledger()) != i+1 {
						t.Errorf("%s: the ledger is %v", key, a.Ledger())
					}
				}
			})
		})
	}
	a := newAPI(mockcarrier.StartInMemory(t))
	a.buy(t, "k", orderFor("FAULT-RESET-AFTER-COMMITTEE")).want(t, 201)
}

func TestReferencesThatChangeAShipment(t *testing.T) {
	bubble := func(reference string, test func(t *testing.T, a api)) {
		t.Run(reference, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newAPI(mockcarrier.StartInMemory(t))) })
		})
	}
	bubble("FAULT-409-INPROGRESS", func(t *testing.T, a api) {
		first := a.buy(t, "k", orderFor("FAULT-409-INPROGRESS-1"))
		first.want(t, 409, "idempotency_in_progress")
		if first.Header.Get("Retry-After") != "1" || len(a.Ledger()) != 0 {
			t.Errorf("got %v, bought %v", first.Header, a.Ledger())
		}
		a.buy(t, "k", orderFor("FAULT-409-INPROGRESS-1")).want(t, 201)
		a.buy(t, "l", orderFor("FAULT-409-INPROGRESS-1")).want(t, 409)
	})
	bubble("FAULT-ASYNC", func(t *testing.T, a api) {
		if shipment := a.buy(t, "k", orderFor("FAULT-ASYNC")).want(t, 202); shipment["status"] != "pending" {
			t.Errorf("got %v", shipment)
		}
		time.Sleep(2 * time.Second)
		if shipment := a.get(t, "/shipments/shp_2001").want(t, 200); shipment["status"] != "created" {
			t.Errorf("got %v", shipment)
		}
	})
	bubble("FAULT-LABEL-PENDING", func(t *testing.T, a api) {
		a.buy(t, "k", orderFor("FAULT-LABEL-PENDING")).want(t, 201)
		pending := a.get(t, "/shipments/shp_2001/label")
		if pending.want(t, 202); pending.Header.Get("Retry-After") != "2" {
			t.Errorf("got %v", pending.Header)
		}
		time.Sleep(2 * time.Second)
		a.get(t, "/shipments/shp_2001/label").want(t, 200)
	})
	bubble("FAULT-LABEL-BLANK", func(t *testing.T, a api) {
		a.buy(t, "k", orderFor("FAULT-LABEL-BLANK")).want(t, 201)
		pdf, zpl := a.get(t, "/shipments/shp_2001/label"), a.get(t, "/shipments/shp_2001/label?format=zpl")
		if !strings.HasPrefix(pdf.body, "%PDF-1.") || strings.Contains(pdf.body, "BK2001TR") {
			t.Errorf("the label is\n%s", pdf.body)
		}
		if !strings.HasPrefix(zpl.body, "^XA") || strings.Contains(zpl.body, "^FD") {
			t.Errorf("the label is %s", zpl.body)
		}
		picture, err := png.Decode(strings.NewReader(a.get(t, "/shipments/shp_2001/label?format=png").body))
		if err != nil {
			t.Fatal(err)
		}
		for x := range picture.Bounds().Dx() {
			if r, _, _, _ := picture.At(x, 500).RGBA(); r == 0 {
				t.Fatalf("there is something at %d", x)
			}
		}
	})
	bubble("FAULT-REFUND-REJECTED", func(t *testing.T, a api) {
		a.buy(t, "k", orderFor("FAULT-REFUND-REJECTED")).want(t, 201)
		if shipment := a.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 202); shipment["status"] != "refund_pending" {
			t.Errorf("got %v", shipment)
		}
		a.Advance(24 * time.Hour)
		shipment := a.get(t, "/shipments/shp_2001").want(t, 200)
		if shipment["status"] != "refund_rejected" || fmt.Sprint(shipment["charge"]) != "map[amount:6.40 currency:EUR]" {
			t.Errorf("got %v", shipment)
		}
	})
}
