package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestAdvances(t *testing.T) {
	at := func(hour int) carrier.Time {
		return resilience.NewTime(time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC))
	}
	// parcel has a status since an hour; 0 for no time at all.
	parcel := func(status carrier.TrackingStatus, hour int) *carrier.Tracking {
		p := &carrier.Tracking{TrackingNumber: "BK2001TR", Status: status}
		if hour > 0 {
			p.UpdatedAt = at(hour)
		}
		return p
	}
	with := func(p *carrier.Tracking, change func(*carrier.Tracking)) *carrier.Tracking { change(p); return p }
	const (
		label     = carrier.TrackingStatusLabelCreated
		pickedUp  = carrier.TrackingStatusPickedUp
		inTransit = carrier.TrackingStatusInTransit
		out       = carrier.TrackingStatusOutForDelivery
		delivered = carrier.TrackingStatusDelivered
		goesBack  = carrier.TrackingStatusReturnToSender
		returned  = carrier.TrackingStatusReturned
		exception = carrier.TrackingStatusException
		cancelled = carrier.TrackingStatusCancelled
		drone     = carrier.TrackingStatus("handed_to_a_drone")
	)
	for name, tc := range map[string]struct {
		known, news *carrier.Tracking
		want        bool
	}{
		"nothing of nothing": {nil, nil, false},
		"something":          {nil, parcel(label, 1), true},
		"nothing":            {parcel(label, 1), nil, false},
		"another parcel":     {parcel(label, 1), with(parcel(inTransit, 2), func(p *carrier.Tracking) { p.TrackingNumber = "BK2002TR" }), false},
		"a number given again": {
			with(parcel(delivered, 1), func(p *carrier.Tracking) { p.ShipmentID = "shp_1" }),
			with(parcel(returned, 2), func(p *carrier.Tracking) { p.ShipmentID = "shp_2" }), false,
		},

		"later":             {parcel(pickedUp, 1), parcel(inTransit, 2), true},
		"earlier":           {parcel(inTransit, 2), parcel(pickedUp, 1), false},
		"the same again":    {parcel(inTransit, 2), parcel(inTransit, 2), false},
		"the next hub":      {parcel(inTransit, 2), parcel(inTransit, 3), true},
		"a second attempt":  {parcel(exception, 3), parcel(out, 4), true},
		"later, and back":   {parcel(out, 3), parcel(inTransit, 4), true}, // it did not fit on the van
		"an unknown status": {parcel(inTransit, 2), parcel(drone, 3), true},
		"after an unknown":  {parcel(drone, 3), parcel(out, 4), true},
		"before an unknown": {parcel(drone, 3), parcel(inTransit, 2), false},
		"found after all":   {parcel(carrier.TrackingStatusLost, 3), parcel(delivered, 4), true},
		"sent after all":    {parcel(cancelled, 1), parcel(pickedUp, 2), true},

		"delivered stays":                     {parcel(delivered, 3), parcel(out, 4), false},
		"delivered, then lost":                {parcel(delivered, 3), parcel(carrier.TrackingStatusLost, 4), false},
		"delivered, then unknown":             {parcel(delivered, 3), parcel(drone, 4), false},
		"delivered, then more":                {parcel(delivered, 3), parcel(delivered, 4), true},
		"delivered, then less":                {parcel(delivered, 3), parcel(delivered, 2), false},
		"delivered, then sent back":           {parcel(delivered, 3), parcel(goesBack, 4), true},
		"delivered, then returned":            {parcel(delivered, 3), parcel(returned, 4), true},
		"sent back before":                    {parcel(delivered, 3), parcel(goesBack, 2), false},
		"delivered before, by then lost":      {parcel(carrier.TrackingStatusLost, 4), parcel(delivered, 3), true},
		"delivered before, by then elsewhere": {parcel(inTransit, 4), parcel(delivered, 3), true},
		"sent back, delivered before":         {parcel(goesBack, 4), parcel(delivered, 3), false},
		"returned before":                     {parcel(delivered, 4), parcel(returned, 3), true},
		"returned stays":                      {parcel(returned, 3), parcel(delivered, 4), false},
		"returned, then more":                 {parcel(returned, 3), parcel(returned, 4), true},

		"by its events": {
			with(parcel(pickedUp, 0), func(p *carrier.Tracking) { p.Events = []carrier.TrackingEvent{{At: at(2)}, {At: at(1)}} }),
			with(parcel(inTransit, 0), func(p *carrier.Tracking) { p.Events = []carrier.TrackingEvent{{At: at(3)}, {At: at(1)}} }), true,
		},
		"by its events, backwards": {
			with(parcel(inTransit, 0), func(p *carrier.Tracking) { p.Events = []carrier.TrackingEvent{{At: at(3)}} }),
			with(parcel(pickedUp, 2), func(p *carrier.Tracking) { p.Events = []carrier.TrackingEvent{{At: at(2)}} }), false,
		},
		"in the same second":                           {parcel(label, 1), parcel(pickedUp, 1), true},
		"in the same second, backwards":                {parcel(pickedUp, 1), parcel(label, 1), false},
		"at the same moment, with more":                {parcel(inTransit, 1), with(parcel(inTransit, 1), func(p *carrier.Tracking) { p.Events = make([]carrier.TrackingEvent, 1) }), true},
		"at the same moment, with more that is as far": {parcel(inTransit, 1), with(parcel(exception, 1), func(p *carrier.Tracking) { p.Events = make([]carrier.TrackingEvent, 1) }), true},
		"without times":                                {parcel(pickedUp, 0), parcel(inTransit, 0), true},
		"without times, backwards":                     {parcel(inTransit, 0), parcel(pickedUp, 0), false},
		"one without a time":                           {parcel(inTransit, 3), parcel(pickedUp, 0), false},
		"another without a time":                       {parcel(pickedUp, 0), parcel(inTransit, 3), true},
		"one without a number":                         {parcel(pickedUp, 1), with(parcel(inTransit, 2), func(p *carrier.Tracking) { p.TrackingNumber = "" }), true},
		"a time in another zone":                       {parcel(pickedUp, 2), with(parcel(inTransit, 0), func(p *carrier.Tracking) { p.UpdatedAt = resilience.ParseTime("2026-03-02T04:30:00+03:00") }), false},
	} {
		if got := carrier.Advances(tc.known, tc.news); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// Of two notifications the same is known at the end, in whatever order they come:
// one is news after the other, or neither is.
func TestAdvancesInAnyOrder(t *testing.T) {
	var all []*carrier.Tracking
	for _, status := range []carrier.TrackingStatus{
		"", "unknown", "handed_to_a_drone", "label_created", "picked_up", "in_transit", "out_for_delivery", "available_for_pickup", "delivery_attempted",
		"delivered", "delayed", "exception", "return_to_sender", "returned", "cancelled", "lost", "expired",
	} {
		for hour := range 3 {
			p := &carrier.Tracking{Status: status}
			if hour > 0 {
				p.UpdatedAt = carrier.NewTime(time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC))
			}
			all = append(all, p)
		}
	}
	for _, a := range all {
		for _, b := range all {
			one, other := carrier.Advances(a, b), carrier.Advances(b, a)
			if one && other {
				t.Errorf("%s at %v and %s at %v are news after each other", a.Status, a.UpdatedAt, b.Status, b.UpdatedAt)
			}
			if at, then := a.UpdatedAt.Time(), b.UpdatedAt.Time(); !one && !other && !at.IsZero() && !then.IsZero() && !at.Equal(then) {
				t.Errorf("what is known depends on the order of %s at %v and %s at %v", a.Status, at, b.Status, then)
			}
		}
	}
}

