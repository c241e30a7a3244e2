package mockcarrier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// shop takes in notifications, if they are signed, and answers as it is told.
type shop struct {
	mu      sync.Mutex
	clock   func() time.Time // of the carrier; nil for none
	answer  func(carrier.TrackingUpdate) int
	updates []carrier.TrackingUpdate
	at      []time.Time // on the carrier's clock
	refused int         // for their signature
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" || err != nil {
		w.WriteHeader(400)
		return
	}
	if callback.Verify(r.Header.Get("Carrier-Signature"), body, time.Now(), 0, secret) != nil {
		s.refused++
		w.WriteHeader(401)
		return
	}
	var u carrier.TrackingUpdate
	if err := json.Unmarshal(body, &u); err != nil {
		panic(err)
	}
	s.updates = append(s.updates, u)
	if s.clock != nil {
		s.at = append(s.at, s.clock())
	}
	if s.answer != nil {
		w.WriteHeader(s.answer(u))
	}
}

func (s *shop) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, u := range s.updates {
		list = append(list, fmt.Sprint(u.Data.TrackingNumber, " ", u.Data.Status))
	}
	return strings.Join(list, ", ")
}

// opened starts a carrier whose notifications the shop takes in.
func (s *shop) opened(t *testing.T, opts ...mockcarrier.Option) api {
	a := newAPI(mockcarrier.StartInMemory(t, append([]mockcarrier.Option{mockcarrier.WithWebhookHandler(s)}, opts...)...))
	s.clock = a.Now
	return a
}

// offsets says when each attempt was made, behind the first event.
func offsets(list []mockcarrier.Delivery, from time.Time) string {
	var all []string
	for _, d := range list {
		all = append(all, d.At.Sub(from).String())
	}
	return strings.Join(all, " ")
}

// A parcel is followed by Advance alone, each notification at its time, with the
// parcel as it was then.
func TestNotificationsFollowTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		a := s.opened(t)
		a.buy(t, "before", order).want(t, 201)
		time.Sleep(time.Minute)
		a.subscribe(t, shopURL)
		began := a.Now()
		a.buy(t, "1", strings.Replace(orderFor("order-1"), `[{"weight"`, `[{"weight":{"value":3,"unit":"lb"}},{"weight"`, 1)).want(t, 201)
		a.buy(t, "2", strings.Replace(orderFor("order-2"), "standard", "express", 1)).want(t, 201)
		if len(a.Deliveries()) != 0 {
			t.Errorf("delivered by itself: %v", a.Deliveries())
		}
		a.Advance(8 * time.Hour)
		const want = "BK2002TR label_created, BK2002P2TR label_created, BK2003TR label_created, BK2003TR picked_up, " +
			"BK2001TR picked_up, BK2002TR picked_up, BK2002P2TR picked_up, BK2003TR in_transit, " +
			"BK2001TR in_transit, BK2002TR in_transit, BK2002P2TR in_transit"
		if got := s.got(); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if got, want := offsets(a.Deliveries(), began), "0s 0s 0s 2h0m0s 3h59m0s 4h0m0s 4h0m0s 4h0m0s 7h59m0s 8h0m0s 8h0m0s"; got != want {
			t.Errorf("at %s\nwant %s", got, want)
		}
		for i, d := range a.Deliveries() {
			u := s.updates[i]
			if !s.at[i].Equal(d.At) || !u.OccurredAt.Time().Equal(d.At.Truncate(time.Second)) || d.Notification != u.ID || d.Seq != i+1 ||
				d.Status != 200 || d.Err != "" || d.Attempt != 1 || d.Duplicate || d.Signature != mockcarrier.SignatureGood || d.Subscription != "sub_5001" ||
				d.TrackingNumber != u.Data.TrackingNumber || d.Type != string(u.Type) || u.Type != "tracking_updated" {
				t.Errorf("at %v: %+v of %+v", s.at[i], d, u)
			}
			if last := u.Data.Events[len(u.Data.Events)-1]; last.Status != u.Data.Status || !last.At.Time().Equal(u.OccurredAt.Time()) {
				t.Errorf("the parcel was not as it was: %+v", u.Data)
			}
		}
		if !a.Now().Equal(began.Add(8 * time.Hour)) {
			t.Errorf("it is %v", a.Now())
		}
		ids := map[string]bool{}
		a.Advance(100 * time.Hour)
		for _, u := range s.updates {
			ids[u.ID] = true
		}
		if len(ids) != 4*6-1 || len(s.updates) != len(ids) { // the label of the first is older than the subscription
			t.Errorf("%d notifications of %d ids", len(s.updates), len(ids))
		}
		if last := s.updates[len(s.updates)-1]; last.Type != "tracking_delivered" || last.Data.SignedBy == "" {
			t.Errorf("got %+v", last)
		}
	})
}

