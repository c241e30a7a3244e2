package mockcarrier

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// Charge is an entry of the ledger: one shipment that was made and bought.
type Charge struct {
	// Key is the idempotency key that it was made with.
	Key string `json:"key"`
	// Reference is the sender's reference of the shipment.
	Reference      string `json:"reference"`
	ShipmentID     string `json:"shipmentId"`
	TrackingNumber string `json:"trackingNumber"`
	// Amount is a decimal string, and Currency its ISO 4217 code.
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	// At is when it was made, on the carrier's clock.
	At time.Time `json:"at"`
}

// world is the state of the carrier. What depends on the time is computed when
// it is asked for.
type world struct {
	mu        sync.Mutex
	started   time.Time
	shipments []*shipment // in the order of their making
	charges   []Charge
	byID      map[string]*shipment
	byNumber  map[string]*shipment
}

// shipment is what is known of a shipment. Only cancelledAt and refund change.
type shipment struct {
	account string
	id      string
	seq     int
	number  string   // of the shipment, and of its first parcel
	parcels []string // the numbers of all its parcels
	key     string
	request api.ShipmentRequest
	charge  api.Money
	made    time.Time
	ready   time.Time // later than made if it was to be made in the background

	cancelledAt time.Time
	refund      bool // the money comes back later
}

const firstSeq = 2001

func newWorld() *world { return new(world) }

func (w *world) reset(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = now
	w.shipments, w.charges = nil, nil
	w.byID, w.byNumber = make(map[string]*shipment), make(map[string]*shipment)
}

func (w *world) ledger() []Charge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.charges)
}

// since returns when the world began, from which the finished cases count.
func (w *world) since() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started
}

// create makes a shipment and charges for it. With unique it refuses a reference
// that the account has given before.
func (w *world) create(account, key string, request api.ShipmentRequest, now time.Time, work time.Duration, unique bool) (shipment, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if unique {
		for _, s := range w.shipments {
			if s.account == account && s.request.Reference == request.Reference {
				return shipment{}, refuse(http.StatusConflict, "duplicate_reference", "Reference already used",
					"%s has the reference %s.", s.id, request.Reference)
			}
		}
	}
	seq := firstSeq
	if n := len(w.shipments); n > 0 {
		seq = w.shipments[n-1].seq + 1
	}
	s := &shipment{
		account: account, key: key, request: request, seq: seq,
		id: fmt.Sprintf("shp_%d", seq), number: fmt.Sprintf("BK%dTR", seq),
		charge: price(request), made: now, ready: now.Add(work),
	}
	for i := range request.Parcels {
		number := s.number
		if i > 0 {
			number = fmt.Sprintf("BK%dP%dTR", seq, i+1)
		}
		s.parcels = append(s.parcels, number)
		w.byNumber[number] = s
	}
	w.byID[s.id] = s
	w.shipments = append(w.shipments, s)
	w.charges = append(w.charges, Charge{
		Key: key, Reference: request.Reference, ShipmentID: s.id, TrackingNumber: s.number,
		Amount: s.charge.Amount, Currency: s.charge.Currency, At: now,
	})
	return *s, nil
}

// find returns the shipment of an id or of a parcel's number, whichever is given.
func (w *world) find(id, number string) (shipment, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byID[id]
	if s == nil {
		s = w.byNumber[number]
	}
	if s == nil {
		return shipment{}, false
	}
	return *s, true
}

// get returns an account's shipment.
func (w *world) get(account, id string) (shipment, *refusal) {
	if s, ok := w.find(id, ""); ok && s.account == account {
		return s, nil
	}
	return shipment{}, noShipment(id)
}

func noShipment(id string) *refusal {
	return refuse(http.StatusNotFound, "shipment_not_found", "Shipment not found", "There is no shipment %s.", id)
}

// filter is what a list is asked for.
type filter struct {
	account, reference, key string
	after                   time.Time // made after
	before                  int       // seq below; 0 for no bound
	limit                   int
}

// list returns an account's shipments, the newest first, and whether there are more.
func (w *world) list(f filter) (page []shipment, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.shipments) {
		switch {
		case s.account != f.account,
			f.before != 0 && s.seq >= f.before,
			f.reference != "" && s.request.Reference != f.reference,
			f.key != "" && s.key != f.key,
			!f.after.IsZero() && !s.made.After(f.after):
			continue
		}
		if len(page) == f.limit {
			return page, true
		}
		page = append(page, *s)
	}
	return page, false
}

const (
	freeCancel = time.Hour      // after it was made: cancelled at once, and free
	refundTime = 24 * time.Hour // from the cancellation to the refund
)

// cancel cancels a shipment, which may be cancelled already.
func (w *world) cancel(account, id string, now time.Time) (shipment, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byID[id]
	switch {
	case s == nil || s.account != account:
		return shipment{}, noShipment(id)
	case !s.cancelledAt.IsZero():
	case s.handedOver(now):
		return shipment{}, refuse(http.StatusConflict, "already_in_transit", "Shipment already in transit",
			"%s has been handed over.", s.number)
	default:
		s.cancelledAt = now
		s.refund = now.Sub(s.made) > freeCancel || named(s.request.Reference, referenceRefundRejected)
	}
	return *s, nil
}

// status returns how far the shipment has come.
func (s shipment) status(now time.Time) api.ShipmentStatus {
	switch {
	case s.cancelledAt.IsZero() && now.Before(s.ready):
		return api.ShipmentStatusPending
	case s.cancelledAt.IsZero():
		return api.ShipmentStatusCreated
	case !s.refund:
		return api.ShipmentStatusCancelled
	case now.Before(s.cancelledAt.Add(refundTime)):
		return api.ShipmentStatusRefundPending
	case named(s.request.Reference, referenceRefundRejected):
		return api.ShipmentStatusRefundRejected
	}
	return api.ShipmentStatusRefunded
}

// price is per parcel and kilogram, and more for another country.
func price(r api.ShipmentRequest) api.Money {
	perParcel := map[string]int64{"economy": 420, "express": 980}[r.Service]
	if perParcel == 0 {
		perParcel = 520
	}
	cents := int64(0)
	for _, p := range r.Parcels {
		cents += perParcel + int64(math.Ceil(kilograms(p.Weight)*100-1e-6))
	}
	if r.From.Country != r.To.Country {
		cents += 1000
	}
	return euros(cents)
}

func euros(cents int64) api.Money {
	return api.Money{Amount: fmt.Sprintf("%d.%02d", cents/100, cents%100), Currency: "EUR"}
}

func kilograms(w api.Weight) float64 {
	switch w.Unit {
	case api.WeightUnitG:
		return w.Value / 1000
	case api.WeightUnitOz:
		return w.Value * 0.028349523125
	case api.WeightUnitLb:
		return w.Value * 0.45359237
	}
	return w.Value
}

// addressLines returns an address as it stands on a label.
func addressLines(a api.Address) []string {
	var lines []string
	for _, line := range []string{
		a.Name, value(a.Company), a.Line1, value(a.Line2), value(a.Line3),
		strings.TrimSpace(a.PostalCode + " " + a.City), value(a.Region), a.Country,
	} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func weightText(w api.Weight) string {
	return strconv.FormatFloat(w.Value, 'f', -1, 64) + " " + string(w.Unit)
}

// value returns what p points at, or the zero value.
func value[T any](p *T) T { return *cmp.Or(p, new(T)) }
