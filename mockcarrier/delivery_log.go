package mockcarrier

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Delivery is one attempt to deliver a notification.
type Delivery struct {
	// Seq numbers the attempts, from 1.
	Seq int `json:"seq"`
	// Notification is the id of the notification, Type what it tells, such as
	// tracking_delivered, and TrackingNumber of which parcel.
	Notification   string `json:"notification"`
	Type           string `json:"type"`
	TrackingNumber string `json:"trackingNumber"`
	// Subscription is the id of the subscription.
	Subscription string `json:"subscription"`
	// Attempt numbers the attempts at this notification for this subscription,
	// from 1.
	Attempt int `json:"attempt"`
	// Duplicate says that the subscriber had taken it in before.
	Duplicate bool `json:"duplicate,omitempty"`
	// Signature is how it was signed.
	Signature SignatureKind `json:"signature"`
	// Fault describes the fault that struck, and begins with its [Kind]; "" if
	// none did.
	Fault string `json:"fault,omitempty"`
	// Status is the HTTP status of the answer; 0 if none came, for the reason in
	// Err. An address that is not on this machine was not dialled, and Err
	// begins with "blocked".
	Status int    `json:"status,omitempty"`
	Err    string `json:"error,omitempty"`
	// At is when it was sent, on the carrier's clock.
	At time.Time `json:"at"`
}

// SignatureKind is how a notification was signed.
type SignatureKind string

// The kinds of signatures.
const (
	SignatureGood  SignatureKind = "good"  // with each of the secrets
	SignatureBad   SignatureKind = "bad"   // with none of them; see BadSignature
	SignatureStale SignatureKind = "stale" // with each, at a time long ago; see StaleSignature
)

// deliveryLog keeps the newest attempts.
type deliveryLog struct {
	limit int

	mu     sync.Mutex
	list   []Delivery
	seen   int
	resets int
}

// begin is for an attempt that begins: what it returns is for add.
func (l *deliveryLog) begin() (resets int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resets
}

// add adds an attempt that has ended, unless there was a reset since it began.
func (l *deliveryLog) add(d Delivery, resets int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if resets != l.resets {
		return
	}
	l.seen++
	d.Seq = l.seen
	if len(l.list) == l.limit {
		// Half are dropped at once, so that this is rare.
		l.list = slices.Delete(l.list, 0, (l.limit+1)/2)
	}
	l.list = append(l.list, d)
}

func (l *deliveryLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.seen = nil, 0
	l.resets++
}

// last returns the newest attempts behind a Seq, limit at most.
func (l *deliveryLog) last(after, limit int) []Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := len(l.list)
	for first > 0 && len(l.list)-first < limit && l.list[first-1].Seq > after {
		first--
	}
	return slices.Clone(l.list[first:])
}

// Deliveries returns the attempts to deliver notifications, in their order; see
// [WithJournalLimit] for how many are kept. What a fault has held back is in it
// once it is sent.
func (c *Carrier) Deliveries() []Delivery { return c.deliveries.last(0, c.config.journalLimit) }

func (c *Carrier) adminDeliveries(w http.ResponseWriter, r *http.Request) {
	after, limit, refused := c.newest(r.URL.Query())
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	writeJSON(w, http.StatusOK, notNil(c.deliveries.last(after, limit)))
}
