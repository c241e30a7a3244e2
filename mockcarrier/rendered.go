package mockcarrier

import (
	"sync"
	"time"
)

// rendered keeps answers of getTracking as they were encoded, since a parcel is
// asked for far more often than it moves.
type rendered struct {
	mu      sync.Mutex
	answers map[trackingVersion]trackingAnswer
}

// trackingVersion is all that the tracking of a number depends on.
type trackingVersion struct {
	number      string
	started     time.Time // of the world
	events      int       // that have happened; 0 for a case, which does not move
	cancelledAt time.Time
}

func (r *rendered) get(v trackingVersion) (trackingAnswer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[v]
	return a, ok
}

func (r *rendered) put(v trackingVersion, a trackingAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const most = 4096
	if r.answers == nil || len(r.answers) == most {
		r.answers = make(map[trackingVersion]trackingAnswer)
	}
	r.answers[v] = a
}

// versionOf says what the tracking of a number depends on now; false if it is
// another at each call, or there is none.
func (c *Carrier) versionOf(number string, now time.Time) (trackingVersion, bool) {
	v := trackingVersion{number: number, started: c.world.since()}
	if known, ok := caseOf(number); ok {
		return v, !known.scripted
	}
	s, ok := c.world.find("", number)
	if !ok || now.Before(s.ready) {
		return v, false
	}
	v.events, v.cancelledAt = s.stages(now), s.cancelledAt
	return v, true
}
