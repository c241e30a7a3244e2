package mockcarrier

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// verify fails the test for what went otherwise than it was set up. In a test
// that has failed already it only says so, since that may be why.
func (s *Server) verify(tb testing.TB) {
	tb.Helper()
	report := s.report()
	switch {
	case report == "":
	case tb.Failed():
		tb.Log(report)
	default:
		tb.Error(report)
	}
	if tb.Failed() && s.rules.random() {
		tb.Logf("mockcarrier: faults were decided by chance, with WithSeed(%d)", s.config.seed)
	}
}

// Verify returns what a [Server] fails its test with at the end: the
// expectations that were not met, the requests that were not expected, the
// faults that never struck, and the requests that matched no operation; nil if
// all is well.
func (c *Carrier) Verify() error {
	if report := c.report(); report != "" {
		return errors.New(report)
	}
	return nil
}

// report is what Verify says, and where the carrier itself has failed.
func (c *Carrier) report() string {
	var b strings.Builder
	c.expected.report(&b)
	c.reportFaults(&b)
	if !c.config.unmatchedAllowed {
		c.reportUnmatched(&b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, bug := range c.bugs {
		fmt.Fprintf(&b, "mockcarrier: a bug in the mock: %s\n", bug)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (c *Carrier) reportFaults(b *strings.Builder) {
	var silent []ruleReport
	for _, r := range c.rules.report(true) {
		if r.Fired == 0 && !r.Fault.Optional {
			silent = append(silent, r)
		}
	}
	if len(silent) == 0 {
		return
	}
	fmt.Fprintf(b, "mockcarrier: %s never struck:\n", count(len(silent), "injected fault", "injected faults"))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  fault\tfor\trequests that matched\tstruck")
	for _, r := range silent {
		fmt.Fprintf(t, "  %s\t%s\t%d\t%d\n", r.Fault, r.Fault.scope(), r.Seen, r.Fired)
	}
	_ = t.Flush()
	fmt.Fprintf(b, "  requests that came: %s\n", c.summary())
}

func (c *Carrier) reportUnmatched(b *strings.Builder) {
	var lost []Request
	for _, r := range c.Requests() {
		if r.Operation == "" {
			lost = append(lost, r)
		}
	}
	if len(lost) == 0 {
		return
	}
	fmt.Fprintf(b, "mockcarrier: %s no operation:\n", count(len(lost), "request matched", "requests matched"))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  #\tmethod\tpath\tanswered\tnearest operation")
	for _, r := range lost {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%d\t%s\n", r.Seq, r.Method, r.Path, r.Status, c.router.nearest(r.Method, r.Path))
	}
	_ = t.Flush()
}

// summary counts the requests by operation: "createShipment 3, getTracking 1".
func (c *Carrier) summary() string {
	counts := map[string]int{}
	for _, r := range c.Requests() {
		name := r.Operation
		if name == "" {
			name = "(no operation)"
		}
		counts[name]++
	}
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range sortedNames(counts) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
