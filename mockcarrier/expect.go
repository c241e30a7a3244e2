package mockcarrier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Expectation is what [Carrier.Expect] has been told to expect.
//
// Among those that match a request, the one with the most matchers counts it,
// and of several the first that was made, as long as it has not had all that it
// expects. It counts requests from when it was made on; attempts of the SDK are
// each a request, and what an HTTP library sends again by itself is none (see
// [Request].ResentOf).
//
// All its methods may be called by several goroutines.
type Expectation struct {
	set       *expectations
	operation string
	criteria  []criterion
	least     int
	most      int // noLimit for none
	after     []*Expectation
	came      int
	over      bool // a later one of an order has begun
}

const noLimit = -1

// expectations are those of a carrier, and the requests that none of them counted.
type expectations struct {
	strict bool

	mu         sync.Mutex
	list       []*Expectation
	unexpected []unexpected
	more       int // that were not kept
}

// unexpected is a request that no expectation counted, though one should have.
type unexpected struct {
	entry   *Request
	subject subject
	why     string
}

func (es *expectations) reset() {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.list, es.unexpected, es.more = nil, nil, 0
}

// Expect says that one request for an operation must come, by its operationId:
//
//	mock.Expect("createShipment").With(mockcarrier.Body("/reference", "order-1001")).Times(2)
//
// At the end of the test, what came too rarely fails it, and so does a request
// for an operation that is expected which no expectation counts: one with other
// parameters, one too many, one out of order. With [WithStrict] so does each
// request for any other operation. The requests are answered all the same.
//
// It panics if the API has no such operation.
func (c *Carrier) Expect(operation string) *Expectation {
	if err := checkOperation(operation); err != nil {
		panic("mockcarrier: " + err.Error())
	}
	e := &Expectation{set: &c.expected, operation: operation, least: 1, most: 1}
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	c.expected.list = append(c.expected.list, e)
	return e
}

// With narrows it down to requests that all the matchers match, those of earlier
// calls included. It panics if [Matcher.Validate] refuses one.
func (e *Expectation) With(matchers ...Matcher) *Expectation {
	criteria, err := compileAll(matchers)
	if err != nil {
		panic(err)
	}
	return e.change(func() { e.criteria = append(e.criteria, criteria...) })
}

// Times expects n requests, neither more nor fewer. 0 means that none may come.
func (e *Expectation) Times(n int) *Expectation { return e.between(n, n) }

// AtLeast expects n requests or more.
func (e *Expectation) AtLeast(n int) *Expectation { return e.between(n, noLimit) }

// AtMost expects n requests or fewer.
func (e *Expectation) AtMost(n int) *Expectation { return e.between(0, n) }

// AnyTimes expects any number of requests, none included. It is what lets them
// come where [WithStrict] is set.
func (e *Expectation) AnyTimes() *Expectation { return e.between(0, noLimit) }

func (e *Expectation) between(least, most int) *Expectation {
	if least < 0 || most < noLimit {
		panic("mockcarrier: a number of requests is negative")
	}
	return e.change(func() { e.least, e.most = least, most })
}

// InOrder says that the requests come one expectation after the other: the
// second's only when the first has had as many as it must, and then no more of
// the first's. All must be of one carrier.
func InOrder(list ...*Expectation) {
	for i, e := range list {
		if e.set != list[0].set {
			panic("mockcarrier: expectations of several carriers have no order")
		}
		if i > 0 {
			e.change(func() { e.after = append(e.after, list[i-1]) })
		}
	}
}

// Came returns how many requests it has counted.
func (e *Expectation) Came() int {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.came
}

// change changes it, as long as nobody looks.
func (e *Expectation) change(how func()) *Expectation {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	how()
	return e
}

// String describes it: `createShipment with body /reference = "order-1001"`.
func (e *Expectation) String() string {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.describe()
}

func (e *Expectation) describe() string {
	if len(e.criteria) == 0 {
		return e.operation
	}
	return e.operation + " with " + e.conditions()
}

func (e *Expectation) conditions() string {
	list := make([]string, len(e.criteria))
	for i, c := range e.criteria {
		list[i] = c.String()
	}
	return strings.Join(list, ", ")
}

