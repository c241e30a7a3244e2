package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const keyDraft = "draft-ietf-httpapi-idempotency-key-header"

var idempotencyCases = []Case{
	{ID: "idempotency/key-given", Title: "the caller's key is sent as it is", Source: keyDraft + " §2", run: keyGiven},
	{ID: "idempotency/key-made", Title: "without one the client makes a key", Source: keyDraft + " §2", run: keyMade},
	{ID: "idempotency/key-fresh", Title: "two calls without a key are two intents: two keys", Source: keyDraft + " §2.2", run: keyFresh},
	{ID: "idempotency/key-of-reads", Title: "a read carries no key, which would let HTTP libraries repeat it unseen", Source: "package net/http, Transport", run: keyOfReads},
	{ID: "idempotency/key-kept", Title: "all attempts of a call carry one key, and the same bytes", Source: keyDraft + " §2.2", run: keyKept},
	{ID: "idempotency/lost-answer", Title: "bought, and the answer lost: bought once", Source: keyDraft + " §1", run: lostAnswer},
	{ID: "idempotency/lost-body", Title: "bought, and the body cut: bought once, and its id is known", Source: keyDraft + " §1", run: lostBody},
	{ID: "idempotency/used-connection", Title: "bought on a connection that was used before, and the answer lost: bought once", Source: "package net/http, Transport: it sends again by itself", run: usedConnection},
	{ID: "idempotency/restart", Title: "another process with the same key: bought once", Source: keyDraft + " §1", run: restart},
	{ID: "idempotency/in-progress", Title: "409 in progress: it waits, and has the answer of the first attempt", Source: keyDraft + " §2.6", run: inProgress},
	{ID: "idempotency/reused", Title: "422, the key came with another order: final", Source: keyDraft + " §2.6", run: keyReused},
	{ID: "idempotency/at-the-same-time", Title: "one key from four callers at the same time: bought once, and all have the answer", Source: keyDraft + " §2.6", run: sameTime},
}

// buy makes a purchase that must succeed, and returns the id.
func (s *stage) buy(key, reference string) string {
	r := s.within(defaultLimit, s.ship(key, reference))
	s.want(r.Err == nil, "the call fails: %s; it must succeed", line(r.Err))
	return r.Value
}

// boughtOnce wants one shipment, with that id.
func (s *stage) boughtOnce(id string) {
	bought := s.mock.Ledger()
	s.want(len(bought) == 1 && bought[0].ShipmentID == id, "%d shipments are bought, and %q is told; it must be one, and that", len(bought), id)
}

func keyGiven(s *stage) {
	const key = "order-1001/rev:2 (b)"
	s.buy(key, "order-1")
	for _, r := range s.sent("createShipment") {
		s.want(r.Key == key, "the key %q is sent; it was given as %q", r.Key, key)
	}
}

func keyMade(s *stage) {
	s.boughtOnce(s.buy("", "order-1"))
	for _, r := range s.sent("createShipment") {
		s.want(r.Key != "", "a purchase comes without a key")
	}
}

func keyFresh(s *stage) {
	s.buy("", "order-1")
	s.buy("", "order-1")
	keys := map[string]bool{}
	for _, r := range s.sent("createShipment") {
		keys[r.Key] = true
	}
	s.want(len(keys) == 2, "two calls carry %d keys", len(keys))
	s.want(len(s.mock.Ledger()) == 2, "%d shipments are bought; it must be 2", len(s.mock.Ledger()))
}

func keyOfReads(s *stage) {
	r := s.within(defaultLimit, s.track)
	s.want(r.Err == nil, "the call fails: %s; it must succeed", line(r.Err))
	for _, r := range s.sent("getTracking") {
		for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			s.want(r.Header[header] == nil, "a GET comes with the header %s", header)
		}
	}
}

func keyKept(s *stage) {
	s.mock.Inject(mockcarrier.Sequence(mockcarrier.Status(503), mockcarrier.ResetAfter()))
	s.within(defaultLimit, s.ship("", "order-1"))
	requests := s.sent("createShipment")
	if s.want(len(requests) > 1, "no second request comes") {
		judgeOneKey(s, requests)
	}
}

func lostAnswer(s *stage) {
	s.mock.Inject(mockcarrier.CloseAfter().Times(1))
	s.boughtOnce(s.buy("", "order-1"))
}

func lostBody(s *stage) {
	s.mock.Inject(mockcarrier.ResetBody(20).Times(1))
	s.boughtOnce(s.buy("", "order-1"))
}

func usedConnection(s *stage) {
	s.within(defaultLimit, s.track)
	s.mock.Inject(mockcarrier.ResetAfter().On("createShipment").Times(1))
	s.boughtOnce(s.buy("", "order-1"))
	judgeOneKey(s, s.sent("createShipment"))
}

func restart(s *stage) {
	s.mock.Inject(mockcarrier.ResetAfter())
	r := s.within(defaultLimit, s.ship("order-1001", "order-1"))
	s.want(r.Err != nil, "the call succeeds without an answer")
	s.mock.ClearFaults()
	second := s.another(s.URL)
	defer s.closeClient(second)
	r = s.within(defaultLimit, func(ctx context.Context) Result { return second.Ship(ctx, "order-1001", order("order-1")) })
	s.want(r.Err == nil, "the second client fails: %s; it must succeed", line(r.Err))
	s.boughtOnce(r.Value)
}

// inProgress has a carrier that works for longer than an attempt lasts: the
// second attempt comes while the first is still being worked on.
func inProgress(s *stage) {
	s.mock.Inject(mockcarrier.Delay(AttemptTimeout + 500*time.Millisecond).On("createShipment").Times(1))
	s.boughtOnce(s.buy("", "order-1"))
	var statuses []int
	requests := s.sent("createShipment")
	for _, r := range requests {
		statuses = append(statuses, r.Status)
	}
	s.want(len(requests) > 1, "one request comes: an attempt lasts longer than %v", AttemptTimeout)
	s.want(len(requests) < 6, "%d requests come, answered %v: the Retry-After of 1 s is not waited for", len(requests), statuses)
	judgeOneKey(s, requests)
}

func keyReused(s *stage) {
	s.buy("order-1001", "order-1")
	before := len(s.sent("createShipment"))
	r := s.within(defaultLimit, s.ship("order-1001", "order-2"))
	s.want(r.Err != nil, "the call succeeds; it must fail")
	s.want(len(s.sent("createShipment")) == before+1, "%d requests come; it must be 1", len(s.sent("createShipment"))-before)
	s.want(len(s.mock.Ledger()) == 1, "%d shipments are bought; it must be 1", len(s.mock.Ledger()))
}

func sameTime(s *stage) {
	s.mock.Inject(mockcarrier.Delay(300 * time.Millisecond).Times(1))
	ids := make([]string, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = s.buy("order-1001", "order-1") })
	}
	all.Wait()
	for _, id := range ids {
		s.boughtOnce(id)
	}
}
