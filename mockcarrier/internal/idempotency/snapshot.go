package idempotency

import (
	"cmp"
	"slices"
	"time"
)

// Entry is a key whose request has been answered.
type Entry struct {
	Account, Key string
	Fingerprint  Fingerprint
	Began        time.Time
	Answer       Answer
}

// Entries returns the keys that have been answered and have not expired, in
// order. A request that is being processed has none.
func (s *Store) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	list := make([]Entry, 0, len(s.entries))
	for id, e := range s.entries {
		if e.answer != nil && !s.expired(e, now) {
			list = append(list, Entry{id.account, id.key, e.fingerprint, e.began, *e.answer})
		}
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// Knows says whether the key has been answered, or is being processed.
func (s *Store) Knows(account, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[entryID{account, key}]
	return ok && !s.expired(e, s.config.Now())
}

// Restore replaces all that the store knows. Slots that were handed out before
// change nothing.
func (s *Store) Restore(list []Entry) {
	entries := make(map[entryID]*entry, len(list))
	for _, e := range list {
		answer := e.Answer
		entries[entryID{e.Account, e.Key}] = &entry{fingerprint: e.Fingerprint, began: e.Began, answer: &answer}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.sweepAt = entries, max(firstSweep, 2*len(entries))
}