// store is a shop's: what it knows of its parcels, and how often each
// notification was handled.
type store struct {
	mu      sync.Mutex
	parcels map[string]*carrier.Tracking
	handled map[string]int
	history map[string][]time.Time // of what was known, one after the other
}

func newStore() *store {
	return &store{parcels: map[string]*carrier.Tracking{}, handled: map[string]int{}, history: map[string][]time.Time{}}
}

func (s *store) take(_ context.Context, u carrier.TrackingUpdate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handled[u.ID]++
	number := u.Data.TrackingNumber
	if carrier.Advances(s.parcels[number], u.Data) {
		s.parcels[number] = u.Data
		s.history[number] = append(s.history[number], u.Data.UpdatedAt.Time())
	}
	return nil
}

const whsec, nextWhsec = "whsec_Zm9vYmFyYmF6cXV4", "whsec_c2Vjb25kIHNlY3JldA"

// Whatever the carrier does to its notifications (twice, late, in another order,
// signed wrongly, answers lost), the shop handles each once, knows at the end
// what the carrier knows, and no parcel has gone backwards on the way.
func TestShopKnowsWhereItsParcelsAre(t *testing.T) {
	const parcels = 20
	for name, tc := range map[string]struct {
		faults  []mockcarrier.Fault
		refused bool
	}{
		"well":           {nil, false},
		"twice":          {[]mockcarrier.Fault{mockcarrier.Redeliver().EveryNth(2)}, false},
		"out of order":   {[]mockcarrier.Fault{mockcarrier.DeliverOutOfOrder().EveryNth(2)}, false},
		"late":           {[]mockcarrier.Fault{mockcarrier.DeliverLate(0).UpTo(48 * time.Hour)}, false},
		"lost answers":   {[]mockcarrier.Fault{mockcarrier.Unacknowledged().Chance(0.5, 1)}, false},
		"wrongly signed": {[]mockcarrier.Fault{mockcarrier.BadSignature().Chance(0.5, 1)}, true},
		"too old":        {[]mockcarrier.Fault{mockcarrier.StaleSignature(time.Hour).Chance(0.5, 1)}, true},
		"all of it": {[]mockcarrier.Fault{
			mockcarrier.DeliverLate(0).UpTo(48*time.Hour).Chance(0.5, 1), mockcarrier.Redeliver().Chance(0.3, 2),
			mockcarrier.Unacknowledged().Chance(0.3, 3), mockcarrier.BadSignature().Chance(0.3, 4), mockcarrier.StaleSignature(time.Hour).Chance(0.3, 5),
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shop := newStore()
				handler, err := carrier.NewCallbackHandler(shop.take, callback.WithSecrets(whsec))
				if err != nil {
					t.Fatal(err)
				}
				srv := mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(handler))
				client := newClient(t, srv.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(srv.Transport()))
				for _, f := range tc.faults {
					srv.Inject(f)
				}
				if _, err := client.CreateSubscription(t.Context(), carrier.SubscriptionRequest{URL: "https://shop.example/callbacks", Secret: whsec}); err != nil {
					t.Fatal(err)
				}
				for i := range parcels {
					s, err := client.CreateShipment(t.Context(), smallestOrder(fmt.Sprint("order-", i)))
					if err != nil {
						t.Fatal(err)
					}
					if i == 3 {
						if _, err := client.CancelShipment(t.Context(), s.ID); err != nil {
							t.Fatal(err)
						}
					}
					srv.Advance(time.Hour)
				}
				srv.Advance(200 * time.Hour)

				if len(shop.handled) != (parcels-1)*6+2 {
					t.Errorf("%d notifications were handled", len(shop.handled))
				}
				for id, n := range shop.handled {
					if n != 1 {
						t.Errorf("%s was handled %d times", id, n)
					}
				}
				if len(shop.parcels) != parcels {
					t.Errorf("%d parcels are known", len(shop.parcels))
				}
				for number, known := range shop.parcels {
					is, err := client.GetTracking(t.Context(), number)
					if err != nil {
						t.Fatal(err)
					}
					if known.Status != is.Status || len(known.Events) != len(is.Events) || known.SignedBy != is.SignedBy {
						t.Errorf("%s is known as %s, and is %s", number, known.Status, is.Status)
					}
				}
				refused, twice := 0, 0
				for _, d := range srv.Deliveries() {
					if d.Status == 401 {
						refused++
					}
					if d.Duplicate {
						twice++
					}
					if well := d.Signature == mockcarrier.SignatureGood; well != (d.Status == 204) {
						t.Errorf("%+v", d)
					}
				}
				if tc.refused != (refused > 0) {
					t.Errorf("%d were refused", refused)
				}
				t.Logf("%d deliveries, %d refused, %d duplicates", len(srv.Deliveries()), refused, twice)
				for number, times := range shop.history {
					if !slices.IsSortedFunc(times, time.Time.Compare) {
						t.Errorf("%s has gone backwards: %v", number, times)
					}
				}
			})
		})
	}
}

