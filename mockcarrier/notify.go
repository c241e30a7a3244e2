package mockcarrier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// notification is what a subscription is to be told of one event.
type notification struct {
	shipmentID string
	at         position

	due       time.Time // of the next attempt
	first     time.Time // the first attempt; zero before it
	attempts  int
	delayed   bool // by a fault, which is done once
	delivered bool // the subscriber has taken it in
	again     int  // how often it is delivered once more although it was
}

// retryWaits are the waits behind the first attempts that fail; the last is that
// behind all others. A notification is given up when its next attempt would be
// later than giveUpAfter behind the first: after 10 attempts.
var retryWaits = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

const giveUpAfter = 72 * time.Hour

// retryWait is how long to wait after that many attempts.
func retryWait(attempts int) time.Duration {
	return retryWaits[min(attempts, len(retryWaits))-1]
}

// next returns the notification that is due first, until then at the latest; nil
// if none is. Of those that are due at the same time, new ones go before those
// that were tried or held back before, then the earlier event, then the older
// subscription.
func (ss *subscriptions) next(w *world, now, until time.Time) (*subscription, *notification) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	var sub *subscription
	var first *notification
	fresh := false
	for _, s := range ss.list {
		if s.status(now) != api.SubscriptionStatusActive {
			continue
		}
		n, isNew := s.next(w)
		if n == nil || n.due.After(until) || !s.stillTells(laterOf(n.due, now)) {
			continue
		}
		if first == nil || n.goesBefore(first, isNew, fresh) {
			sub, first, fresh = s, n, isNew
		}
	}
	if fresh {
		sub.take(first)
	}
	return sub, first
}

func (n *notification) goesBefore(other *notification, isNew, otherIsNew bool) bool {
	if c := n.due.Compare(other.due); c != 0 {
		return c < 0
	}
	if isNew != otherIsNew {
		return isNew
	}
	return n.at.compare(other.at) < 0
}

// next returns the notification that is due first, and whether it is one of an
// event that was not told of yet; nil if nothing is to come.
func (s *subscription) next(w *world) (first *notification, isNew bool) {
	if n := s.upcoming(w); n != nil {
		first, isNew = n, true
	}
	for _, n := range s.waiting {
		if first == nil || n.goesBefore(first, false, isNew) {
			first, isNew = n, false
		}
	}
	return first, isNew
}

// upcoming returns a notification of the next event that the subscription wants
// to be told of; nil if none is to come. It looks again once something was made
// or cancelled.
func (s *subscription) upcoming(w *world) *notification {
	turn := w.turn()
	if s.feed != nil && s.asOf == turn {
		return s.ahead
	}
	if s.feed == nil {
		s.feed = w.feed(s.account, s.told)
	}
	s.ahead, s.asOf = nil, turn
	for {
		h, ok := s.feed.peek()
		if !ok {
			return nil
		}
		if slices.Contains(s.events, eventOf(h.event().Status)) {
			s.ahead = &notification{shipmentID: h.shipment.id, at: h.at, due: h.at.At}
			return s.ahead
		}
		s.feed.pass()
	}
}

// take makes a notification one that waits.
func (s *subscription) take(n *notification) {
	s.told, s.asOf = n.at, -1 // which is no turn
	s.feed.pass()
	s.waiting = append(s.waiting, n)
}

// stillTells says whether notifications are still sent at a time, and suspends
// the subscription if they are not.
func (s *subscription) stillTells(at time.Time) bool {
	if s.status(at) == api.SubscriptionStatusActive {
		return true
	}
	s.suspended = true
	s.forget()
	return false
}

// eventOf says what a status is told as.
func eventOf(status api.TrackingStatus) api.SubscriptionEvent {
	switch status {
	case api.TrackingStatusDelivered:
		return api.SubscriptionEventTrackingDelivered
	case api.TrackingStatusDelayed, api.TrackingStatusDeliveryAttempted, api.TrackingStatusException,
		api.TrackingStatusReturnToSender, api.TrackingStatusReturned, api.TrackingStatusLost:
		return api.SubscriptionEventTrackingException
	}
	return api.SubscriptionEventTrackingUpdated
}

// update returns what is posted for an event. Its id is the same for each
// subscription, and another for each event, also after a reset unless the clock
// has stood still.
func update(h happening) api.TrackingUpdate {
	parcel := h.tracking()
	last := parcel.Events[len(parcel.Events)-1]
	sum := sha256.Sum256([]byte(h.number() + " " + h.at.cursor()))
	return api.TrackingUpdate{
		ID: "evt_" + hex.EncodeToString(sum[:8]), Type: eventOf(last.Status), OccurredAt: last.At, Data: &parcel,
	}
}

