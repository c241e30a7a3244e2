package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestParcels(t *testing.T) {
	for number, want := range map[string]struct {
		status   string
		events   int
		signedBy bool
	}{
		"BK1001TR": {status: "in_transit", events: 2},
		"BK1002TR": {status: "delivered", events: 4, signedBy: true},
		"MC2201":   {status: "delivered", events: 6, signedBy: true}, // out of order
	} {
		t.Run(number, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				s := open(t, mock)
				a := s.expect(200, s.get("/api/shipments/"+number))
				var p parcel
				a.decode(t, &p)
				if p.TrackingNumber != number || p.Status != want.status || len(p.Events) < want.events || (p.SignedBy != "") != want.signedBy {
					t.Errorf("got %s", a.body)
				}
				for i := range p.Events[1:] {
					if p.Events[i].At > p.Events[i+1].At {
						t.Errorf("event %d comes after the next: %s", i, a.body)
					}
				}
				sent := mock.Requests()
				if len(sent) != 1 || sent[0].Header.Get(requestIDHeader) != a.header.Get(requestIDHeader) {
					t.Errorf("the carrier got %d requests, and the id is not ours", len(sent))
				}
			})
		})
	}
}

func TestTrackingNumbers(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"BK1":                   {400, "bad_tracking_number"},
		"BK12TR":                {404, "unknown_parcel"}, // 6 characters
		"ABCDEFGHIJ0123456789":  {404, "unknown_parcel"}, // 20
		"ABCDEFGHIJ01234567890": {400, "bad_tracking_number"},
		"bk1001tr":              {400, "bad_tracking_number"},
		"BK1001TR%20":           {400, "bad_tracking_number"},
		"BK1001TR%0A":           {400, "bad_tracking_number"},
		"BK1001%2FTR":           {400, "bad_tracking_number"},
		"%2E%2E%2Fstatus":       {400, "bad_tracking_number"},
		"BK1001TR%3Fx=1":        {400, "bad_tracking_number"},
		"BÄ1001TR":              {400, "bad_tracking_number"},
		"BK9999TR":              {404, "unknown_parcel"},
		"MC1201":                {404, "unknown_parcel"}, // 410 at the carrier
		"":                      {404, "no_such_resource"},
		"BK1001TR/more":         {404, "no_such_resource"},
	} {
		t.Run(path, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				s := open(t, mock)
				a := s.expect(want.status, s.get("/api/shipments/"+path))
				if a.code() != want.code {
					t.Errorf("got %s", a.body)
				}
				if sent := len(mock.Requests()); (sent == 1) != (want.code == "unknown_parcel") {
					t.Errorf("the carrier was asked %d times", sent)
				}
			})
		})
	}
}

func TestWhoMayAsk(t *testing.T) {
	routes := map[string]string{
		"/api/shipments/BK1001TR":         http.MethodGet,
		"/api/shipments/x":                http.MethodGet, // who asks comes before what is asked
		"/api/orders/order-1001/shipment": http.MethodPost,
		"/api/orders/order-1002/shipment": http.MethodGet,
	}
	for name, want := range map[string]struct {
		authorization string
		status        int
		challenge     string
	}{
		"nobody":           {"", 401, `Bearer realm="bookstore"`},
		"another scheme":   {"Basic YWRhOmFkYQ==", 401, `Bearer realm="bookstore"`},
		"no token":         {"Bearer ", 401, `Bearer realm="bookstore"`},
		"a wrong token":    {"Bearer ada-token-for-testS", 401, `Bearer realm="bookstore", error="invalid_token"`},
		"half a token":     {ada[:len(ada)-1], 401, `Bearer realm="bookstore", error="invalid_token"`},
		"a longer token":   {ada + "x", 401, `Bearer realm="bookstore", error="invalid_token"`},
		"a customer":       {bob, 403, `Bearer realm="bookstore", error="insufficient_scope", scope="staff"`},
		"the carrier's":    {"Bearer " + mockcarrier.APIKey, 401, `Bearer realm="bookstore", error="invalid_token"`},
		"staff in capital": {strings.Replace(ada, "Bearer", "BEARER", 1), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				s := open(t, mock)
				for path, method := range routes {
					a := s.do(method, path, want.authorization)
					if want.status == 0 {
						if a.status == 401 || a.status == 403 {
							t.Errorf("%s: got %d", path, a.status)
						}
						continue
					}
					s.expect(want.status, a)
					if got := a.header.Get("WWW-Authenticate"); got != want.challenge {
						t.Errorf("%s: the challenge is %q", path, got)
					}
				}
				if sent := len(mock.Requests()); want.status != 0 && sent != 0 {
					t.Errorf("the carrier was asked %d times", sent)
				}
			})
		})
	}
}

func TestTwoAuthorizations(t *testing.T) {
	if _, ok := bearer(http.Header{"Authorization": {ada, bob}}); ok {
		t.Error("one of two was taken")
	}
}

func TestMoments(t *testing.T) {
	for raw, want := range map[string]string{
		"2026-11-29T10:00:00+03:00": "2026-11-29T10:00:00+03:00",
		"2026-11-29T10:00:00+0300":  "2026-11-29T10:00:00+03:00",
		"2026-11-29 10:00":          "2026-11-29T10:00:00",
		"soon, see 10.0.0.1":        "",
		"":                          "",
	} {
		if got := moment(carrier.ParseTime(raw)); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
	if got := moment(carrier.NewTime(time.Unix(0, 0).UTC())); got != "1970-01-01T00:00:00Z" {
		t.Errorf("got %q", got)
	}
}