// A shop that is down, and one that changes its secret, miss nothing.
func TestShopWithOutagesAndANewSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := newStore()
		down := true
		take := func(ctx context.Context, u carrier.TrackingUpdate) error {
			if down {
				return errors.New("the database is down")
			}
			return shop.take(ctx, u)
		}
		old, err := carrier.NewCallbackHandler(take, callback.WithSecrets(whsec))
		if err != nil {
			t.Fatal(err)
		}
		both, err := carrier.NewCallbackHandler(take, callback.WithSecrets(nextWhsec, whsec))
		if err != nil {
			t.Fatal(err)
		}
		var handler http.Handler = old
		srv := mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
		})))
		client := newClient(t, srv.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(srv.Transport()))
		subscribe := func(secret carrier.Secret, more ...carrier.Secret) string {
			s, err := client.CreateSubscription(t.Context(), carrier.SubscriptionRequest{URL: "https://shop.example/callbacks", Secret: secret, Secrets: more})
			if err != nil {
				t.Fatal(err)
			}
			return s.ID
		}
		first := subscribe(whsec)
		if _, err := client.CreateShipment(t.Context(), smallestOrder("order-1")); err != nil {
			t.Fatal(err)
		}
		srv.Advance(10 * time.Hour)
		if len(shop.handled) != 0 {
			t.Errorf("handled by a shop that is down: %v", shop.handled)
		}
		down = false
		srv.Advance(8 * time.Hour)
		if len(shop.handled) != 3 {
			t.Errorf("handled: %v", shop.handled)
		}

		// Both secrets are good for a while: of the events of that time the shop is
		// told twice, and handles them once.
		handler = both
		second := subscribe(nextWhsec, whsec)
		srv.Advance(3 * time.Hour)
		if err := client.DeleteSubscription(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		srv.Advance(40 * time.Hour)
		told := map[string]int{}
		for _, d := range srv.Deliveries() {
			if d.Status == 204 {
				told[d.Subscription]++
			}
		}
		if told[first] != 4 || told[second] != 3 {
			t.Errorf("told: %v", told)
		}
		for id, n := range shop.handled {
			if n != 1 {
				t.Errorf("%s was handled %d times", id, n)
			}
		}
		if p := shop.parcels["BK2001TR"]; len(shop.handled) != 6 || p == nil || p.Status != carrier.TrackingStatusDelivered {
			t.Errorf("handled %v; the parcel is %+v", shop.handled, p)
		}
	})
}

func TestNewCallbackHandlerNeedsASecret(t *testing.T) {
	if _, err := carrier.NewCallbackHandler(newStore().take); err == nil {
		t.Error("notifications are taken in that nobody signed")
	}
}
