package mockcarrier_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The names of the cases are the rows of the project's table of idempotency
// vectors.
func TestIdempotency(t *testing.T) {
	bought := func(t *testing.T, a api, want int) {
		t.Helper()
		if got := len(a.Ledger()); got != want {
			t.Errorf("%d bought, want %d: %v", got, want, a.Ledger())
		}
	}
	replayed := func(t *testing.T, r reply, of reply) {
		t.Helper()
		if r.StatusCode != of.StatusCode || r.body != of.body || r.Header.Get("Location") != of.Header.Get("Location") {
			t.Errorf("the replay is %s %s, not %s %s", r.Status, r.body, of.Status, of.body)
		}
		if r.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the replay is not marked")
		}
		if r.Header.Get("X-Request-Id") == of.Header.Get("X-Request-Id") {
			t.Error("the replay has the request id of the first answer")
		}
	}
	// Each row holds under both policies, but for the two in which they differ.
	policies := map[string]mockcarrier.Option{
		"5xx released": mockcarrier.WithIdempotencyPolicy(mockcarrier.ReleaseServerErrors),
		"5xx stored":   mockcarrier.WithIdempotencyPolicy(mockcarrier.StoreServerErrors),
	}
	under := func(policy, name string, test func(t *testing.T, a api), opts ...mockcarrier.Option) {
		t.Run(name+"/"+policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newAPI(mockcarrier.StartInMemory(t, append(opts, policies[policy])...))) })
		})
	}
	inBubble := func(name string, test func(t *testing.T, a api), opts ...mockcarrier.Option) {
		for policy := range policies {
			under(policy, name, test, opts...)
		}
	}

	inBubble("I-01 no key", func(t *testing.T, a api) {
		problem := a.do(t, "POST", "/shipments", order).want(t, 400, "idempotency_key_missing")
		if problem["title"] != "Idempotency-Key is missing" {
			t.Errorf("the title is %v", problem["title"])
		}
		bought(t, a, 0)
	})
	inBubble("I-02 malformed key", func(t *testing.T, a api) {
		for _, key := range []string{strings.Repeat("x", 256), `"a`, `""`, ""} {
			problem := a.buy(t, key, order).want(t, 400, "idempotency_key_malformed")
			if problem["title"] != "Idempotency-Key is malformed" {
				t.Errorf("the title is %v", problem["title"])
			}
		}
		a.buy(t, "a", order, "Idempotency-Key", "b").want(t, 400, "idempotency_key_malformed")
		bought(t, a, 0)
	})
	inBubble("I-03 I-04 first and again", func(t *testing.T, a api) {
		first := a.buy(t, "k", order)
		first.want(t, 201)
		if first.Header.Get("Idempotency-Replayed") != "" {
			t.Error("the first answer is marked as replayed")
		}
		a.Advance(20 * time.Hour) // the parcel has moved, the answer has not
		for range 3 {
			replayed(t, a.buy(t, "k", order), first)
		}
		replayed(t, a.buy(t, `"k"`, order), first) // the same key, quoted
		bought(t, a, 1)
	})
	inBubble("I-05 I-20 other bytes", func(t *testing.T, a api) {
		a.buy(t, "k", order).want(t, 201)
		for _, body := range []string{orderFor("order-2"), strings.Replace(order, ":", ": ", 1), "{}"} {
			problem := a.buy(t, "k", body).want(t, 422, "idempotency_key_reused")
			if problem["title"] != "Idempotency-Key is already used" {
				t.Errorf("the title is %v", problem["title"])
			}
		}
		bought(t, a, 1)
	})
	inBubble("I-06 I-07 in progress", func(t *testing.T, a api) {
		a.Inject(mockcarrier.Delay(10 * time.Second).Times(1))
		var first reply
		done := make(chan struct{})
		go func() {
			defer close(done)
			first, _ = a.try("POST", "/shipments", order, "Idempotency-Key", "k")
		}()
		synctest.Wait()
		same := a.buy(t, "k", order)
		if problem := same.want(t, 409, "idempotency_in_progress"); same.Header.Get("Retry-After") != "1" ||
			!strings.HasPrefix(problem["title"].(string), "A request is outstanding") {
			t.Errorf("got %v, %v", same.Header, problem)
		}
		a.buy(t, "k", orderFor("order-2")).want(t, 422, "idempotency_key_reused")
		bought(t, a, 0)
		<-done
		first.want(t, 201)
		replayed(t, a.buy(t, "k", order), first)
		bought(t, a, 1)
	})
	inBubble("I-08 invalid body", func(t *testing.T, a api) {
		a.buy(t, "k", "{}").want(t, 422, "validation_failed")
		a.buy(t, "k", "{").want(t, 400, "malformed_json")
		a.buy(t, "k", order).want(t, 201) // corrected, under the same key
		bought(t, a, 1)
	})
	inBubble("I-09 refused before", func(t *testing.T, a api) {
		a.key = "wrong"
		a.buy(t, "k", order).want(t, 401)
		a.key = mockcarrier.ForbiddenAPIKey
		a.buy(t, "k", order).want(t, 403)
		a.key = mockcarrier.APIKey
		a.buy(t, "k", order).want(t, 201)
		a.buy(t, "l", order).want(t, 201)
		a.buy(t, "m", order).want(t, 429)
		a.Advance(time.Minute)
		if r := a.buy(t, "m", order); r.Header.Get("Idempotency-Replayed") != "" {
			t.Error("the 429 was stored")
		}
		bought(t, a, 3)
	}, mockcarrier.WithRateLimit(2, time.Minute))
	under("5xx stored", "I-10 failure is stored", func(t *testing.T, a api) {
		a.Inject(mockcarrier.Status(500).DuringProcessing().Times(1))
		first := a.buy(t, "k", order)
		first.want(t, 500)
		replayed(t, a.buy(t, "k", order), first)
		bought(t, a, 0)
	})
	under("5xx released", "I-11 failure is released", func(t *testing.T, a api) {
		a.Inject(mockcarrier.Status(500).DuringProcessing().Times(1))
		a.buy(t, "k", order).want(t, 500)
		a.buy(t, "k", order).want(t, 201)
		bought(t, a, 1)
	})
	inBubble("I-12 lost after", func(t *testing.T, a api) {
		for i, fault := range []mockcarrier.Fault{
			mockcarrier.ResetAfter(), mockcarrier.CloseAfter(), mockcarrier.Status(503).AfterProcessing(), mockcarrier.HTML(502).AfterProcessing(),
		} {
			key := fmt.Sprint("k", i)
			a.Inject(fault.Times(1))
			// net/http sends again by itself where the connection ends without an answer.
			if r, err := a.try("POST", "/shipments", order, "Idempotency-Key", key); err == nil && r.StatusCode < 500 && r.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%v: got %s", fault, r.Status)
			}
			bought(t, a, i+1)
			if r := a.buy(t, key, order); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%v: again: %s %v", fault, r.Status, r.Header)
			}
			bought(t, a, i+1)
		}
	})
	inBubble("I-13 lost before", func(t *testing.T, a api) {
		a.Inject(mockcarrier.ResetBefore().Times(1))
		if _, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k"); err == nil {
			t.Error("an answer came")
		}
		bought(t, a, 0)
		if r := a.buy(t, "k", order); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("again: %s %v", r.Status, r.Header)
		}
		bought(t, a, 1)
	})
	inBubble("I-14 hangs for 3s, the client for 1s", func(t *testing.T, a api) {
		a.Inject(mockcarrier.Delay(3 * time.Second).Times(1))
		a.client.Timeout = time.Second
		if _, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k"); err == nil {
			t.Error("an answer came")
		}
		a.buy(t, "k", order).want(t, 409, "idempotency_in_progress")
		time.Sleep(time.Second)
		a.buy(t, "k", order).want(t, 409, "idempotency_in_progress")
		time.Sleep(time.Second + time.Nanosecond)
		if r := a.buy(t, "k", order); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("got %s %v", r.Status, r.Header)
		}
		bought(t, a, 1)
	})
	inBubble("a slow replay", func(t *testing.T, a api) {
		first := a.buy(t, "k", order)
		a.Inject(mockcarrier.Delay(5 * time.Second).Times(1))
		a.Inject(mockcarrier.Status(500).DuringProcessing().Times(1))
		a.buy(t, "k", order).want(t, 500)
		start := time.Now()
		replayed(t, a.buy(t, "k", order), first)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		bought(t, a, 1)
	})
	inBubble("I-15 cut after", func(t *testing.T, a api) {
		a.Inject(mockcarrier.Truncate(10, mockcarrier.ByLength).Times(1))
		if _, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k"); err == nil {
			t.Error("the whole answer came")
		}
		if r := a.buy(t, "k", order); r.want(t, 201)["id"] != "shp_2001" || r.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("got %s %v", r.body, r.Header)
		}
		bought(t, a, 1)
	})
	inBubble("I-16 key too old", func(t *testing.T, a api) {
		a.buy(t, "k", order).want(t, 201)
		a.Advance(24 * time.Hour)
		if r := a.buy(t, "k", order); r.want(t, 201)["id"] != "shp_2001" {
			t.Errorf("at 24 hours: %s", r.body)
		}
		a.Advance(time.Nanosecond)
		if r := a.buy(t, "k", order); r.want(t, 201)["id"] != "shp_2002" || r.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("after 24 hours: %s", r.body)
		}
		bought(t, a, 2)
	}, frozen())
	inBubble("I-17 accounts", func(t *testing.T, a api) {
		for _, key := range []string{"one", "two"} {
			a.key = key
			if r := a.buy(t, "k", order); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: %s %v", key, r.Status, r.Header)
			}
		}
		bought(t, a, 2)
	}, mockcarrier.WithAPIKey("one", "two"))
	inBubble("I-24 natural key", func(t *testing.T, a api) {
		a.buy(t, "k", order).want(t, 201)
		a.buy(t, "l", order).want(t, 409, "duplicate_reference")
		if found := a.get(t, "/shipments?reference=order-1001").want(t, 200)["items"].([]any); len(found) != 1 {
			t.Errorf("found %v", found)
		}
		bought(t, a, 1)
	}, mockcarrier.WithUniqueReferences())
	inBubble("I-25 a refusal that says nothing", func(t *testing.T, a api) {
		for i, fault := range []mockcarrier.Fault{mockcarrier.Status(422), mockcarrier.Status(422).AfterProcessing()} {
			a.Inject(fault.WithCode("SHIPMENT.POSTAGE.FAILURE").Times(1))
			a.buy(t, fmt.Sprint("k", i), order).want(t, 422, "SHIPMENT.POSTAGE.FAILURE")
			bought(t, a, i)
		}
	})
	inBubble("strict keys", func(t *testing.T, a api) {
		a.buy(t, "k", order).want(t, 400, "idempotency_key_malformed")
		a.buy(t, `"k"`, order).want(t, 201)
		bought(t, a, 1)
	}, mockcarrier.WithStrictKeys())
}

// I-19: one of many buys, and the others are told so.
func TestConcurrentRequestsWithOneKeyBuyOnce(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		a := newAPI(start(t))
		var wg sync.WaitGroup
		answers := make([]reply, 50)
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = a.try("POST", "/shipments", order, "Idempotency-Key", "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first := 0
		for _, r := range answers {
			switch {
			case r.StatusCode == 201 && r.Header.Get("Idempotency-Replayed") == "":
				first++
			case r.StatusCode == 201, r.StatusCode == 409:
			default:
				t.Errorf("got %s %s", r.Status, r.body)
			}
			if r.StatusCode == 201 && !strings.Contains(r.body, "shp_2001") {
				t.Errorf("another shipment: %s", r.body)
			}
		}
		if ledger := a.Ledger(); first != 1 || len(ledger) != 1 {
			t.Errorf("%d first answers, the ledger is %v", first, ledger)
		}
	})
}
