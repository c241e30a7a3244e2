package mockcarrier

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// scenarioFaults are the faults that a tracking number brings about, by its
// first letters. Where a fault strikes once, it does so once for each number.
var scenarioFaults = map[string]func(now time.Time) Fault{
	"MC12": always(Status(410).DuringProcessing()),
	"MC17": always(Status(404).DuringProcessing().Times(3)),
	"MC19": always(Status(200).DuringProcessing().WithBody(`{"trackingNumber":null,"status":"","estimatedDelivery":null,` +
		`"signedBy":"","events":[{"at":"","status":null,"location":""},{"at":null},{}],"updatedAt":""}`)),
	"MC41": always(Status(400).DuringProcessing()),
	"MC42": always(Status(429).RetryAfter(1)),
	"MC43": func(now time.Time) Fault {
		return Status(429).WithHeader("Retry-After", now.Add(time.Second).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	},
	"MC44": func(now time.Time) Fault {
		return Status(429).WithHeader("X-RateLimit-Reset", strconv.FormatInt(now.Add(time.Second).Unix(), 10))
	},
	"MC45": always(Status(503).RetryAfter(1).Times(1)),
	"MC46": always(Status(503).RetryAfter(1)),
	"MC47": always(HTML(502)),
	"MC48": always(HTML(200)),
	"MC49": always(Status(200).WithBody(`{"error":{"code":"internal_error","message":"The request could not be completed."}}`)),
	"MC50": always(Delay(5 * time.Second)),
	"MC51": always(Stall()),
	"MC52": always(ResetBefore()),
	"MC53": always(ResetAfter()),
	"MC54": always(Truncate(30, ByLength)),
	"MC55": always(ContentType("text/plain")),
	"MC56": always(Status(401).Times(1)),
	"MC57": always(Status(403)),
	"MC58": always(Status(204)),
	"MC59": always(Status(200).WithBody("no gzip at all").WithHeader("Content-Type", jsonType).WithHeader("Content-Encoding", "gzip")),
	"MC60": always(Status(204).WithHeader("Content-Type", jsonType)),
}

// referenceFaults are the faults that the reference of a new shipment brings
// about, once for each idempotency key. The reference may go on after a hyphen.
var referenceFaults = map[string]Fault{
	"FAULT-RESET-AFTER-COMMIT":   ResetAfter().Times(1),
	"FAULT-TIMEOUT-AFTER-COMMIT": StallAfter().Times(1),
	"FAULT-503-BEFORE-COMMIT":    Status(503).RetryAfter(1).Times(1),
}

func always(f Fault) func(time.Time) Fault { return func(time.Time) Fault { return f } }

// banned is how long MC57 is refused after it was first asked for.
const banned = time.Minute

// scripted remembers how far the scenarios have got.
type scripted struct {
	mu    sync.Mutex
	rules map[string]*rule
	first map[string]time.Time
}

func (s *scripted) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.first = make(map[string]*rule), make(map[string]time.Time)
}

// pick returns the fault that a request brings about by what it is about.
func (s *scripted) pick(about subject, now time.Time) (Fault, bool) {
	switch about.operation {
	case "getTracking":
		number := about.trackingNumbers[0]
		name := scenarioOf(number)
		fault, ok := scenarioFaults[name]
		if !ok || name == "MC57" && !s.within(number, now, banned) {
			return Fault{}, false
		}
		return s.strike(number, fault(now))
	case "createShipment":
		for name, fault := range referenceFaults {
			for _, reference := range about.references {
				if reference == name || strings.HasPrefix(reference, name+"-") {
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
	return f, r.strikes()
}
