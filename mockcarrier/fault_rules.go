package mockcarrier

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// rules decide which fault a request, a connection or a delivery meets. The newest rule
// that strikes wins; a rule does not see, and does not count, what a newer one
// took.
type rules struct {
	seed uint64

	mu     sync.Mutex
	active []*rule
	all    []*rule // those that were cleared included, for the verdict at the end
}

// rule is a fault in force, with its counters.
type rule struct {
	Fault
	criteria    []criterion
	target      target
	since       time.Time // on the carrier's clock
	seen, fired int
}

func newRule(f Fault, now time.Time) *rule {
	r := &rule{Fault: f.clone(), since: now}
	r.criteria, _ = compileAll(r.Match) // Validate has seen it
	r.target = r.strikes()
	return r
}

func (rs *rules) add(f Fault, now time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := newRule(f, now)
	if r.Seed == 0 {
		r.Seed = rs.seed + uint64(len(rs.all)) // rules decide independently of one another
	}
	rs.active = append(rs.active, r)
	rs.all = append(rs.all, r)
}

func (rs *rules) clear() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.active = nil
}

func (rs *rules) reset() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.active, rs.all = nil, nil
}

// pick returns the fault that strikes a request.
func (rs *rules) pick(s *subject, now time.Time) (Fault, bool) {
	return rs.first(func(r *rule) bool { return r.target == requests && r.inForce(now) && r.matches(s) })
}

// pickConnection returns the fault that strikes a new connection.
func (rs *rules) pickConnection(now time.Time) (Fault, bool) {
	return rs.first(func(r *rule) bool { return r.target == connections && r.inForce(now) })
}

// pickDelivery returns the fault that strikes an attempt to deliver a
// notification.
func (rs *rules) pickDelivery(s *subject, now time.Time) (Fault, bool) {
	return rs.first(func(r *rule) bool { return r.target == deliveries && r.inForce(now) && r.matches(s) })
}

func (rs *rules) first(matches func(*rule) bool) (Fault, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range slices.Backward(rs.active) {
		if matches(r) {
			if f, ok := r.strike(); ok {
				return f, true
			}
		}
	}
	return Fault{}, false
}

// ruleReport is a rule and how it has fared.
type ruleReport struct {
	Fault Fault `json:"fault"`
	Seen  int   `json:"seen"`
	Fired int   `json:"fired"`
}

// report returns the rules in the order of their making: those in force, or all.
func (rs *rules) report(all bool) []ruleReport {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := rs.active
	if all {
		list = rs.all
	}
	reports := make([]ruleReport, len(list))
	for i, r := range list {
		reports[i] = ruleReport{r.clone(), r.seen, r.fired}
	}
	return reports
}

// random says whether some rule was decided by chance.
func (rs *rules) random() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.ContainsFunc(rs.all, func(r *rule) bool { return r.Probability != nil || r.MaxWait > 0 || r.Sigma > 0 })
}

func (r *rule) inForce(now time.Time) bool {
	return (r.Lasts == 0 || now.Before(r.since.Add(r.Lasts))) && (r.Ends.IsZero() || now.Before(r.Ends))
}

func (r *rule) matches(s *subject) bool {
	if len(r.Operations) > 0 && !slices.Contains(r.Operations, s.operation) ||
		len(r.Operations) == 0 && s.operation == TokenOperation ||
		!allows(r.Keys, s.key) {
		return false
	}
	if len(r.References) > 0 || len(r.TrackingNumbers) > 0 {
		references, numbers := s.about()
		if !allows(r.References, references...) || !allows(r.TrackingNumbers, numbers...) {
			return false
		}
	}
	for i := range r.criteria {
		if !r.criteria[i].matches(s) {
			return false
		}
	}
	return true
}

func allows(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) })
}

// strike counts a request that matches, and decides.
func (r *rule) strike() (Fault, bool) {
	r.seen++
	if r.spared() != "" {
		return Fault{}, false
	}
	r.fired++
	return r.act(), true
}

