package mockcarrier

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// report writes which expectations were not met and which requests were not
// expected, each with what came nearest.
func (es *expectations) report(b *strings.Builder) {
	es.mu.Lock()
	defer es.mu.Unlock()
	told := map[int]bool{} // requests whose difference was told already, by their number
	es.reportUnmet(b, told)
	es.reportUnexpected(b, told)
}

func (es *expectations) reportUnmet(b *strings.Builder, told map[int]bool) {
	var unmet []*Expectation
	for _, e := range es.list {
		if e.came < e.least {
			unmet = append(unmet, e)
		}
	}
	if len(unmet) == 0 {
		return
	}
	fmt.Fprintf(b, "mockcarrier: %s not met:\n", count(len(unmet), "expectation was", "expectations were"))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  expected\twith\twanted\tcame")
	for _, e := range unmet {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%d\n", e.operation, orNothing(e.conditions()), e.wanted(), e.came)
	}
	_ = t.Flush()
	for _, e := range unmet {
		near, list := es.nearestRequest(e)
		if near == nil {
			continue
		}
		told[near.entry.Seq] = true
		fmt.Fprintf(b, "  nearest to %s: request %d, %s %s\n", e.describe(), near.entry.Seq, near.entry.Method, near.entry.Path)
		writeCriteria(b, "    ", list)
		if full := e.full(); full != "" && e.matches(&near.subject) {
			fmt.Fprintf(b, "    %s turn: %s\n", mark(false), full)
		}
	}
}

// nearestRequest returns the request that was not expected and comes nearest, if
// one is for the operation at least.
func (es *expectations) nearestRequest(e *Expectation) (near *unexpected, list []Criterion) {
	for i := range es.unexpected {
		u := &es.unexpected[i]
		if u.subject.operation != e.operation {
			continue
		}
		if c := e.check(&u.subject); near == nil || met(c) > met(list) {
			near, list = u, c
		}
	}
	return near, list
}

func (es *expectations) reportUnexpected(b *strings.Builder, told map[int]bool) {
	if len(es.unexpected) == 0 {
		return
	}
	fmt.Fprintf(b, "mockcarrier: %s not expected:\n", count(len(es.unexpected)+es.more, "request was", "requests were"))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  #\toperation\tmethod\tpath\twhy")
	for _, u := range es.unexpected {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\t%s\n", u.entry.Seq, u.subject.operation, u.entry.Method, u.entry.Path, u.why)
	}
	_ = t.Flush()
	if es.more > 0 {
		fmt.Fprintf(b, "  and %d more\n", es.more)
	}
	for i := range es.unexpected {
		u := &es.unexpected[i]
		if e := es.nearest(&u.subject); e != nil && !told[u.entry.Seq] && !e.matches(&u.subject) {
			fmt.Fprintf(b, "  nearest to request %d: %s\n", u.entry.Seq, e.describe())
			writeCriteria(b, "    ", e.check(&u.subject))
		}
	}
}

// nearest returns the expectation for the operation that comes nearest.
func (es *expectations) nearest(s *subject) (near *Expectation) {
	best := 0
	for _, e := range es.list {
		if e.operation != s.operation {
			continue
		}
		if n := met(e.check(s)); near == nil || n > best {
			near, best = e, n
		}
	}
	return near
}

func mark(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

// writeCriteria writes a line for each criterion, and one for each difference.
func writeCriteria(b *strings.Builder, indent string, list []Criterion) {
	for _, c := range list {
		switch {
		case c.OK:
			fmt.Fprintf(b, "%s%s %s %s\n", indent, mark(true), c.What, c.Got)
		case len(c.Diff) > 0:
			fmt.Fprintf(b, "%s%s %s differs:\n", indent, mark(false), c.What)
			for _, d := range c.Diff {
				fmt.Fprintf(b, "%s    %s\n", indent, d)
			}
		default:
			fmt.Fprintf(b, "%s%s %s: got %s, want %s\n", indent, mark(false), c.What, c.Got, c.Want)
		}
	}
}
