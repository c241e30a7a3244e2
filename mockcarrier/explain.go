package mockcarrier

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

// Explanation says what would become of a request; see [Carrier.Explain]. Its
// String is for people.
type Explanation struct {
	// Operation is the operationId, and "" if none matches. Nearest then names
	// the one that comes nearest.
	Operation string `json:"operation,omitempty"`
	Nearest   string `json:"nearest,omitempty"`
	// Faults are the rules in force, the newest first: the first that applies
	// is the one that would strike. Expectations are those of [Carrier.Expect].
	Faults       []Verdict `json:"faults,omitempty"`
	Expectations []Verdict `json:"expectations,omitempty"`
}

// Verdict is what a fault rule or an expectation says of a request.
type Verdict struct {
	// What describes the rule or the expectation.
	What string `json:"what"`
	// Applies says that the rule would strike, or the expectation count it.
	Applies bool `json:"applies"`
	// Criteria are its conditions, one by one. Empty means that it has none.
	Criteria []Criterion `json:"criteria,omitempty"`
}

// Explain says which operation a request is for, which faults would strike it
// and which expectations count it, and why not the others. The request is made
// as for a client, from [Server].URL, and is not sent: nothing is counted, and
// its body can be read again. It returns an error if the body cannot be read.
func (c *Carrier) Explain(r *http.Request) (Explanation, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return Explanation{}, fmt.Errorf("mockcarrier: the body of the request: %w", err)
		}
		_ = r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	operation, params, _ := c.router.match(r)
	if operation == nil {
		return Explanation{Nearest: c.router.nearest(r.Method, r.URL.Path)}, nil
	}
	s := &subject{operation: operation.ID, params: params, request: r, body: body, world: c.world}
	if header := operation.KeyHeader; header != "" {
		s.key, _ = idempotency.ParseKey(r.Header.Values(header), c.config.strictKeys)
	}
	e := Explanation{Operation: s.operation}
	e.Faults = c.rules.explain(s, c.now())
	e.Expectations = c.expected.explain(s)
	return e, nil
}

func (rs *rules) explain(s *subject, now time.Time) []Verdict {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var list []Verdict
	for _, r := range slices.Backward(rs.active) {
		if r.target != requests {
			continue
		}
		v := Verdict{What: r.String() + " for " + r.scope(), Criteria: r.explain(s, now)}
		v.Applies = allOK(v.Criteria)
		list = append(list, v)
	}
	return list
}

func (es *expectations) explain(s *subject) []Verdict {
	es.mu.Lock()
	defer es.mu.Unlock()
	var list []Verdict
	for _, e := range es.list {
		v := Verdict{What: e.describe() + ", " + e.wanted(), Criteria: e.check(s)}
		if full := e.full(); full != "" {
			v.Criteria = append(v.Criteria, Criterion{What: "turn", Want: e.wanted(), Got: full})
		}
		v.Applies = allOK(v.Criteria)
		list = append(list, v)
	}
	return list
}

func allOK(list []Criterion) bool {
	return !slices.ContainsFunc(list, func(c Criterion) bool { return !c.OK })
}

// String writes it line by line, with a mark for each condition that holds and
// for each that does not.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Operation == "" {
		fmt.Fprintf(&b, "%s operation: none; the nearest is %s\n", mark(false), e.Nearest)
		return b.String()
	}
	fmt.Fprintf(&b, "%s operation %s\n", mark(true), e.Operation)
	writeVerdicts(&b, "fault", e.Faults)
	writeVerdicts(&b, "expectation", e.Expectations)
	return b.String()
}

func writeVerdicts(b *strings.Builder, what string, list []Verdict) {
	for _, v := range list {
		fmt.Fprintf(b, "%s %s %s\n", mark(v.Applies), what, v.What)
		writeCriteria(b, "    ", v.Criteria)
	}
}
