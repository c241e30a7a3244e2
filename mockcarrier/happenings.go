package mockcarrier

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// position is where something stands in the order of all that happens to parcels:
// by its time, then by the turn of what brought it about, then by the parcel of
// the shipment. What is made or cancelled later at the same moment has a later
// turn, so that nothing new ever comes before what was seen already, unless the
// clock is set back.
type position struct {
	At     time.Time `json:"at"`
	Turn   int       `json:"turn"`
	Parcel int       `json:"parcel"`
}

func (p position) compare(q position) int {
	return cmp.Or(p.At.Compare(q.At), cmp.Compare(p.Turn, q.Turn), cmp.Compare(p.Parcel, q.Parcel))
}

// happening is one event of one parcel.
type happening struct {
	shipment shipment
	at       position
}

func (h happening) number() string { return h.shipment.parcels[h.at.Parcel] }

// then returns the shipment as it was when it happened.
func (h happening) then() shipment {
	s := h.shipment
	if h.at.Turn != s.cancelTurn {
		s.cancelledAt = time.Time{}
	}
	return s
}

// tracking returns the parcel as it was then.
func (h happening) tracking() api.Tracking { return h.then().tracking(h.number(), h.at.At) }

// event returns what happened.
func (h happening) event() api.TrackingEvent {
	events := h.then().events(h.at.At)
	return events[len(events)-1]
}

// feed goes through what happens to the parcels of an account, the oldest
// first: what has happened, and what will if nothing is cancelled. It finds what
// is made and cancelled meanwhile. It holds one entry for each shipment, and is
// for one goroutine at a time.
type feed struct {
	world   *world
	account string
	after   position // what it begins behind

	steps     steps // the next stage of each shipment, as a heap
	shipments int   // how many of the world's are in steps, or were
	cancelled int   // how many of the world's cancelled ones are done with
	parcels   int   // how many of the next one's parcels are
	cancel    bool  // what is next is a cancellation
}

// feed returns all that happens to an account's parcels behind a position.
func (w *world) feed(account string, after position) *feed {
	return &feed{world: w, account: account, after: after}
}

// peek returns what is next; false if nothing is.
func (f *feed) peek() (happening, bool) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	for _, s := range f.world.shipments[min(f.shipments, len(f.world.shipments)):] {
		f.push(stepOf{shipment: s})
	}
	f.shipments = len(f.world.shipments)
	for len(f.steps) > 0 && !f.steps[0].happens() {
		heap.Pop(&f.steps)
	}
	cancelled, at := f.cancellation()
	f.cancel = cancelled != nil && (len(f.steps) == 0 || at.compare(f.steps[0].at) < 0)
	switch {
	case f.cancel:
		return happening{*cancelled, at}, true
	case len(f.steps) > 0:
		return happening{*f.steps[0].shipment, f.steps[0].at}, true
	}
	return happening{}, false
}

// pass goes on behind what peek has returned.
func (f *feed) pass() {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	if f.cancel {
		f.parcels++
		return
	}
	f.push(heap.Pop(&f.steps).(stepOf).following())
}

// push adds the next stage of a shipment, from the given one on, that is behind
// where the feed begins. The world is locked.
func (f *feed) push(s stepOf) {
	if s.account != f.account {
		return
	}
	for ; s.step < len(journey); s = s.following() {
		s.at = position{s.reaches(s.step), s.turn, s.parcel}
		if s.at.compare(f.after) > 0 {
			heap.Push(&f.steps, s)
			return
		}
	}
}

// cancellation finds the next one; nil if there is none. The world is locked.
func (f *feed) cancellation() (*shipment, position) {
	for ; f.cancelled < len(f.world.cancelled); f.cancelled, f.parcels = f.cancelled+1, 0 {
		s := f.world.cancelled[f.cancelled]
		for ; s.account == f.account && f.parcels < len(s.parcels); f.parcels++ {
			if at := (position{s.cancelledAt, s.cancelTurn, f.parcels}); at.compare(f.after) > 0 {
				return s, at
			}
		}
	}
	return nil, position{}
}

// stepOf is a stage of the journey of one of a shipment's parcels.
type stepOf struct {
	*shipment
	step, parcel int
	at           position
}

// following is the stage of the next parcel, or the next stage of the first.
func (s stepOf) following() stepOf {
	if s.parcel++; s.parcel == len(s.parcels) {
		s.step, s.parcel = s.step+1, 0
	}
	return s
}

// happens says whether the shipment was not cancelled before.
func (s stepOf) happens() bool { return s.cancelledAt.IsZero() || !s.at.At.After(s.cancelledAt) }

// steps are a heap, the first at the top.
type steps []stepOf

// Len is for package heap.
func (s steps) Len() int { return len(s) }

// Less is for package heap.
func (s steps) Less(i, j int) bool { return s[i].at.compare(s[j].at) < 0 }

// Swap is for package heap.
func (s steps) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Push is for package heap.
func (s *steps) Push(x any) { *s = append(*s, x.(stepOf)) }

// Pop is for package heap.
func (s *steps) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = stepOf{}
	*s = (*s)[:last]
	return x
}

// restoreTurns puts the cancelled shipments in order again, in a world that is
// locked, and gives turns to those of a state that had none.
func (w *world) restoreTurns(last int) {
	w.turns, w.cancelled = last, nil
	for _, s := range w.shipments {
		if s.turn == 0 {
			s.turn = w.takeTurn()
		}
		w.turns = max(w.turns, s.turn)
	}
	for _, s := range w.shipments {
		if s.cancelledAt.IsZero() {
			continue
		}
		if s.cancelTurn == 0 {
			s.cancelTurn = w.takeTurn()
		}
		w.turns = max(w.turns, s.cancelTurn)
		w.cancelled = append(w.cancelled, s)
	}
	slices.SortFunc(w.cancelled, func(a, b *shipment) int { return cmp.Compare(a.cancelTurn, b.cancelTurn) })
}

// here returns the position behind all that has happened until now.
func (w *world) here(now time.Time) position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return position{now, w.takeTurn(), math.MaxInt}
}

// happened returns what happened at a position to a shipment; false if the
// shipment is not known.
func (w *world) happened(shipmentID string, at position) (happening, bool) {
	s, ok := w.find(shipmentID, "")
	if !ok || at.Parcel < 0 || at.Parcel >= len(s.parcels) {
		return happening{}, false
	}
	h := happening{s, at}
	return h, len(h.then().events(at.At)) > 0
}
