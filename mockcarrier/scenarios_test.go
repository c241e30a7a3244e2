package mockcarrier_test

import (
	"errors"
	"fmt"
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
		"MC09": "returned", "MC10": "cancelled", "MC11": "lost", "MC13": "handed_to_a_drone",
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
