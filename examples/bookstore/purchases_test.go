package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const purchase1001 = "/api/orders/order-1001/shipment"

// boughtOnce holds what was answered against the carrier's ledger.
func boughtOnce(t *testing.T, mock *mockcarrier.Server, a answer) {
	t.Helper()
	ledger := mock.Ledger()
	if len(ledger) != 1 {
		t.Fatalf("%d charges", len(ledger))
	}
	var got shipment
	a.decode(t, &got)
	if got.OrderID != ledger[0].Reference || got.TrackingNumber != ledger[0].TrackingNumber || got.Parcel != "/api/shipments/"+got.TrackingNumber ||
		got.Charge == nil || got.Charge.Amount != ledger[0].Amount {
		t.Errorf("got %s, and the ledger has %+v", a.body, ledger[0])
	}
}

func TestPurchaseRepeated(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		s := open(t, mock)
		first := s.expect(201, s.post(purchase1001))
		if first.header.Get("Location") != purchase1001 {
			t.Errorf("Location: %q", first.header.Get("Location"))
		}
		again := s.expect(200, s.post(purchase1001))
		if again.body != first.body {
			t.Errorf("got %s, then %s", first.body, again.body)
		}

		// The carrier knows the key for a day, and its list for good.
		mock.Advance(8 * 24 * time.Hour)
		s.expect(200, s.post(purchase1001))

		// Another process derives the same key.
		other := open(t, mock)
		boughtOnce(t, mock, other.expect(200, other.post(purchase1001)))
		if found := s.expect(200, s.get(purchase1001)); found.body != other.get(purchase1001).body {
			t.Errorf("found %s", found.body)
		}
	})
}

func TestPurchaseByManyAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Delay(time.Second)) // so that they do meet
		replicas := []*service{open(t, mock), open(t, mock)}
		var staff sync.WaitGroup
		var mu sync.Mutex
		bodies := map[string]int{}
		for i := range 16 {
			staff.Go(func() {
				s := replicas[i%2]
				a := s.post(purchase1001)
				if a.status != 200 && a.status != 201 {
					t.Errorf("got %d %s", a.status, a.body)
				}
				mu.Lock()
				defer mu.Unlock()
				bodies[a.body]++
			})
		}
		staff.Wait()
		if len(bodies) != 1 {
			t.Errorf("got %v", bodies)
		}
		for body := range bodies {
			boughtOnce(t, mock, answer{body: body})
		}
	})
}

// The carrier buys, and its answer is lost: the retry gets it.
func TestPurchaseWithLostAnswer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Truncate(20, mockcarrier.ByLength).On("createShipment").Times(1))
		s := open(t, mock)
		boughtOnce(t, mock, s.expect(201, s.post(purchase1001)))
		sent := mock.Requests()
		if len(sent) != 3 || sent[1].Replayed || !sent[2].Replayed || sent[1].Key != sent[2].Key {
			t.Errorf("the carrier has %+v", sent)
		}
	})
}

// A purchase may take longer than any limit that the server has for a client.
func TestPurchaseSlow(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Delay(7 * time.Second).On("createShipment"))
		mock.Inject(mockcarrier.StallAfter().On("createShipment").Times(1))
		s := open(t, mock)
		boughtOnce(t, mock, s.expect(201, s.post(purchase1001)))
		if n := asked(mock, "createShipment"); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
}

