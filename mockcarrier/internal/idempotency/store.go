// Package idempotency remembers which answer a key has got, as the IETF draft
// on the Idempotency-Key header has it: the first request with a key is
// processed, its repetitions get the same answer, and another request under the
// same key is refused.
package idempotency

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

// Answer is what a request got. It is not changed once it is stored.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Fingerprint tells requests apart that come with the same key.
type Fingerprint [sha256.Size]byte

// FingerprintOf covers the method, the path and each byte of the body.
func FingerprintOf(method, path string, body []byte) Fingerprint {
	h := sha256.New()
	for _, part := range []string{method, path} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(body)
	return Fingerprint(h.Sum(nil))
}

// Verdict says what to do with a request.
type Verdict int

const (
	Proceed    Verdict = iota // process it, and Finish or Release its Slot
	Replay                    // give it the stored answer
	InProgress                // the first request with the key is still being processed
	Reused                    // the key came with another request
)

// Config is what a Store needs to know.
type Config struct {
	TTL               time.Duration    // how long an answer is kept, from when its request came
	Now               func() time.Time // the clock that TTL is measured on
	StoreServerErrors bool             // keep a 5xx as the answer, rather than forget the request
}

// Store keeps the answers of all accounts. It may be used by several
// goroutines; the zero value is not usable.
type Store struct {
	config Config

	mu      sync.Mutex
	entries map[entryID]*entry
	sweepAt int // the number of entries at which those that have expired are removed
}

type entryID struct{ account, key string }

type entry struct {
	fingerprint Fingerprint
	began       time.Time
	answer      *Answer // nil while it is processed
}

const firstSweep = 1024

// New returns an empty store.
func New(c Config) *Store {
	return &Store{config: c, entries: make(map[entryID]*entry), sweepAt: firstSweep}
}

// Begin decides on a request. The Answer goes with Replay and the Slot with
// Proceed; otherwise they are nil.
func (s *Store) Begin(account, key string, f Fingerprint) (Verdict, *Answer, *Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	id := entryID{account, key}
	if e, ok := s.entries[id]; ok && !s.expired(e, now) {
		switch {
		case e.fingerprint != f:
			return Reused, nil, nil
		case e.answer == nil:
			return InProgress, nil, nil
		default:
			return Replay, e.answer, nil
		}
	}
	s.sweep(now)
	e := &entry{fingerprint: f, began: now}
	s.entries[id] = e
	return Proceed, nil, &Slot{store: s, id: id, entry: e}
}

// Reset forgets everything. Slots that were handed out before change nothing.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.sweepAt = make(map[entryID]*entry), firstSweep
}

func (s *Store) expired(e *entry, now time.Time) bool {
	return e.answer != nil && now.Sub(e.began) > s.config.TTL
}

func (s *Store) sweep(now time.Time) {
	if len(s.entries) < s.sweepAt {
		return
	}
	for id, e := range s.entries {
		if s.expired(e, now) {
			delete(s.entries, id)
		}
	}
	s.sweepAt = max(firstSweep, 2*len(s.entries))
}

// Slot is the place of a request that is being processed.
type Slot struct {
	store *Store
	id    entryID
	entry *entry
}

// Finish stores the answer, or forgets the request where the answer says that
// it was not processed: the next one with the key is then the first again.
func (s *Slot) Finish(a Answer) {
	if !s.store.keeps(a.Status) {
		s.Release()
		return
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.entry.answer = &a
}

// Release forgets the request. It does nothing after Finish.
func (s *Slot) Release() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.entry.answer == nil && s.store.entries[s.id] == s.entry {
		delete(s.store.entries, s.id)
	}
}

// keeps says which answers belong to the request for good: what was done, and
// what was refused because of the state of things. What was refused because the
// request was wrong, not allowed or too much can be sent again, corrected.
func (s *Store) keeps(status int) bool {
	switch {
	case status >= 500:
		return s.config.StoreServerErrors
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity,
		status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusRequestEntityTooLarge, status == http.StatusUnsupportedMediaType,
		status == http.StatusTooManyRequests:
		return false
	}
	return true
}
