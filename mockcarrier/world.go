package mockcarrier

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
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
	rates     []rate // in the order of their making, as the following are
	lastRate  int    // the seq of the last that there has been
	pickups   []*pickup
	manifests []*manifest
	turns     int                  // the last turn that was given; see shipment
	cancelled []*shipment          // in the order of their cancelling
	proofs    map[string]time.Time // when a proof of delivery was first asked for, by tracking number
}

// shipment is what is known of a shipment. Only what is behind the empty line
// changes.
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
	turn    int       // puts what happens at the same moment in order
	ready   time.Time // later than made if it was to be made in the background

	cancelledAt time.Time
	cancelTurn  int    // as turn
	refund      bool   // the money comes back later
	manifest    string // the id of the manifest that it is on
}

const firstSeq = 2001

func newWorld() *world { return new(world) }

func (w *world) reset(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = now
	w.shipments, w.charges = nil, nil
	w.byID, w.byNumber = make(map[string]*shipment), make(map[string]*shipment)
	w.rates, w.lastRate, w.pickups, w.manifests = nil, 0, nil, nil
	w.turns, w.cancelled, w.proofs = 0, nil, nil
}

// takeTurn gives the next turn, in a world that is locked.
func (w *world) takeTurn() int {
	w.turns++
	return w.turns
}

// turn returns the last turn that was given: as long as it is the same, nothing
// was made or cancelled.
func (w *world) turn() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns
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

// draft returns the shipment that would be made of a request, with its charge,
// or why it would be refused. With unique a reference that the account has given
// before is.
func (w *world) draft(account string, request api.ShipmentRequest, now time.Time, work time.Duration, unique bool) (shipment, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drafted(account, request, now, work, unique)
}

// drafted is draft for a world that is locked.
func (w *world) drafted(account string, request api.ShipmentRequest, now time.Time, work time.Duration, unique bool) (shipment, *refusal) {
	var wrong resilience.FieldErrors
	s := shipment{account: account, request: request, made: now, ready: now.Add(work)}
	if id := request.RateID; id != nil {
		s.charge = w.priceOf(*id, account, request, now, &wrong)
	} else {
		offered, _ := serviceOf(request.Service)
		_, cents := offered.price(consignmentOf(request))
		s.charge = euros(cents)
	}
	if id := request.ServicePointID; id != nil && !isServicePoint(*id) {
		wrong.Add("/servicePointId", "not_found", "is no service point")
	}
	if len(wrong) > 0 {
		return shipment{}, invalid(wrong)
	}
	if unique {
		for _, other := range w.shipments {
			if other.account == account && other.request.Reference == request.Reference {
				return shipment{}, refuse(http.StatusConflict, "duplicate_reference", "Reference already used",
					"%s has the reference %s.", other.id, request.Reference)
			}
		}
	}
	return s, nil
}

// create makes a shipment and charges for it, unless draft refuses it.
func (w *world) create(account, key string, request api.ShipmentRequest, now time.Time, work time.Duration, unique bool) (shipment, *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	made, refused := w.drafted(account, request, now, work, unique)
	if refused != nil {
		return shipment{}, refused
	}
	s := &made
	s.seq, s.turn = firstSeq, w.takeTurn()
	if n := len(w.shipments); n > 0 {
		s.seq = w.shipments[n-1].seq + 1
	}
	s.key, s.id, s.parcels = key, shipmentID(s.seq), parcelNumbers(s.seq, len(request.Parcels))
	s.number = s.parcels[0]
	for _, number := range s.parcels {
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

// idOf returns the id of what has a seq.
type idOf func(seq int) string

func shipmentID(seq int) string { return fmt.Sprintf("shp_%d", seq) }

// parcelNumbers returns the tracking numbers of the parcels of a shipment.
func parcelNumbers(seq, parcels int) []string {
	numbers := make([]string, parcels)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("BK%dP%dTR", seq, i+1)
	}
	if parcels > 0 {
		numbers[0] = fmt.Sprintf("BK%dTR", seq)
	}
	return numbers
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

func (f filter) takes(s *shipment) bool {
	return s.account == f.account &&
		(f.before == 0 || s.seq < f.before) &&
		(f.reference == "" || s.request.Reference == f.reference) &&
		(f.key == "" || s.key == f.key) &&
		(f.after.IsZero() || s.made.After(f.after))
}

// list returns an account's shipments, the newest first, and whether there are more.
func (w *world) list(f filter) (page []shipment, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.shipments) {
		if !f.takes(s) {
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
	case s.manifest != "":
		return shipment{}, refuse(http.StatusConflict, "already_manifested", "Shipment already manifested",
			"%s is on a manifest and can no longer be cancelled.", s.id)
	case s.handedOver(now):
		return shipment{}, refuse(http.StatusConflict, "already_in_transit", "Shipment already in transit",
			"%s has been handed over.", s.number)
	default:
		s.cancelledAt, s.cancelTurn = now, w.takeTurn()
		w.cancelled = append(w.cancelled, s)
		s.refund = now.Sub(s.made) > freeCancel || named(s.request.Reference, referenceRefundRejected)
	}
	return *s, nil
}

// status returns how far the shipment has come.
func (s shipment) status(now time.Time) api.ShipmentStatus {
	switch {
	case s.cancelledAt.IsZero() && now.Before(s.ready):
		return api.ShipmentStatusPending
	case s.manifest != "":
		return api.ShipmentStatusManifested
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
