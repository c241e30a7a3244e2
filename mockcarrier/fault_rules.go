package mockcarrier

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// subject is what a request is about, as far as rules can tell requests apart.
type subject struct {
	operation       string
	key             string
	references      []string
	trackingNumbers []string
}

// rules decide which fault a request meets. The newest rule that strikes wins;
// a rule does not see, and does not count, the requests that a newer one took.
type rules struct {
	seed uint64

	mu     sync.Mutex
	active []*rule
	all    []*rule // those that were cleared included, for the verdict at the end
}

// rule is a fault in force, with its counters.
type rule struct {
	Fault
	seen, fired int
}

func (rs *rules) add(f Fault) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := &rule{Fault: f.clone()}
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
func (rs *rules) pick(s subject) (Fault, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range slices.Backward(rs.active) {
		if r.matches(s) && r.strikes() {
			return r.Fault, true
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

func (r *rule) matches(s subject) bool {
	return allows(r.Operations, s.operation) && allows(r.Keys, s.key) &&
		allows(r.References, s.references...) && allows(r.TrackingNumbers, s.trackingNumbers...)
}

func allows(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) })
}

// strikes counts a request that matches, and decides.
func (r *rule) strikes() bool {
	r.seen++
	ordinal := r.seen - r.After
	switch {
	case ordinal <= 0,
		r.First > 0 && r.fired >= r.First,
		r.Every > 0 && ordinal%r.Every != 0,
		r.AllBut > 0 && ordinal%r.AllBut == 0,
		r.Probability != nil && !drawn(*r.Probability, r.Seed, uint64(ordinal)):
		return false
	}
	r.fired++
	return true
}

// drawn decides by seed and ordinal alone. Float64 is below 1, so that
// probability 1 always and 0 never strikes.
func drawn(probability float64, seed, ordinal uint64) bool {
	return rand.New(rand.NewPCG(seed, ordinal)).Float64() < probability
}