// A cancellation is told, and what would have come is not.
func TestNotificationOfACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		a := s.opened(t)
		a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.buy(t, "2", order).want(t, 201)
		a.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 200)
		a.Advance(4 * time.Hour)
		if got := s.got(); got != "BK2001TR label_created, BK2002TR label_created, BK2001TR cancelled, BK2002TR picked_up" {
			t.Errorf("got %s", got)
		}
	})
}

// What is not taken in comes again with growing waits for three days. Then the
// subscription is suspended.
func TestNotificationsAreTriedForThreeDays(t *testing.T) {
	for name, answer := range map[string]http.Handler{
		"503":      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }),
		"404":      http.NotFoundHandler(),
		"redirect": http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect),
		"panic":    http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the shop burns") }),
		"silence":  http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(answer)))
				id := a.subscribe(t, shopURL, `"events":["tracking_delivered"]`)
				a.buy(t, "1", order).want(t, 201)
				a.Advance(48 * time.Hour)
				first := a.Deliveries()[0]
				if a.statusOf(t, id) != "active" {
					t.Error("it is suspended at once")
				}
				a.Advance(71 * time.Hour)
				if a.statusOf(t, id) != "active" {
					t.Error("it is suspended before three days are over")
				}
				a.Advance(100 * time.Hour)
				a.buy(t, "2", order).want(t, 201)
				a.Advance(100 * time.Hour)
				list := a.Deliveries()
				if len(list) != 10 || a.statusOf(t, id) != "suspended" {
					t.Fatalf("%d attempts, and it is %s", len(list), a.statusOf(t, id))
				}
				for i, least := range []time.Duration{0, time.Minute, 6 * time.Minute, 21 * time.Minute, 81 * time.Minute, 261 * time.Minute, 621 * time.Minute, 1341 * time.Minute, 2781 * time.Minute, 4221 * time.Minute} {
					d := list[i]
					// Each attempt that is answered by silence takes ten seconds itself.
					if late := d.At.Sub(first.At) - least; late < 0 || late > time.Duration(i)*10*time.Second || d.Notification != first.Notification || d.Attempt != i+1 {
						t.Errorf("attempt %d at %v, want %v: %+v", i+1, d.At.Sub(first.At), least, d)
					}
				}
				switch name {
				case "silence":
					if first.Err != "no answer within 10s" || first.Status != 0 {
						t.Errorf("got %+v", first)
					}
				case "panic":
					if !strings.Contains(first.Err, "the shop burns") || first.Status != 0 {
						t.Errorf("got %+v", first)
					}
				default:
					if first.Err != "" || first.Status < 300 {
						t.Errorf("got %+v", first)
					}
				}
			})
		})
	}
}

// A subscriber that comes back is told everything, and the subscription lives.
func TestNotificationsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		a := s.opened(t)
		id := a.subscribe(t, shopURL)
		up := a.Now().Add(10 * time.Hour)
		s.answer = func(carrier.TrackingUpdate) int {
			if a.Now().Before(up) {
				return 500
			}
			return 204
		}
		a.buy(t, "1", order).want(t, 201)
		a.Advance(48 * time.Hour)
		taken := map[string]int{}
		for _, d := range a.Deliveries() {
			if d.Status == 204 {
				taken[d.Notification]++
			}
		}
		if len(taken) != 6 || a.statusOf(t, id) != "active" {
			t.Errorf("taken in: %v; it is %s", taken, a.statusOf(t, id))
		}
		for notification, n := range taken {
			if n != 1 {
				t.Errorf("%s was taken in %d times", notification, n)
			}
		}
	})
}

