package mockcarrier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// A carrier that starts again from its snapshot goes on as if nothing had been.
func TestSnapshotAndRestore(t *testing.T) {
	old := newAPI(mockcarrier.Start(t, frozen()))
	first := old.buy(t, "k1", order)
	first.want(t, 201)
	two := strings.Replace(orderFor("order-2"), `[{"weight"`, `[{"weight":{"value":3,"unit":"lb"}},{"weight"`, 1)
	old.buy(t, "k2", two).want(t, 201)
	old.buy(t, "k3", orderFor("order-3"), "Prefer", "respond-async").want(t, 202)
	old.do(t, "POST", "/shipments/shp_2002/cancel", "").want(t, 200)
	old.Advance(90 * time.Minute)

	snapshot := old.Snapshot()
	if again := old.Snapshot(); !bytes.Equal(snapshot, again) {
		t.Error("two snapshots of one state differ")
	}
	if bytes.Contains(snapshot, []byte(mockcarrier.APIKey)) {
		t.Error("the API key is in the snapshot")
	}

	a := newAPI(mockcarrier.Start(t, frozen()))
	a.buy(t, "lost", orderFor("lost")).want(t, 201)
	if err := a.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(snapshot, a.Snapshot()) {
		t.Errorf("after Restore the snapshot is\n%s\nand was\n%s", a.Snapshot(), snapshot)
	}
	if got, want := fmt.Sprint(a.Ledger()), fmt.Sprint(old.Ledger()); got != want {
		t.Errorf("the ledger is %s, was %s", got, want)
	}
	if !a.Now().Equal(noon.Add(90 * time.Minute)) {
		t.Errorf("it is %v", a.Now())
	}
	replayed := a.buy(t, "k1", order)
	replayed.want(t, 201)
	if replayed.body != first.body || replayed.Header.Get("Idempotency-Replayed") != "true" ||
		replayed.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("the replay is %v %s", replayed.Header, replayed.body)
	}
	a.buy(t, "k1", orderFor("other")).want(t, 422, "idempotency_key_reused")
	for _, path := range []string{
		"/shipments/shp_2001", "/shipments/shp_2002", "/shipments/shp_2003", "/shipments?limit=2",
		"/tracking/BK2001TR", "/tracking/BK2002P2TR", "/tracking/BK1003TR",
	} {
		was := old.get(t, path).body
		if got := strings.ReplaceAll(a.get(t, path).body, a.URL, old.URL); got != was {
			t.Errorf("%s: got %s, was %s", path, got, was)
		}
	}
	if id := a.buy(t, "k4", order).want(t, 201)["id"]; id != "shp_2004" {
		t.Errorf("the next shipment is %v", id)
	}
}

// An account whose key is not configured any more is kept, for when it is again.
func TestRestoreKeepsUnknownAccounts(t *testing.T) {
	one := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithAPIKey("one")))
	one.key = "one"
	one.buy(t, "k", order).want(t, 201)

	other := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithAPIKey("other")))
	if err := other.Restore(one.Snapshot()); err != nil {
		t.Fatal(err)
	}
	other.key = "other"
	other.get(t, "/shipments/shp_2001").want(t, 404)

	again := newAPI(mockcarrier.Start(t, frozen(), mockcarrier.WithAPIKey("other", "one")))
	if err := again.Restore(other.Snapshot()); err != nil {
		t.Fatal(err)
	}
	again.key = "one"
	again.get(t, "/shipments/shp_2001").want(t, 200)
	if r := again.buy(t, "k", order); r.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s %v", r.Status, r.Header)
	}
}

