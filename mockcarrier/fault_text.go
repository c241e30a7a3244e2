package mockcarrier

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String describes what the fault does, in a few words: "status 503, Retry-After: 1".
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	add := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, format, args...)
		}
	}
	add(f.Status != 0, " %d", f.Status)
	add(f.Code != "", " %s", f.Code)
	add(f.Count > 1, " ×%d", f.Count)
	add(f.Bytes != 0, " %d bytes", f.Bytes)
	add(f.Wait != 0, " %v", f.Wait)
	add(f.Sigma != 0, " ±σ%g", f.Sigma)
	add(f.MaxWait != 0, " to %v", f.MaxWait)
	add(f.Framing != "", " by %s", f.Framing)
	add(f.Kind == KindContentType, " %q", f.Body)
	add(f.Phase != "", " %s processing", f.Phase)
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		fmt.Fprintf(&b, ", %s: %s", name, strings.Join(f.Header[name], ", "))
	}
	if f.RetryDate != nil {
		add(true, ", Retry-After: a date in %v", *f.RetryDate)
	}
	for i, step := range f.Steps {
		add(i == 0, " of ")
		add(i > 0, "; ")
		b.WriteString(step.String())
		add(step.First > 1, " ×%d", step.First)
	}
	add(f.Loop, ", again and again")
	return b.String()
}

// scope describes which requests the fault is for: "createShipment, first 2".
func (f Fault) scope() string {
	var parts []string
	for _, list := range []struct {
		what   string
		values []string
	}{{"", f.Operations}, {"key ", f.Keys}, {"reference ", f.References}, {"parcel ", f.TrackingNumbers}} {
		if len(list.values) > 0 {
			parts = append(parts, list.what+strings.Join(list.values, "|"))
		}
	}
	if criteria, err := compileAll(f.Match); err == nil {
		for _, c := range criteria {
			parts = append(parts, c.String())
		}
	}
	switch {
	case f.strikes() == connections:
		parts = append(parts, "all connections")
	case len(parts) == 0 && f.strikes() == deliveries:
		parts = append(parts, "all deliveries")
	case len(parts) == 0:
		parts = append(parts, "all requests")
	}
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(f.After > 0, "after %d", f.After)
	add(f.First > 0, "first %d", f.First)
	add(f.Every > 0, "every %d", f.Every)
	add(f.AllBut > 0, "all but every %d", f.AllBut)
	if f.Probability != nil {
		add(true, "probability %g", *f.Probability)
		add(f.Seed != 0, "seed %d", f.Seed)
	}
	add(f.Lasts > 0, "for %v", f.Lasts)
	add(!f.Ends.IsZero(), "until %s", f.Ends.Format(time.RFC3339))
	return strings.Join(parts, ", ")
}