// One notification that is never taken in is given up, and holds up no other.
func TestANotificationThatIsNeverTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{answer: func(u carrier.TrackingUpdate) int {
			if u.Data.Status == carrier.TrackingStatusPickedUp {
				return 500
			}
			return 200
		}}
		a := s.opened(t)
		id := a.subscribe(t, shopURL)
		for i := range 5 {
			a.buy(t, fmt.Sprint(i), order).want(t, 201)
			a.Advance(24 * time.Hour)
		}
		a.Advance(500 * time.Hour)
		counts := map[carrier.TrackingStatus]int{}
		for _, u := range s.updates {
			counts[u.Data.Status]++
		}
		if fmt.Sprint(counts) != "map[delivered:5 in_transit:10 label_created:5 out_for_delivery:5 picked_up:50]" || a.statusOf(t, id) != "suspended" {
			t.Errorf("got %v; it is %s", counts, a.statusOf(t, id))
		}
	})
}

func TestGoneEndsASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{answer: func(u carrier.TrackingUpdate) int {
			if u.Data.Status == carrier.TrackingStatusInTransit {
				return http.StatusGone
			}
			return 200
		}}
		a := s.opened(t)
		id := a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(200 * time.Hour)
		if got := s.got(); got != "BK2001TR label_created, BK2001TR picked_up, BK2001TR in_transit" || a.statusOf(t, id) != "ended" {
			t.Errorf("got %s; it is %s", got, a.statusOf(t, id))
		}
		if r := a.do(t, "DELETE", "/subscriptions/"+id, ""); r.StatusCode != 204 {
			t.Errorf("got %s", r.Status)
		}
	})
}

func TestASubscriptionThatIsDeletedIsToldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{answer: func(carrier.TrackingUpdate) int { return 500 }}
		a := s.opened(t)
		id := a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(time.Hour)
		n := len(a.Deliveries())
		if r := a.do(t, "DELETE", "/subscriptions/"+id, ""); r.StatusCode != 204 {
			t.Errorf("got %s", r.Status)
		}
		a.Advance(200 * time.Hour)
		if n == 0 || len(a.Deliveries()) != n {
			t.Errorf("%d attempts, and then %d", n, len(a.Deliveries()))
		}
	})
}

// Subscriptions tell of what they were made for, and of their own account's
// parcels. Two of them give an event the same id.
func TestWhoIsToldOfWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		a := s.opened(t, mockcarrier.WithAPIKey(mockcarrier.APIKey, "other"))
		other := a
		other.key = "other"
		all, some := a.subscribe(t, shopURL), a.subscribe(t, shopURL, `"events":["tracking_delivered","tracking_exception"]`)
		theirs := other.subscribe(t, shopURL, `"events":["tracking_delivered"]`)
		// The second is later, and faster: its delivery comes first.
		a.buy(t, "1", order).want(t, 201)
		a.Advance(time.Hour)
		a.buy(t, "2", strings.Replace(order, "standard", "express", 1)).want(t, 201)
		other.buy(t, "1", order).want(t, 201)
		a.Advance(100 * time.Hour)
		told := map[string][]string{}
		ids := map[string]map[string]bool{}
		for _, d := range a.Deliveries() {
			if ids[d.Subscription] == nil {
				ids[d.Subscription] = map[string]bool{}
			}
			ids[d.Subscription][d.Notification] = true
			if d.Type == "tracking_delivered" {
				told[d.Subscription] = append(told[d.Subscription], d.TrackingNumber)
			}
		}
		if fmt.Sprint(told) != fmt.Sprintf("map[%s:[BK2002TR BK2001TR] %s:[BK2002TR BK2001TR] %s:[BK2003TR]]", all, some, theirs) {
			t.Errorf("told of deliveries: %v", told)
		}
		if len(ids[all]) != 12 || len(ids[some]) != 2 || len(ids[theirs]) != 1 {
			t.Errorf("told: %v", ids)
		}
		for id := range ids[some] {
			if !ids[all][id] {
				t.Errorf("%s is another id for the other subscription", id)
			}
		}
	})
}

// While secrets change, each notification has a signature for each.
func TestNotificationsWithTwoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		header, body := "", ""
		a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			content, _ := io.ReadAll(r.Body)
			header, body = r.Header.Get("Carrier-Signature"), string(content)
		}))))
		a.subscribe(t, shopURL, `"secrets":["`+newSecret+`"]`)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(30 * 24 * time.Hour) // the subscriber's clock is not moved by it
		for _, s := range []string{secret, newSecret} {
			if err := callback.Verify(header, []byte(body), time.Now(), 0, carrier.Secret(s)); err != nil {
				t.Errorf("%s: %v", header, err)
			}
		}
		if n := strings.Count(header, ",v1="); n != 2 {
			t.Errorf("%d signatures in %s", n, header)
		}
	})
}