// spared says why the last request that was seen is left alone; "" if it is not.
func (r *rule) spared() string {
	ordinal := r.seen - r.After
	limit := r.limit()
	switch {
	case ordinal <= 0:
		return fmt.Sprintf("it leaves the first %d alone", r.After)
	case limit > 0 && r.fired >= limit:
		return fmt.Sprintf("it has struck %s, as often as it should", count(r.fired, "time", "times"))
	case r.Every > 0 && ordinal%r.Every != 0:
		return fmt.Sprintf("it strikes at every %d, and this is number %d", r.Every, ordinal)
	case r.AllBut > 0 && ordinal%r.AllBut == 0:
		return fmt.Sprintf("it leaves every %d alone, and this is number %d", r.AllBut, ordinal)
	case r.Probability != nil && r.draw(forStriking, ordinal).Float64() >= *r.Probability:
		// Float64 is below 1, so that probability 1 always and 0 never strikes.
		return fmt.Sprintf("seed %d decides against number %d", r.Seed, ordinal)
	}
	return ""
}

// limit is how often the rule strikes; 0 means without end.
func (r *rule) limit() int {
	if r.Kind == KindSequence && r.First == 0 && !r.Loop {
		return r.length()
	}
	return r.First
}

// length is how many requests a sequence takes.
func (r *rule) length() int {
	total := 0
	for _, step := range r.Steps {
		total += max(1, step.First)
	}
	return total
}

// act returns what the rule does this time: the step that it has come to, with
// a wait that is drawn.
func (r *rule) act() Fault {
	f := r.Fault
	if r.Kind == KindSequence {
		place := (r.fired - 1) % r.length()
		for _, step := range r.Steps {
			if place -= max(1, step.First); place < 0 {
				f = step
				break
			}
		}
	}
	if f.MaxWait > 0 || f.Sigma > 0 {
		f.Wait = f.wait(r.draw(forWaiting, r.fired))
		f.MaxWait, f.Sigma = 0, 0
	}
	return f
}

// What is drawn for, so that one does not depend on the other.
const (
	forStriking = uint64(0)
	forWaiting  = uint64(1) << 63
)

// draw returns a source that depends on the seed and an ordinal alone.
func (r *rule) draw(purpose uint64, ordinal int) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed^purpose, uint64(ordinal)))
}

// wait draws how long a delay that varies lasts, in whole microseconds.
func (f Fault) wait(source *rand.Rand) time.Duration {
	wait := float64(f.Wait)
	if f.Sigma == 0 {
		wait += source.Float64() * float64(f.MaxWait-f.Wait)
	} else {
		wait *= math.Exp(f.Sigma * source.NormFloat64())
		longest := float64(math.MaxInt64 / 2)
		if f.MaxWait > 0 {
			longest = float64(f.MaxWait)
		}
		wait = min(wait, longest)
	}
	return time.Duration(wait).Truncate(time.Microsecond)
}

// explain says of each condition of the rule whether a request meets it. It
// counts nothing.
func (r *rule) explain(s *subject, now time.Time) []Criterion {
	var list []Criterion
	add := func(what string, want []string, got ...string) {
		if len(want) > 0 {
			list = append(list, Criterion{
				What: what, OK: allows(want, got...), Want: strings.Join(want, " or "), Got: orNothing(strings.Join(got, " and ")),
			})
		}
	}
	references, numbers := s.about()
	add("operation", r.Operations, s.operation)
	add("key", r.Keys, s.key)
	add("reference", r.References, references...)
	add("parcel", r.TrackingNumbers, numbers...)
	for i := range r.criteria {
		list = append(list, r.criteria[i].check(s))
	}
	if len(r.Operations) == 0 && s.operation == TokenOperation {
		list = append(list, Criterion{What: "operation", Want: "any but " + TokenOperation, Got: s.operation})
	}
	if !r.inForce(now) {
		list = append(list, Criterion{What: "time", Want: "while it is in force", Got: "it is over"})
	}
	next := *r
	next.seen++
	if why := next.spared(); why != "" {
		list = append(list, Criterion{What: "turn", Want: next.scope(), Got: why})
	}
	return list
}

func orNothing(s string) string {
	if s == "" {
		return nothing
	}
	return s
}
