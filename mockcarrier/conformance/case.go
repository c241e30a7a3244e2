package conformance

import (
	"slices"
	"strings"
	"sync"
)

// Case is one rule, and how it is put to the test.
type Case struct {
	// ID is "group/name", and "group/name/call" where the same is done to
	// several calls: "faults/reset-after/ship".
	ID string `json:"id"`
	// Title is the rule in a few words.
	Title string `json:"title"`
	// Source is where it comes from: a section of an RFC, a paper.
	Source string `json:"source"`

	setup setup
	run   func(*stage)
}

// Group is the first part of the ID.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// Cases returns all cases, in the order of the scorecard.
func Cases() []Case { return slices.Clone(allCases()) }

// allCases are the groups in the order of the scorecard. Those of a group that
// are data come first; see the folder cases.
var allCases = sync.OnceValue(func() []Case {
	return slices.Concat(
		scripted("faults"),
		scripted("outcome"),
		scripted("retries"), retryCases,
		scripted("retry-after"), retryAfterCases,
		scripted("deadlines"), deadlineCases,
		idempotencyCases,
		outageCases,
		scripted("bodies"), bodyCases,
		errorCases,
		securityCases,
		connectionCases,
	)
})

// selected returns those whose ID is one of these, or begins with one and a
// slash. All, if there are none.
func selected(only []string) []Case {
	if len(only) == 0 {
		return allCases()
	}
	var some []Case
	for _, c := range allCases() {
		for _, prefix := range only {
			if c.ID == prefix || strings.HasPrefix(c.ID, strings.TrimSuffix(prefix, "/")+"/") {
				some = append(some, c)
				break
			}
		}
	}
	return some
}
