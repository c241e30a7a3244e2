package resilience

import (
	"context"
	"crypto/sha256"
	"sync"
)

// flights holds the calls that are under way with a key of the caller's. The
// same key twice at the same time is one call on the wire, and one result for
// all; the carrier would answer the second with "in progress".
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight
}

// flight is one key in flight. The call that leads goes out; the others wait
// under their own contexts. If the leader's caller leaves, the next one leads,
// with the same key and the same bytes.
type flight struct {
	print   [sha256.Size]byte
	waiting int
	lead    chan struct{} // cap 1: the lead is free
	done    chan struct{} // closed when there is a result
	call    *call         // the one that has the result
}

// fingerprint tells whether two calls would send the same.
func fingerprint(c *call, body []byte) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range []string{c.op.ID, c.method, c.url.String()} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}

// join waits for the result of the flight of c's key, or leads it. led is
// false where another call's result was taken over.
func (f *flights) join(c *call, body []byte) (result *call, led bool, err error) {
	print := fingerprint(c, body)

	f.mu.Lock()
	if f.byKey == nil {
		f.byKey = map[string]*flight{}
	}
	fl := f.byKey[c.key]
	if fl == nil {
		fl = &flight{print: print, lead: make(chan struct{}, 1), done: make(chan struct{})}
		f.byKey[c.key] = fl
		f.mu.Unlock()
		f.fly(fl, c)
		return c, true, nil
	}
	if fl.print != print {
		f.mu.Unlock()
		return nil, false, &keyInFlightError{}
	}
	fl.waiting++
	f.mu.Unlock()

	select {
	case <-fl.done:
		return fl.call, false, nil
	case <-fl.lead:
		f.mu.Lock()
		fl.waiting--
		f.mu.Unlock()
		f.fly(fl, c)
		return c, true, nil
	case <-c.Done():
		f.mu.Lock()
		fl.waiting--
		if fl.waiting == 0 && len(fl.lead) > 0 {
			delete(f.byKey, c.key) // the lead was free, and nobody is left to take it
		}
		f.mu.Unlock()
		return nil, false, contextError(c.Context)
	}
}

// fly makes the call, and then hands over its result, or the lead.
func (f *flights) fly(fl *flight, c *call) {
	finished := false
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if fl.waiting > 0 && (!finished || c.abandoned()) {
			fl.lead <- struct{}{} // cap 1, and only a leader sends
			return
		}
		if finished {
			fl.call = c
			close(fl.done)
		}
		delete(f.byKey, c.key)
	}()
	c.run()
	finished = true
}

// abandoned holds if the call ended because its own caller left.
func (c *call) abandoned() bool {
	return c.Context.Err() != nil && (c.judged == nil || c.judged.class != classSuccess)
}

// keyInFlightError: other bytes under a key that is in flight.
type keyInFlightError struct{}

func (*keyInFlightError) Error() string {
	return "this idempotency key is in flight with another request"
}
func (*keyInFlightError) Is(target error) bool { return target == ErrKeyReused }

var _ context.Context = (*call)(nil)