// Nothing leaves the machine: other addresses are not dialled, redirects are not
// followed. What listens on the loopback interface is told.
func TestNotificationsStayOnThisMachine(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.Host+r.URL.RequestURI())
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}
	}))
	defer listening.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(listening.URL, "http://"), ":")

	a := newAPI(mockcarrier.Start(t, frozen()))
	away := a.subscribe(t, "https://shop.example/callbacks?token=private")
	a.subscribe(t, "http://127.0.0.1:"+port+"/callbacks?token=private")
	named := a.subscribe(t, "http://localhost:"+port+"/named")
	redirected := a.subscribe(t, "http://127.0.0.1:"+port+"/redirect")
	refused := a.subscribe(t, "http://127.0.0.1:1/?token=private")
	a.buy(t, "1", order).want(t, 201)
	if n := a.DeliverDue(t.Context()); n != 5 {
		t.Errorf("%d attempts: %v", n, a.Deliveries())
	}
	mu.Lock()
	defer mu.Unlock()
	want := fmt.Sprintf("[127.0.0.1:%[1]s/callbacks?token=private localhost:%[1]s/named 127.0.0.1:%[1]s/redirect]", port)
	if fmt.Sprint(paths) != want {
		t.Errorf("got %v, want %s", paths, want)
	}
	for _, d := range a.Deliveries() {
		switch d.Subscription {
		case away:
			if d.Status != 0 || !strings.HasPrefix(d.Err, "blocked") {
				t.Errorf("got %+v", d)
			}
		case redirected:
			if d.Status != 307 {
				t.Errorf("got %+v", d)
			}
		case refused:
			if d.Status != 0 || !strings.Contains(d.Err, "connection refused") || strings.Contains(d.Err, "private") {
				t.Errorf("got %+v", d)
			}
		case named:
			if d.Status != 200 {
				t.Errorf("got %+v", d)
			}
		}
	}
	if a.statusOf(t, away) != "active" {
		t.Error("what was blocked counts as a failure")
	}
}

// What is due is delivered when somebody asks for it, too.
func TestDeliverDue(t *testing.T) {
	s := &shop{}
	clock := mockcarrier.NewManualClock(time.Now())
	a := s.opened(t, mockcarrier.WithClock(clock.Now))
	a.subscribe(t, shopURL)
	a.buy(t, "1", order).want(t, 201)
	for _, want := range []int{1, 0} {
		if n := a.DeliverDue(t.Context()); n != want {
			t.Errorf("%d attempts, want %d", n, want)
		}
	}
	clock.Advance(4 * time.Minute) // as much as a signature may be of the future
	if n := a.DeliverDue(t.Context()); n != 0 {
		t.Errorf("%d attempts", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clock.Advance(48 * time.Hour)
	if n := a.DeliverDue(ctx); n != 0 {
		t.Errorf("%d attempts for nobody", n)
	}
	if n := a.DeliverDue(t.Context()); n != 5 {
		t.Errorf("%d attempts", n)
	}
}

// With WithAutoDelivery nobody has to ask.
func TestAutoDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		a := s.opened(t, mockcarrier.WithAutoDelivery())
		began := a.Now()
		a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		synctest.Wait()
		if got := s.got(); got != "BK2001TR label_created" {
			t.Errorf("got %s", got)
		}
		s.mu.Lock()
		s.answer = func(carrier.TrackingUpdate) int {
			if a.Now().Sub(began) == 20*time.Hour {
				return 500
			}
			return 200
		}
		s.mu.Unlock()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got, want := offsets(a.Deliveries(), began), "0s 4h0m0s 8h0m0s 20h0m0s 20h1m0s"; got != want {
			t.Errorf("at %s, want %s", got, want)
		}
		a.Advance(24 * time.Hour) // it is in nobody's way
		if got, want := offsets(a.Deliveries(), began), "0s 4h0m0s 8h0m0s 20h0m0s 20h1m0s 44h0m0s 48h0m0s"; got != want {
			t.Errorf("at %s, want %s", got, want)
		}
	})
}

