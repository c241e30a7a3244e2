package mockcarrier

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// scenarioFaults are the faults that a tracking number brings about, by its
// first letters. Where a fault strikes once, it does so once for each number.
var scenarioFaults = map[string]Fault{
	"MC19": Status(200).DuringProcessing().WithBody(`{"trackingNumber":null,"status":"","estimatedDelivery":null,` +
		`"signedBy":"","events":[{"at":"","status":null,"location":""},{"at":null},{}],"updatedAt":""}`),
	"MC41": Status(400).DuringProcessing(),
	"MC42": Status(429).RetryAfter(1),
	"MC43": Status(429).RetryAfterDate(time.Second),
	"MC44": Status(429), // and X-RateLimit-Reset; see pick
	"MC45": Status(503).RetryAfter(1).Times(1),
	"MC46": Status(503).RetryAfter(1),
	"MC47": HTML(502),
	"MC48": HTML(200),
	"MC49": Status(200).WithBody(`{"error":{"code":"internal_error","message":"The request could not be completed."}}`),
	"MC50": Delay(5 * time.Second),
	"MC51": Stall(),
	"MC52": ResetBefore(),
	"MC53": ResetAfter(),
	"MC54": Truncate(30, ByLength),
	"MC55": ContentType("text/plain"),
	"MC56": ExpiredToken().Times(1),
	"MC57": Status(403),
	"MC58": Status(204),
	"MC59": BadGzip(),
	"MC60": Status(204).WithHeader("Content-Type", jsonType),
}

// referenceFaults are the faults that the reference of a new shipment brings
// about, once for each idempotency key. See named for how they are found.
var referenceFaults = map[string]Fault{
	"FAULT-RESET-AFTER-COMMIT":   ResetAfter().Times(1),
	"FAULT-TIMEOUT-AFTER-COMMIT": StallAfter().Times(1),
	referenceRefused:             Status(503).RetryAfter(1).Times(1),
	"FAULT-409-INPROGRESS":       Status(409).WithCode("idempotency_in_progress").RetryAfter(1).Times(1),
}

// referenceRefused brings its fault about for validateShipment too, once for
// each reference. The others have a key or a purchase to do with.
const referenceRefused = "FAULT-503-BEFORE-COMMIT"

// The references that change what becomes of a shipment.
const (
	referenceAsync          = "FAULT-ASYNC"           // it is made in the background
	referenceLabelPending   = "FAULT-LABEL-PENDING"   // its label takes its time
	referenceLabelBlank     = "FAULT-LABEL-BLANK"     // its label has nothing on it
	referenceRefundRejected = "FAULT-REFUND-REJECTED" // the money does not come back
)

// named says whether a reference is one of these, alone or with more behind a
// hyphen.
func named(reference, name string) bool {
	rest, ok := strings.CutPrefix(reference, name)
	return ok && (rest == "" || rest[0] == '-')
}

// banned is how long MC57 is refused after it was first asked for.
const banned = time.Minute

// scripted remembers how far the scenarios have got.
type scripted struct {
	mu    sync.Mutex
	rules map[string]*rule
	first map[string]time.Time
	calls map[string]int
}

func (s *scripted) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.first, s.calls = make(map[string]*rule), make(map[string]time.Time), make(map[string]int)
}

// pick returns the fault that a request brings about by what it is about.
func (s *scripted) pick(about *subject, now time.Time) (Fault, bool) {
	switch about.operation {
	case "getTracking":
		number := about.params["trackingNumber"]
		name := scenarioOf(number)
		fault, ok := scenarioFaults[name]
		if !ok || name == "MC57" && !s.within(number, now, banned) {
			return Fault{}, false
		}
		if name == "MC44" {
			fault = fault.WithHeader("X-RateLimit-Reset", strconv.FormatInt(now.Add(time.Second).Unix(), 10))
		}
		return s.strike(number, fault)
	case "createShipment", "validateShipment":
		if !bytes.Contains(about.body, []byte("FAULT-")) {
			return Fault{}, false
		}
		references, _ := about.about()
		for name, fault := range referenceFaults {
			for _, reference := range references {
				if named(reference, name) && (about.operation == "createShipment" || name == referenceRefused) {
					return s.strike(about.key+" "+reference, fault)
				}
			}
		}
	}
	return Fault{}, false
}

// within says whether something was first asked for less than d ago.
func (s *scripted) within(what string, now time.Time, d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.first[what]; !ok {
		s.first[what] = now
	}
	return now.Sub(s.first[what]) < d
}

func (s *scripted) strike(what string, f Fault) (Fault, bool) {
	if f.First == 0 { // nothing to count
		return f, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rules[what]
	if r == nil {
		r = &rule{Fault: f}
		s.rules[what] = r
	}
	return r.strike()
}

// call counts how often a number has been asked for, from 1.
func (s *scripted) call(number string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[number]++
	return s.calls[number]
}

// trackScenario answers for a number that stands for a case. A number that was
// given twice has two parcels, the newer first.
func (c *Carrier) trackScenario(number string) ([]api.Tracking, *refusal) {
	known, ok := caseOf(number)
	if !ok {
		return nil, nil
	}
	started := c.world.since()
	switch scenarioOf(number) {
	case "MC12":
		return nil, refuse(http.StatusGone, "tracking_expired", "Tracking history removed",
			"The history of %s was removed 120 days after delivery.", number)
	case "MC14":
		return recycled(known, number, started), nil
	case "MC15":
		return []api.Tracking{known.upTo(c.scripted.call(number)).tracking(number, started)}, nil
	case "MC17":
		const unknown = 3
		if c.scripted.call(number) <= unknown {
			return nil, noParcel(number)
		}
	}
	return []api.Tracking{known.tracking(number, started)}, nil
}

// recycled are the two parcels of a number that was given again after a year.
// The newer shows the events of both, as carriers do that keep them by number.
func recycled(newer parcelCase, number string, started time.Time) []api.Tracking {
	const year = 365 * 24 * time.Hour
	now := newer.tracking(number, started)
	before := scenarios["MC04"].tracking(number, started.Add(-year))
	now.Events = append(append([]api.TrackingEvent(nil), before.Events...), now.Events...)
	return []api.Tracking{now, before}
}

func noParcel(number string) *refusal {
	return refuse(http.StatusNotFound, "tracking_not_found", "Tracking number not found", "No parcel has the number %s.", number)
}
