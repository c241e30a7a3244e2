package conformance

import (
	"fmt"
	"sync"
)

// Verdict says whether a rule holds.
type Verdict string

const (
	Holds   Verdict = "holds"
	Fails   Verdict = "fails"
	NotTold Verdict = "not told" // all that was seen is right, and the client does not tell the rest
)

// findings are what speaks against a client in one case.
type findings struct {
	mu     sync.Mutex
	wrong  []string
	untold []string
}

// want notes a finding unless the condition holds. It returns the condition.
func (f *findings) want(holds bool, format string, args ...any) bool {
	if !holds {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
	return holds
}

// told notes that the client does not tell something, or tells it wrong.
func told[T comparable](f *findings, what string, got, want T) {
	var zero T
	if got == zero && want != zero {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.untold = append(f.untold, fmt.Sprintf("does not tell the %s, which is %v", what, want))
		return
	}
	f.want(got == want, "tells the %s %v, and it is %v", what, got, want)
}

func (f *findings) verdict() (Verdict, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.wrong) > 0:
		return Fails, f.wrong
	case len(f.untold) > 0:
		return NotTold, f.untold
	}
	return Holds, nil
}