// A close ends the attempt under way, and what advances the clock.
func TestCloseEndsDeliveries(t *testing.T) {
	for name, opts := range map[string][]mockcarrier.Option{"advance": nil, "auto": {mockcarrier.WithAutoDelivery()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				a := newAPI(mockcarrier.StartInMemory(t, append(opts, mockcarrier.WithWebhookHandler(silent))...))
				a.subscribe(t, shopURL)
				a.buy(t, "1", order).want(t, 201)
				began, ended := time.Now(), make(chan struct{})
				go func() {
					a.Advance(72 * time.Hour)
					close(ended)
				}()
				synctest.Wait()
				a.Close()
				<-ended
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Subscriptions, what they were told, and what is to be tried again outlive a
// restart. From what the admin API shows, they are suspended.
func TestNotificationsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &shop{answer: func(carrier.TrackingUpdate) int { return 500 }}
		old := down.opened(t)
		id := old.subscribe(t, shopURL, `"description":"the shop"`)
		old.buy(t, "1", order).want(t, 201)
		old.Advance(5 * time.Hour)
		ended := old.subscribe(t, shopURL)
		old.do(t, "DELETE", "/subscriptions/"+ended, "")
		down.mu.Lock()
		seen := map[string]bool{}
		for _, u := range down.updates {
			seen[u.ID] = true
		}
		down.mu.Unlock()

		s := &shop{}
		a := s.opened(t)
		if err := a.Restore(old.Snapshot()); err != nil {
			t.Fatal(err)
		}
		if got, want := a.Snapshot(), old.Snapshot(); string(got) != string(want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if got, want := a.get(t, "/subscriptions").body, old.get(t, "/subscriptions").body; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		a.Advance(48 * time.Hour)
		ids := map[string]bool{}
		for _, u := range s.updates {
			ids[u.ID] = true
		}
		if len(seen) != 2 || len(ids) != 6 || len(s.updates) != 6 || s.refused > 0 {
			t.Errorf("%d were tried before; %d notifications of %d ids, %d were not signed", len(seen), len(s.updates), len(ids), s.refused)
		}
		for id := range seen {
			if !ids[id] {
				t.Errorf("%s did not come again", id)
			}
		}
		for _, d := range a.Deliveries() {
			if d.Attempt == 1 && seen[d.Notification] {
				t.Errorf("the attempts were forgotten: %+v", d)
			}
		}

		shown := ask(old, "GET", "/__mock/state", "127.0.0.1", "")
		if shown.status != 200 || strings.Contains(shown.body.String(), secret) {
			t.Errorf("got %d %s", shown.status, shown.body.String())
		}
		b := s.opened(t)
		if r := ask(b, "PUT", "/__mock/state", "127.0.0.1", shown.body.String(), "Content-Type", "application/json"); r.status != 204 {
			t.Fatalf("got %d %s", r.status, r.body.String())
		}
		if got := b.statusOf(t, id); got != "suspended" {
			t.Errorf("it is %s", got)
		}
		b.Advance(48 * time.Hour)
		if len(b.Deliveries()) != 0 {
			t.Errorf("it has delivered %v", b.Deliveries())
		}
	})
}

// A world's subscribers are told of its own parcels; a reset forgets them.
func TestNotificationsOfWorlds(t *testing.T) {
	s := &shop{}
	w := newWorlds(t, 2, mockcarrier.WithWebhookHandler(s))
	for _, world := range []string{"a", "b"} {
		for _, made := range [][2]string{{"/v1/subscriptions", `{"url":"` + shopURL + `","secret":"` + secret + `"}`}, {"/v1/shipments", order}} {
			if r := in(w, world, "POST", made[0], made[1], "Idempotency-Key", made[0]); r.status != 201 {
				t.Fatal(r.body.String())
			}
		}
	}
	a, _ := w.World("a")
	b, _ := w.World("b")
	advance := func(world, by string) {
		if r := in(w, world, "POST", "/__mock/clock", `{"advance":"`+by+`"}`); r.status != 200 {
			t.Error(r.body.String())
		}
	}
	advance("a", "48h")
	if got := in(w, "a", "GET", "/__mock/deliveries?after=1&limit=3", "").body.String(); fmt.Sprint(members(t, got, "seq")) != "[4 5 6]" {
		t.Errorf("got %s", got)
	}
	if got := in(w, "b", "GET", "/__mock/deliveries", "").body.String(); got != "[]\n" {
		t.Errorf("got %s", got)
	}
	a.Reset()
	advance("a", "48h")
	advance("b", "0s")
	if len(a.Deliveries()) != 0 || len(b.Deliveries()) != 1 {
		t.Errorf("%v and %v", a.Deliveries(), b.Deliveries())
	}
}

// The carrier may be asked and told anything while it delivers.
func TestSubscriberWhoBuys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a api
		s := &shop{answer: func(u carrier.TrackingUpdate) int {
			if u.Data.Status == carrier.TrackingStatusDelivered && u.Data.TrackingNumber != "BK2003TR" {
				a.buy(t, u.ID, order).want(t, 201)
			}
			return 200
		}}
		a = s.opened(t)
		a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(200 * time.Hour)
		delivered := slices.DeleteFunc(strings.Split(s.got(), ", "), func(line string) bool { return !strings.HasSuffix(line, " delivered") })
		if fmt.Sprint(delivered) != "[BK2001TR delivered BK2002TR delivered BK2003TR delivered]" {
			t.Errorf("got %v", delivered)
		}
	})
}

