package carrier_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// A service with an OAuth2 client buys through the end of its token's life.
func TestOAuth2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mockcarrier.StartInMemory(t)
		client := newClient(t, srv.URL, carrier.WithTransport(srv.Transport()),
			carrier.WithOAuth2(mockcarrier.ClientID, mockcarrier.ClientSecret))
		for range 3 {
			if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
				t.Fatal(err)
			}
		}
		srv.Advance(48 * time.Hour) // the carrier's clock, not ours: the token is refused
		var info carrier.CallInfo
		if _, err := client.CreateShipment(t.Context(), smallestOrder("order-1"), carrier.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		if info.Attempts != 2 {
			t.Errorf("%d attempts, want 2: one with the old token and one with the new", info.Attempts)
		}
		asked := map[string]int{}
		for _, r := range srv.Requests() {
			asked[r.Operation]++
		}
		if asked[mockcarrier.TokenOperation] != 2 || asked["getTracking"] != 3 || asked["createShipment"] != 2 || len(srv.Ledger()) != 1 {
			t.Errorf("requests %v, %d shipments", asked, len(srv.Ledger()))
		}
	})
}

// Which credentials did not do, and why.
func TestWhyCredentialsDidNotDo(t *testing.T) {
	for name, test := range map[string]struct {
		opts []carrier.Option
		is   error
		why  carrier.AuthReason
		sent bool
	}{
		"none":           {nil, carrier.ErrUnauthorized, carrier.AuthMissing, true},
		"a wrong key":    {[]carrier.Option{carrier.WithAPIKey("ck_wrong")}, carrier.ErrUnauthorized, carrier.AuthWrong, true},
		"not entitled":   {[]carrier.Option{carrier.WithAPIKey(mockcarrier.ForbiddenAPIKey)}, carrier.ErrForbidden, carrier.AuthNotEntitled, true},
		"a wrong token":  {[]carrier.Option{carrier.WithBearerToken("at_wrong")}, carrier.ErrUnauthorized, carrier.AuthWrong, true},
		"a wrong secret": {[]carrier.Option{carrier.WithOAuth2(mockcarrier.ClientID, "wrong-secret")}, carrier.ErrUnauthorized, carrier.AuthWrong, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := mockcarrier.StartInMemory(t)
			client := newClient(t, srv.URL, append(test.opts, carrier.WithTransport(srv.Transport()))...)
			_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
			holds(t, err, []error{test.is}, carrier.ErrOutcomeUnknown)
			e := as(t, err)
			if e.AuthReason() != test.why || e.Attempts != 1 || (e.Outcome == carrier.OutcomeRejected) != test.sent {
				t.Errorf("%v, %d attempts, %v: %v", e.AuthReason(), e.Attempts, e.Outcome, err)
			}
			var token *carrier.TokenError
			if errors.As(err, &token) == test.sent {
				t.Errorf("TokenError: %v", token)
			}
		})
	}
}

func TestFetchLabel(t *testing.T) {
	srv, client := inMemory(t)
	shipment, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(shipment.Labels) == 0 {
		t.Fatal("the shipment has no label")
	}
	for _, label := range shipment.Labels {
		s, err := client.FetchLabel(t.Context(), label)
		if err != nil {
			t.Fatalf("%s: %v", label.URL, err)
		}
		if n, err := io.Copy(io.Discard, s); err != nil || n == 0 {
			t.Errorf("%s: %d bytes, %v", label.URL, n, err)
		}
		_ = s.Close()
	}
	before := len(srv.Requests())
	for _, link := range []string{"https://169.254.169.254/x", "http://evil.example/x", "https://user@evil.example/", "https://0x7f.1/"} {
		_, err = client.FetchLabel(t.Context(), carrier.Label{URL: link})
		holds(t, err, []error{carrier.ErrBlocked}, carrier.ErrUnavailable)
	}
	_, err = client.FetchLabel(t.Context(), carrier.Label{})
	holds(t, err, []error{carrier.ErrInvalidRequest})
	if n := len(srv.Requests()); n != before {
		t.Errorf("%d requests were sent for links that are refused", n-before)
	}
}

func TestAllShipments(t *testing.T) {
	srv, client := inMemory(t)
	for i := range 7 {
		if _, err := client.CreateShipment(t.Context(), smallestOrder(fmt.Sprint("order-", i))); err != nil {
			t.Fatal(err)
		}
	}
	two := 2
	var got []string
	for shipment, err := range client.AllShipments(t.Context(), carrier.ListShipmentsParams{Limit: &two}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, shipment.Reference)
	}
	if want := "[order-6 order-5 order-4 order-3 order-2 order-1 order-0]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	srv.Inject(mockcarrier.Status(404))
	for _, err := range client.AllShipments(t.Context(), carrier.ListShipmentsParams{}) {
		holds(t, err, []error{carrier.ErrNotFound})
	}
	for range client.AllShipments(t.Context(), carrier.ListShipmentsParams{Limit: &two}) {
		break
	}
}

// A base URL that comes from a user of the service is put under the guard.
func TestEgressGuard(t *testing.T) {
	srv := mockcarrier.Start(t)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = carrier.New(srv.URL, carrier.WithEgressGuard(carrier.EgressPolicy{}))
	holds(t, err, []error{carrier.ErrInvalidRequest, carrier.ErrBlocked})

	port, _ := strconv.ParseUint(u.Port(), 10, 16)
	open := carrier.EgressPolicy{Ports: []uint16{uint16(port)}, PlainHTTP: true}
	byName := "http://localhost:" + u.Port() + u.Path
	client := newClient(t, byName, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithEgressGuard(open))
	_, err = client.CreateShipment(t.Context(), smallestOrder("order-1"))
	holds(t, err, []error{carrier.ErrBlocked}, carrier.ErrUnavailable, carrier.ErrOutcomeUnknown)
	if e := as(t, err); e.Attempts != 1 || e.Outcome != carrier.OutcomeNotSent || len(srv.Requests()) != 0 {
		t.Errorf("%d attempts, %v, %d requests", e.Attempts, e.Outcome, len(srv.Requests()))
	}

	open.Prefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	client = newClient(t, byName, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithEgressGuard(open), carrier.WithLimits(carrier.Limits{}))
	if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
		t.Error(err)
	}
}