func TestRestoreRefuses(t *testing.T) {
	source := newAPI(mockcarrier.Start(t, frozen()))
	source.buy(t, "k1", order).want(t, 201)
	source.buy(t, "k2", order).want(t, 201)
	source.subscribe(t, shopURL)
	good := string(source.Snapshot())
	const told = `"told":`
	waiting := func(member string) string {
		return `"waiting":[{"shipmentId":"shp_2001","at":{"at":"2026-03-02T12:00:00Z","turn":1,"parcel":0},"due":"2026-03-02T12:00:00Z",` + member + `}],` + told
	}

	a := newAPI(mockcarrier.Start(t, frozen()))
	a.buy(t, "mine", orderFor("mine")).want(t, 201)
	before := a.Snapshot()
	for name, tc := range map[string]struct{ was, is, says string }{
		"empty":             {good, "", "unexpected end"},
		"cut":               {good, good[:len(good)/2], "unexpected end"},
		"no object":         {good, "[]", "cannot unmarshal array"},
		"two documents":     {good, good + good, "after"},
		"newer":             {`"version":1`, `"version":2`, "of version 2"},
		"no version":        {`"version":1,`, ``, "of version 0"},
		"unknown member":    {`"version":1`, `"version":1,"colour":"red"`, "colour"},
		"clock":             {`"clockOffset":"0s"`, `"clockOffset":"soon"`, "clockOffset"},
		"id twice":          {`"id":"shp_2002"`, `"id":"shp_2001"`, "shipments[1]: its id"},
		"order":             {`"seq":2002`, `"seq":2001`, "shipments[1]: seq"},
		"another's id":      {`"id":"shp_2002"`, `"id":"shp_2003"`, "shipments[1]: its id"},
		"no room behind":    {`"id":"shp_2002","seq":2002`, `"id":"shp_9223372036854775807","seq":9223372036854775807`, "shipments[1]: seq"},
		"number twice":      {`"BK2002TR","parcels":["BK2002TR"]`, `"BK2001TR","parcels":["BK2001TR"]`, "shipments[1]: its parcels"},
		"its turn":          {`"turn":2`, `"turn":9223372036854775807`, "shipments[1]: its turn"},
		"its last turn":     {`"turn":2`, `"turn":2,"cancelTurn":-1`, "shipments[1]: its turn"},
		"turns":             {`"turns":3`, `"turns":9223372036854775807`, "turns"},
		"another number":    {`"trackingNumber":"BK2002TR","parcels"`, `"trackingNumber":"BK9TR","parcels"`, "shipments[1]: its tracking number"},
		"no parcels":        {`"parcels":["BK2002TR"]`, `"parcels":[]`, "shipments[1]: its parcels"},
		"charge of nothing": {`"shipmentId":"shp_2002"`, `"shipmentId":"shp_9"`, "ledger[1]"},
		"empty key":         {`"key":"k1","fingerprint"`, `"key":"","fingerprint"`, "idempotencyKeys[0]"},
		"no subscription":   {`"id":"sub_5001"`, `"id":""`, "subscriptions[0]: its id"},
		"its place":         {`"seq":5001`, `"seq":0`, "subscriptions[0]: seq"},
		"its address":       {`"url":"https:`, `"url":"http:`, "subscriptions[0]: its url"},
		"its secret":        {`"secrets":["` + secret + `"]`, `"secrets":[""]`, "subscriptions[0]: a secret"},
		"fingerprint":       {`"fingerprint":"`, `"fingerprint":"zz`, "fingerprint"},
		"status":            {`"status":201`, `"status":20`, "idempotencyKeys[0]: its status"},
		"header":            {`"header":{"Content-Type":["application/json"],"Location":["/v1/shipments/shp_2001"]}`, `"header":null`, "idempotencyKeys[0]: its header"},
		"attempts below 0":  {told, waiting(`"attempts":-1`), "subscriptions[0]: the attempts"},
		"many attempts":     {told, waiting(`"attempts":9223372036854775807`), "subscriptions[0]: the attempts"},
		"less than again":   {told, waiting(`"again":-1`), "subscriptions[0]: the attempts"},
		"again and again":   {told, waiting(`"again":1001`), "subscriptions[0]: the attempts"},
	} {
		bad := strings.Replace(good, tc.was, tc.is, 1)
		if bad == good {
			t.Errorf("%s: nothing is spoilt in %s", name, good)
		}
		if err := a.Restore([]byte(bad)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want one that says %q", name, err, tc.says)
		}
	}
	if !bytes.Equal(before, a.Snapshot()) {
		t.Error("a snapshot that was refused has changed something")
	}
}

// A snapshot that is taken at any time has a shipment for each key, and a key
// for each shipment.
func TestSnapshotIsConsistent(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-done:
					return
				default:
					if _, err := a.try("POST", "/shipments", order, "Idempotency-Key", fmt.Sprintf("%d-%d", i, j)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for most := 0; most < 60 && !t.Failed(); {
		var s struct {
			Shipments []struct{ IdempotencyKey string }
			Ledger    []struct{ Key string }
			Keys      []struct{ Key string } `json:"idempotencyKeys"`
		}
		if err := json.Unmarshal(a.Snapshot(), &s); err != nil {
			t.Fatal(err)
		}
		keys := map[string]int{}
		for _, k := range s.Keys {
			keys[k.Key]++
		}
		for _, made := range s.Shipments {
			keys[made.IdempotencyKey]++
		}
		for _, charge := range s.Ledger {
			keys[charge.Key]++
		}
		for key, n := range keys {
			if n != 3 {
				t.Fatalf("%s is there %d times of 3", key, n)
			}
		}
		most = len(s.Keys)
	}
	close(done)
	wg.Wait()
}

// What only a fault of the carrier could answer is not kept, and the snapshot
// says so too.
func TestSnapshotOfRequestsInProgress(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	a.Inject(mockcarrier.StallAfter().ForKey("stalled"))
	a.Inject(mockcarrier.Status(500).DuringProcessing().ForKey("failed"))
	stalled := make(chan error, 1)
	go func() {
		_, err := a.try("POST", "/shipments", order, "Idempotency-Key", "stalled")
		stalled <- err
	}()
	a.buy(t, "failed", order).want(t, 500)
	for len(a.Ledger()) == 0 {
		time.Sleep(time.Millisecond)
	}
	snapshot := string(a.Snapshot())
	if !strings.Contains(snapshot, "stalled") || strings.Contains(snapshot, "failed") {
		t.Errorf("got %s", snapshot)
	}
	a.Close()
	if err := <-stalled; err == nil {
		t.Error("a request that was held got an answer")
	}
}