// Advance moves the carrier's clock by d, and with it the parcels, the labels
// and the idempotency keys. A negative d moves it back.
//
// It delivers what subscriptions are to be told meanwhile, in the order in which
// it is due, each attempt at its time on the clock, and returns when that is
// done: after Advance(72 * time.Hour) a subscriber that is down has seen all ten
// attempts. Advance(0) delivers what is due now. A subscriber that calls it
// waits for itself, until its attempt has run out of time.
func (c *Carrier) Advance(d time.Duration) {
	if d < 0 || !c.subscriptions.any() {
		c.clock.Lock()
		c.shift(d)
		c.clock.Unlock()
		c.wake()
		return
	}
	c.deliver(c.running.ctx, d)
	c.wake()
}

// DeliverDue delivers what subscriptions are to be told until now, in the order
// in which it is due, and returns how many attempts it has made. It returns
// early when ctx ends or the carrier closes; the attempt under way then fails.
//
// Notifications are delivered by it, by [Carrier.Advance], and by nothing else,
// unless there is [WithAutoDelivery].
func (c *Carrier) DeliverDue(ctx context.Context) int { return c.deliver(ctx, 0) }

// deliver moves the clock by d, and makes the attempts that are due meanwhile.
// There is one at a time.
func (c *Carrier) deliver(ctx context.Context, d time.Duration) int {
	move := c.moving(d)
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		move.end()
		return 0
	case <-c.running.closing:
		move.end()
		return 0
	}
	attempts := 0
	for ctx.Err() == nil && !c.running.closed() {
		now := c.now()
		sub, n := c.subscriptions.next(c.world, now, now.Add(move.rest()))
		if n == nil {
			break
		}
		move.to(n.due)
		if c.attempt(ctx, sub, n) {
			attempts++
		}
	}
	move.end()
	return attempts
}

// move is a move of the clock that is made bit by bit.
type move struct {
	carrier *Carrier
	left    time.Duration
	epoch   int64
}

func (c *Carrier) moving(d time.Duration) *move { return &move{c, d, c.epoch.Load()} }

// rest is what is left of the move: nothing once the clock was set otherwise.
func (m *move) rest() time.Duration {
	if m.epoch != m.carrier.epoch.Load() {
		m.left = 0
	}
	return m.left
}

// to moves the clock to a time, as far as the move goes, and never back.
func (m *move) to(at time.Time) { m.by(at.Sub(m.carrier.now())) }

func (m *move) end() { m.by(m.left) }

// by moves the clock.
func (m *move) by(d time.Duration) {
	m.carrier.clock.Lock()
	defer m.carrier.clock.Unlock()
	if d = min(d, m.rest()); d > 0 {
		m.left -= d
		m.carrier.shift(d)
	}
}

// shift moves the clock, which is locked, by d, or as far as it goes: 292 years.
func (c *Carrier) shift(d time.Duration) {
	was := time.Duration(c.offset.Load())
	is := was + d
	switch {
	case d > 0 && is < was:
		is = math.MaxInt64
	case d < 0 && is > was:
		is = math.MinInt64
	}
	c.offset.Store(int64(is))
}

// setOffset sets how far the clock is moved, and ends the moves under way.
func (c *Carrier) setOffset(d time.Duration) {
	c.clock.Lock()
	defer c.clock.Unlock()
	c.epoch.Add(1)
	c.offset.Store(int64(d))
}

// wake lets what delivers by itself look again at what is due.
func (c *Carrier) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// deliverByItself begins to, if it was asked for.
func (c *Carrier) deliverByItself() {
	if c.config.autoDelivery && !c.running.closed() {
		c.delivering.Do(func() {
			c.running.enter()
			go func() {
				defer c.running.leave()
				c.deliverAlways()
			}()
		})
	}
	c.wake()
}

// deliverAlways delivers what is due when it is, until the carrier closes.
func (c *Carrier) deliverAlways() {
	for !c.running.closed() {
		c.deliver(c.running.ctx, 0)
		c.awaitDue()
	}
}

// awaitDue returns when a notification is due, or may be since something has
// changed, or the carrier closes.
func (c *Carrier) awaitDue() {
	const least = 10 * time.Millisecond // for clocks that stand still
	var due <-chan time.Time
	if at, ok := c.subscriptions.due(c.world, c.now()); ok {
		timer := time.NewTimer(max(least, at.Sub(c.now())))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-c.changed:
	case <-c.running.closing:
	}
}

// due returns when the next notification is; false if nothing is to come.
func (ss *subscriptions) due(w *world, now time.Time) (at time.Time, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.list {
		if s.status(now) != api.SubscriptionStatusActive {
			continue
		}
		if n, _ := s.next(w); n != nil && (!ok || n.due.Before(at)) {
			at, ok = n.due, true
		}
	}
	return at, ok
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
