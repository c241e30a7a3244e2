package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Score is what came of one case.
type Score struct {
	Case
	Verdict Verdict `json:"verdict"`
	// Findings are what was seen, and what the rule wants instead; none if it
	// holds.
	Findings []string `json:"findings,omitempty"`
	// Took is how long the case took.
	Took time.Duration `json:"-"`
}

// Scorecard has the scores of one client.
type Scorecard struct {
	// Name is that of the client, for [WriteTable].
	Name   string
	Scores []Score
}

// Passed says whether all rules hold.
func (c *Scorecard) Passed() bool {
	t := c.total("")
	return t.Holds == t.Cases
}

// Total counts verdicts.
type Total struct {
	Group   string `json:"group,omitempty"`
	Cases   int    `json:"cases"`
	Holds   int    `json:"holds"`
	Fails   int    `json:"fails"`
	NotTold int    `json:"notTold"`
}

// Groups returns the totals of each group, in the order of the scorecard.
func (c *Scorecard) Groups() []Total {
	var totals []Total
	seen := map[string]bool{}
	for _, s := range c.Scores {
		if group := s.Group(); !seen[group] {
			seen[group] = true
			totals = append(totals, c.total(group))
		}
	}
	return totals
}

// total is that of a group, or of all with "".
func (c *Scorecard) total(group string) Total {
	t := Total{Group: group}
	for _, s := range c.Scores {
		if group != "" && s.Group() != group {
			continue
		}
		t.Cases++
		switch s.Verdict {
		case Holds:
			t.Holds++
		case Fails:
			t.Fails++
		case NotTold:
			t.NotTold++
		}
	}
	return t
}

var marks = map[Verdict]string{Holds: "ok  ", Fails: "FAIL", NotTold: " ?  "}

// String is the scorecard as text: a table for each group with a line for each
// case, "?" being what the client does not tell, and the totals.
func (c *Scorecard) String() string {
	var b strings.Builder
	for _, group := range c.Groups() {
		fmt.Fprintf(&b, "%s\n", group.Group)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, s := range c.Scores {
			if s.Group() == group.Group {
				fmt.Fprintf(t, "  %s %s\t%s\n", marks[s.Verdict], strings.TrimPrefix(s.ID, group.Group+"/"), s.Title)
			}
		}
		_ = t.Flush()
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ngroup\tcases\tholds\tfails\tnot told\t")
	all := c.total("")
	all.Group = "all"
	for _, g := range append(c.Groups(), all) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", g.Group, g.Cases, g.Holds, g.Fails, g.NotTold)
	}
	_ = t.Flush()
	return b.String()
}

// MarshalJSON writes name, totals and scores.
func (c *Scorecard) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string  `json:"name,omitempty"`
		Total  Total   `json:"total"`
		Groups []Total `json:"groups"`
		Scores []Score `json:"scores"`
	}{c.Name, c.total(""), c.Groups(), c.Scores})
}

// WriteTable writes the totals of several clients side by side: how many rules
// of each group hold, of how many.
func WriteTable(w io.Writer, cards ...*Scorecard) error {
	if len(cards) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "group")
	for _, c := range cards {
		fmt.Fprintf(t, "\t%s", c.Name)
	}
	fmt.Fprintln(t)
	groups := cards[0].Groups()
	for _, g := range append(groups, Total{}) { // the last is that of all
		fmt.Fprint(t, cmp.Or(g.Group, "all"))
		for _, c := range cards {
			of := c.total(g.Group)
			fmt.Fprintf(t, "\t%d/%d", of.Holds, of.Cases)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