// What became of the purchase cannot be told in time: 202, and the place that it
// names knows.
func TestPurchaseUnknownThenFound(t *testing.T) {
	for name, fault := range map[string]mockcarrier.Fault{
		"it never answers":           mockcarrier.StallAfter(),
		"each answer is lost":        mockcarrier.ResetAfter(),
		"each answer is cut":         mockcarrier.Truncate(20, mockcarrier.ByLength),
		"no answer is readable":      mockcarrier.MalformedJSON(),
		"a gateway answers for it":   mockcarrier.HTML(502).AfterProcessing(),
		"it is still at it (409)":    mockcarrier.Status(409).AfterProcessing().WithBody(`{"code":"idempotency_in_progress"}`),
		"it answers 500 having sold": mockcarrier.Status(500).AfterProcessing(),
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				mock.Inject(fault.On("createShipment"))
				s := open(t, mock)
				var a answer
				if took := elapsed(func() { a = s.expect(202, s.post(purchase1001)) }); took > 20*time.Second {
					t.Errorf("it took %v, and the limit is 20s", took)
				}
				if a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"status":"unknown"`) {
					t.Errorf("got %v %s", a.header, a.body)
				}
				if lines := s.log.read(t, "outcome of a purchase unknown"); len(lines) != 1 || lines[0].Error.Message == "" {
					t.Errorf("logged %+v", lines)
				}
				mock.ClearFaults()
				time.Sleep(10 * time.Second) // the breaker may have to close first
				boughtOnce(t, mock, s.expect(200, s.get(a.header.Get("Location"))))
				boughtOnce(t, mock, s.expect(200, s.post(purchase1001)))
			})
		})
	}
}

// The same, and the carrier did not buy: the place says so, and to buy again is safe.
func TestPurchaseUnknownThenNotBought(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Stall().On("createShipment"))
		s := open(t, mock)
		a := s.expect(202, s.post(purchase1001))
		mock.ClearFaults()
		if a := s.expect(404, s.get(a.header.Get("Location"))); a.code() != "not_bought" {
			t.Errorf("got %s", a.body)
		}
		boughtOnce(t, mock, s.expect(201, s.post(purchase1001)))
	})
}

// The carrier takes the order, and is not ready with it.
func TestPurchasePending(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Status(202).WithBody(`{"id":"shp_1","status":"pending"}`).
			WithHeader("Content-Type", "application/json").On("createShipment"))
		s := open(t, mock)
		a := s.expect(202, s.post(purchase1001))
		if a.header.Get("Location") != purchase1001 || !strings.Contains(a.body, `"status":"pending"`) {
			t.Errorf("got %v %s", a.header, a.body)
		}
	})
}

func TestPurchasesThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		path    string
		fault   mockcarrier.Fault
		on      string
		status  int
		code    string
		mayFire bool
	}{
		"no such order":       {path: "/api/orders/order-9/shipment", status: 404, code: "unknown_order"},
		"no order id":         {path: "/api/orders/order_9/shipment", status: 400, code: "bad_order_id"},
		"the order is wrong":  {fault: mockcarrier.Status(422), on: "createShipment", status: 422, code: "order_refused"},
		"the order changed":   {fault: mockcarrier.Status(422).WithBody(`{"code":"idempotency_key_reused"}`), on: "createShipment", status: 409, code: "order_changed"},
		"our key is wrong":    {fault: mockcarrier.Status(401), on: "createShipment", status: 502, code: "carrier_failed"},
		"no way to look":      {fault: mockcarrier.Status(503), on: "listShipments", status: 502, code: "carrier_failed"},
		"looking takes long":  {fault: mockcarrier.Stall(), on: "listShipments", status: 504, code: "carrier_timeout"},
		"the list is missing": {fault: mockcarrier.Status(404), on: "listShipments", status: 502, code: "carrier_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				if tc.on != "" {
					mock.Inject(tc.fault.On(tc.on))
				}
				if tc.path == "" {
					tc.path = purchase1001
				}
				s := open(t, mock)
				if a := s.expect(tc.status, s.post(tc.path)); a.code() != tc.code || a.header.Get("Location") != "" {
					t.Errorf("got %v %s", a.header, a.body)
				}
				if n := len(mock.Ledger()); n != 0 {
					t.Errorf("%d charges", n)
				}
				if n := asked(mock, "createShipment"); tc.on != "createShipment" && n != 0 {
					t.Errorf("the carrier was asked %d times to sell", n)
				}
			})
		})
	}
}

// A buyer that leaves stops the purchase, and finds later what became of it.
func TestBuyerLeaves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.StallAfter().On("createShipment").Times(1))
		s := open(t, mock)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := s.try(ctx, http.MethodPost, purchase1001, ada, nil); err == nil {
			t.Fatal("it got an answer")
		}
		synctest.Wait()
		noneLeft(t, mock)
		if n := asked(mock, "createShipment"); n != 1 {
			t.Errorf("%d attempts to buy", n)
		}
		boughtOnce(t, mock, s.expect(200, s.post(purchase1001)))
	})
}