// A reset in the middle of an Advance holds: the clock stands where it began.
func TestResetWhileTheClockMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a api
		s := &shop{answer: func(carrier.TrackingUpdate) int { a.Reset(); return 200 }}
		a = s.opened(t)
		a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(200 * time.Hour)
		if !a.Now().Equal(time.Now()) || len(a.Ledger()) != 0 {
			t.Errorf("it is %v, in fact %v", a.Now(), time.Now())
		}
	})
}

// What is made after a reset is told when it happens, and what was under way
// before the reset is in no list behind it.
func TestAnAdvanceEndsWithTheReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a api
		s := &shop{}
		s.answer = func(carrier.TrackingUpdate) int {
			if len(s.updates) == 1 {
				a.Reset()
				a.buy(t, "again", order).want(t, 201)
				a.subscribe(t, shopURL)
			}
			return 200
		}
		a = s.opened(t)
		a.subscribe(t, shopURL)
		a.buy(t, "1", order).want(t, 201)
		a.Advance(200 * time.Hour)
		if got := s.got(); got != "BK2001TR label_created" || len(a.Deliveries()) != 0 {
			t.Errorf("told too early: %s, %v", got, a.Deliveries())
		}
		a.Advance(4 * time.Hour)
		if got := s.got(); got != "BK2001TR label_created, BK2001TR picked_up" || len(a.Deliveries()) != 1 {
			t.Errorf("got %s, %v", got, a.Deliveries())
		}
	})
}

// Everything at once: nothing breaks, hangs or is read while it is written, and
// the state is one that can be read again.
func TestEverythingAtOnce(t *testing.T) {
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Carrier-Signature"), "0") {
			w.WriteHeader(500)
		}
	})
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(shop), mockcarrier.WithAutoDelivery(), mockcarrier.WithJournalLimit(50)))
	send := func(method, path, body, key string) {
		r, err := a.try(method, path, body, "Idempotency-Key", key)
		if err != nil || r.StatusCode >= 500 {
			t.Errorf("%s %s: %v %s", method, path, err, r.body)
		}
	}
	var wg sync.WaitGroup
	for _, act := range []func(i int){
		func(i int) {
			send("POST", "/subscriptions", fmt.Sprintf(`{"url":%q,"secret":%q}`, shopURL, secret), fmt.Sprint("s", i))
		},
		func(i int) { send("DELETE", fmt.Sprint("/subscriptions/sub_", 5001+i), "", "") },
		func(i int) { send("POST", "/shipments", order, fmt.Sprint("k", i)) },
		func(i int) { send("POST", fmt.Sprintf("/shipments/shp_%d/cancel", 2001+2*i), "", "") },
		func(i int) { send("POST", "/manifests", `{"date":"2200-01-01"}`, fmt.Sprint("m", i)) },
		func(int) { send("GET", "/tracking/events?since=2000-01-01T00:00:00Z", "", "") },
		func(int) { send("GET", "/subscriptions", "", "") },
		func(i int) { a.Advance(time.Duration(i%7-1) * time.Hour) },
		func(int) { a.DeliverDue(t.Context()); a.Deliveries() },
		func(i int) {
			switch snapshot := a.Snapshot(); i % 25 {
			case 20:
				a.Reset()
			case 10:
				if err := a.Restore(snapshot); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		wg.Go(func() {
			for i := range 100 {
				act(i)
			}
		})
	}
	wg.Wait()
}

func TestDeliveryOptionsAreChecked(t *testing.T) {
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.Contains(cause, "WithWebhookHandler needs a handler") {
			t.Errorf("got %s", cause)
		}
	}()
	mockcarrier.New(mockcarrier.WithWebhookHandler(nil))
}
