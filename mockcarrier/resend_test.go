package mockcarrier_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// resends lists the journal: the operation of each request, and of which it is
// the repetition.
func resends(s *mockcarrier.Server) string {
	var list []string
	for _, r := range s.Requests() {
		list = append(list, fmt.Sprint(r.Operation, " ", r.ResentOf))
	}
	return strings.Join(list, ", ")
}

// What net/http sends again by itself, on a connection that it had used before,
// is told from what its caller sends again.
func TestResentByNetHTTP(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		for name, tc := range map[string]struct {
			fault       mockcarrier.Fault
			method, key string
			cold        bool // on a connection of its own
			want        string
		}{
			"keyed, closed before": {fault: mockcarrier.CloseBefore(), method: "POST", key: "k", want: "createShipment 0, createShipment 2"},
			"keyed, closed after":  {fault: mockcarrier.CloseAfter(), method: "POST", key: "k", want: "createShipment 0, createShipment 2"},
			"keyed, reset":         {fault: mockcarrier.ResetAfter(), method: "POST", key: "k", want: "createShipment 0, createShipment 2"},
			"keyed, cold":          {fault: mockcarrier.CloseBefore(), method: "POST", key: "k", cold: true, want: "createShipment 0"},
			"no key":               {fault: mockcarrier.CloseBefore(), method: "POST", want: "createShipment 0"},
			"read":                 {fault: mockcarrier.CloseBefore(), method: "GET", want: "listShipments 0, listShipments 2"},
			"read, garbage":        {fault: mockcarrier.Garbage(), method: "GET", want: "listShipments 0"},
		} {
			t.Run(name, func(t *testing.T) {
				a := newAPI(start(t))
				a.get(t, "/status").want(t, 200)
				if tc.cold {
					a = api{a.Server, a.Client(), a.key}
				}
				a.Inject(tc.fault.Times(1))
				body, headers := "", []string(nil)
				if tc.method == "POST" {
					body = order
				}
				if tc.key != "" {
					headers = []string{"Idempotency-Key", tc.key}
				}
				_, _ = a.try(tc.method, "/shipments", body, headers...)
				if got := strings.TrimPrefix(resends(a.Server), "getStatus 0, "); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			})
		}
	})
}

// A caller that sends again by itself, with the same bytes, is not taken for
// net/http: it waits, or changes a header, or comes after what net/http did.
func TestSentAgainByTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t))
		a.get(t, "/status").want(t, 200)
		a.Inject(mockcarrier.CloseBefore().Times(2))
		_, _ = a.try("POST", "/shipments", order, "Idempotency-Key", "k")
		a.buy(t, "k", order).want(t, 201)
		if got := resends(a.Server); got != "getStatus 0, createShipment 0, createShipment 2, createShipment 0" {
			t.Errorf("got %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(mockcarrier.StartInMemory(t))
		a.get(t, "/status").want(t, 200)
		a.Inject(mockcarrier.CloseBefore().Times(1))
		// A body that cannot be read again is not sent again.
		send := func() error {
			req, _ := http.NewRequest("POST", a.URL+"/shipments", strings.NewReader(order))
			req.GetBody = nil
			req.Header.Set("Idempotency-Key", "k")
			req.Header.Set("X-Api-Key", a.key)
			req.Header.Set("Content-Type", "application/json")
			resp, err := a.client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if send() == nil {
			t.Fatal("an answer came")
		}
		time.Sleep(time.Second)
		if err := send(); err != nil {
			t.Fatal(err)
		}
		if got := resends(a.Server); got != "getStatus 0, createShipment 0, createShipment 0" {
			t.Errorf("got %s", got)
		}
	})
}

// The SDK's own attempts are told from what net/http does beneath it.
func TestResendsBeneathTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockcarrier.StartInMemory(t)
		client, err := carrier.New(s.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(s.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
			t.Fatal(err)
		}
		// The first is lost on a warm connection, and what net/http sends again on a cold one.
		s.Inject(mockcarrier.ResetBefore().On("createShipment").Times(2))
		var info carrier.CallInfo
		if _, err := client.CreateShipment(t.Context(), shipmentRequest(), carrier.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		attempts, sends := 0, 0
		for _, r := range s.Requests() {
			if r.Operation == "createShipment" {
				sends++
				if r.ResentOf == 0 {
					attempts++
				}
			}
		}
		if attempts != info.Attempts || sends != info.Sends || sends != 3 || attempts != 2 {
			t.Errorf("the journal has %d attempts and %d sends, the SDK says %d and %d", attempts, sends, info.Attempts, info.Sends)
		}
	})
}
