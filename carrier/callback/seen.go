package callback

import (
	"context"
	"crypto/sha256"
	"sync"
)

// Claim is what [Seen] says of a notification that has come.
type Claim int

const (
	// ClaimNew: the caller is the one to handle it, and then to call Done or
	// Release.
	ClaimNew Claim = iota
	// ClaimBusy: somebody is handling it at the moment.
	ClaimBusy
	// ClaimHandled: it was handled.
	ClaimHandled
)

// Seen remembers which notifications were handled, by their ids. The default
// is a [Memory], which is enough for a service of one process.
//
// Several replicas need one that they share, such as a table or a key in Redis
// that is set if it is not there. In such a store a claim needs an end: one that
// is neither done nor released after a minute or so belongs to a process that
// has died, and is to be new again. It should remember ids for as long as the
// carrier tries again, which is 3 days at this one.
//
// A notification is handled twice if the process dies between the end of the
// function and Done. Whoever cannot bear that writes the id in the transaction
// of the function, and lets the function return nil for one that is there.
type Seen interface {
	// Claim takes an id for the caller, in one step: of two that come at the
	// same time, one gets ClaimNew.
	Claim(ctx context.Context, id string) (Claim, error)
	// Done says that it was handled.
	Done(ctx context.Context, id string) error
	// Release gives it back: it was not handled, and is new the next time.
	Release(ctx context.Context, id string) error
}

// DefaultMemory is how many ids a [Memory] keeps by default.
const DefaultMemory = 10_000

// Memory keeps ids in memory: those in work, and the last that were handled.
// What is older, or was before a restart, is new again. Use [NewMemory] to make
// one; it may be used by several goroutines.
type Memory struct {
	mu      sync.Mutex
	claims  map[digest]Claim
	handled []digest // a ring of those that were, the oldest at next once it is full
	next    int
	limit   int
}

// digest stands for an id, which may be of any length.
type digest [sha256.Size]byte

func digestOf(id string) digest { return sha256.Sum256([]byte(id)) }

// NewMemory returns a Memory of that many ids; below 1, [DefaultMemory].
func NewMemory(limit int) *Memory {
	if limit < 1 {
		limit = DefaultMemory
	}
	return &Memory{claims: make(map[digest]Claim), limit: limit}
}

// Claim takes an id for the caller. It never fails.
func (m *Memory) Claim(_ context.Context, id string) (Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := digestOf(id)
	if claim, ok := m.claims[known]; ok {
		return claim, nil
	}
	m.claims[known] = ClaimBusy
	return ClaimNew, nil
}

// Done remembers an id, in place of the oldest if there are too many. It never
// fails.
func (m *Memory) Done(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := digestOf(id)
	if m.claims[known] == ClaimHandled {
		return nil
	}
	m.claims[known] = ClaimHandled
	if len(m.handled) < m.limit {
		m.handled = append(m.handled, known)
		return nil
	}
	delete(m.claims, m.handled[m.next])
	m.handled[m.next] = known
	m.next = (m.next + 1) % m.limit
	return nil
}

// Release forgets an id that is in work. It never fails.
func (m *Memory) Release(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := digestOf(id); m.claims[known] == ClaimBusy {
		delete(m.claims, known)
	}
	return nil
}