// wanted is how many it expects, in words.
func (e *Expectation) wanted() string {
	switch {
	case e.least == e.most:
		return fmt.Sprint(e.least)
	case e.most == noLimit && e.least == 0:
		return "any number"
	case e.most == noLimit:
		return fmt.Sprintf("at least %d", e.least)
	}
	return fmt.Sprintf("at most %d", e.most)
}

func (e *Expectation) matches(s *subject) bool {
	if e.operation != s.operation {
		return false
	}
	for i := range e.criteria {
		if !e.criteria[i].matches(s) {
			return false
		}
	}
	return true
}

// full says why it does not count another request that matches; "" if it does.
func (e *Expectation) full() string {
	if e.over {
		return "it is over, since a later one of its order has begun"
	}
	if e.most != noLimit && e.came >= e.most {
		return "it has had " + e.wanted() + " already"
	}
	for _, before := range e.after {
		if before.came < before.least {
			return fmt.Sprintf("it comes after %s, of which %d of %s came", before.describe(), before.came, before.wanted())
		}
	}
	return ""
}

func (e *Expectation) take() {
	e.came++
	for _, before := range e.after {
		before.end()
	}
}

func (e *Expectation) end() {
	if !e.over {
		e.over = true
		for _, before := range e.after {
			before.end()
		}
	}
}

// noteArrival tells the journal and the expectations that a request has come
// and was read.
func (c *Carrier) noteArrival(x *exchange) {
	if c.journal.claim(x.entry) {
		return
	}
	by, why := c.expected.count(&x.subject, x.entry)
	if by != "" || why != "" {
		c.journal.update(x.entry, func(r *Request) { r.Expected, r.Unexpected = by, why != "" })
	}
}

// count gives a request to the expectation that counts it, and returns its
// description, or else why the request is not expected. Both are "" if nobody
// cares.
func (es *expectations) count(s *subject, entry *Request) (by, why string) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if len(es.list) == 0 && !es.strict {
		return "", ""
	}
	var cared bool
	var best *Expectation
	for _, e := range es.list {
		cared = cared || e.operation == s.operation
		if !e.matches(s) {
			continue
		}
		if full := e.full(); full != "" {
			why = fmt.Sprintf("%s: %s", e.describe(), full)
		} else if best == nil || len(e.criteria) > len(best.criteria) {
			best = e
		}
	}
	switch {
	case best != nil:
		best.take()
		return best.describe(), ""
	case why != "":
	case cared:
		why = "it is like none that is expected"
	case es.strict && s.operation != TokenOperation:
		why = "none for this operation is expected"
	default:
		return "", ""
	}
	const most = 100
	if len(es.unexpected) == most {
		es.more++
		return "", why
	}
	kept := *s
	kept.request = s.request.Clone(context.Background())
	kept.request.Body = nil
	es.unexpected = append(es.unexpected, unexpected{entry, kept, why})
	return "", why
}

// check says of each condition of the expectation whether a request meets it.
func (e *Expectation) check(s *subject) []Criterion {
	list := []Criterion{{What: "operation", OK: e.operation == s.operation, Want: e.operation, Got: orNothing(s.operation)}}
	for i := range e.criteria {
		list = append(list, e.criteria[i].check(s))
	}
	return list
}

// met counts the criteria that hold. The operation counts more than all others.
func met(list []Criterion) int {
	n := 0
	for _, c := range list {
		switch {
		case c.OK && c.What == "operation":
			n += 1000
		case c.OK:
			n += 10
		case len(c.Diff) > 0:
			n += max(0, 9-len(c.Diff))
		}
	}
	return n
}

// ExpectationReport is an expectation and how it has fared.
type ExpectationReport struct {
	Operation string `json:"operation"`
	// With are the conditions, in words.
	With []string `json:"with,omitempty"`
	// Wanted is how many requests are expected, in words: "2", "at least 1".
	Wanted string `json:"wanted"`
	// Came is how many it has counted, and Met whether that is enough.
	Came int  `json:"came"`
	Met  bool `json:"met"`
}

// Expectations returns what is expected and how it has fared, in the order of
// their making.
func (c *Carrier) Expectations() []ExpectationReport {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	list := make([]ExpectationReport, len(c.expected.list))
	for i, e := range c.expected.list {
		list[i] = ExpectationReport{Operation: e.operation, Wanted: e.wanted(), Came: e.came, Met: e.came >= e.least}
		for _, condition := range e.criteria {
			list[i].With = append(list[i].With, condition.String())
		}
	}
	return slices.Clip(list)
}
