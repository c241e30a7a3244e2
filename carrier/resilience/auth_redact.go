package resilience

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// recentTokens is how many tokens the redactor knows: also one that another
// goroutine's answer echoes when its successor is in use.
const recentTokens = 16

// liveSecrets are the secrets that come and go, beside those that stay.
type liveSecrets struct {
	fixed    []string
	replacer atomic.Pointer[strings.Replacer]

	mu     sync.Mutex
	recent []string
}

func newLiveSecrets(fixed []string) *liveSecrets { return &liveSecrets{fixed: fixed} }

// add makes a secret known, and forgets the oldest that came so.
func (l *liveSecrets) add(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.recent, secret) {
		return
	}
	l.recent = append(l.recent, secret)
	if len(l.recent) > recentTokens {
		l.recent = slices.Clone(l.recent[1:])
	}
	l.replacer.Store(newReplacer(slices.Concat(l.fixed, l.recent)))
}

func (l *liveSecrets) known() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.fixed, l.recent)
}
