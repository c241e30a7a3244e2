package mockcarrier

import (
	"net/http"
	"time"
)

// The kinds that strike deliveries. They are narrowed down by reference, tracking
// number and the other parts of what is posted, and count attempts at
// notifications, but for repetitions and those that were held back before:
//
//	mock.Inject(mockcarrier.Redeliver().EveryNth(2))
//	mock.Inject(mockcarrier.BadSignature().With(mockcarrier.Body("/type", "tracking_delivered")).Times(1))
const (
	KindRedeliver      Kind = "redeliver"       // a notification that was taken in comes again, at once
	KindUnacknowledged Kind = "unacknowledged"  // the subscriber's answer is lost
	KindDeliverLate    Kind = "deliver-late"    // a notification comes late
	KindOutOfOrder     Kind = "out-of-order"    // a notification comes behind that of the next event
	KindBadSignature   Kind = "bad-signature"   // a notification is signed with another secret
	KindStaleSignature Kind = "stale-signature" // a notification is signed at a time long ago
)

// mostRepetitions is how often a notification that was taken in comes again.
const mostRepetitions = 1000

// Redeliver delivers a notification that was taken in once more, at once.
// [Fault.Count] says how often, up to 1,000 times.
func Redeliver() Fault { return Fault{Kind: KindRedeliver} }

// Unacknowledged loses the answer of a subscriber that has taken a notification
// in: it comes again, as after a failure.
func Unacknowledged() Fault { return Fault{Kind: KindUnacknowledged} }

// DeliverLate holds a notification back for d, on the carrier's clock, once.
// [Fault.UpTo] and [Fault.Spread] make it vary.
func DeliverLate(d time.Duration) Fault { return Fault{Kind: KindDeliverLate, Wait: d} }

// DeliverOutOfOrder holds a notification back until that of the parcel's next
// event was sent. That of the last event comes when it would.
func DeliverOutOfOrder() Fault { return Fault{Kind: KindOutOfOrder} }

// BadSignature signs with a secret that is none of the subscription's.
func BadSignature() Fault { return Fault{Kind: KindBadSignature} }

// StaleSignature signs as if a notification had been sent age ago.
func StaleSignature(age time.Duration) Fault { return Fault{Kind: KindStaleSignature, Wait: age} }

// deliveryFault returns the fault that strikes an attempt.
func (c *Carrier) deliveryFault(n *notification, h happening, req *http.Request, body []byte) Fault {
	if n.delayed || n.again > 0 {
		return Fault{}
	}
	f, _ := c.rules.pickDelivery(&subject{
		operation: CallbackOperation, params: map[string]string{"trackingNumber": h.number()}, request: req, body: body, world: c.world,
	}, c.now())
	return f
}

// holdsBack says for how long the fault holds a notification back.
func (f Fault) holdsBack(h happening) time.Duration {
	switch f.Kind {
	case KindDeliverLate:
		return f.Wait
	case KindOutOfOrder:
		then := h.then()
		if next := then.stages(h.at.At); then.cancelledAt.IsZero() && next < len(journey) {
			return then.reaches(next).Sub(h.at.At)
		}
	}
	return 0
}
