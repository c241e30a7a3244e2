package resilience

import (
	"bytes"
	"context"
	"sync"
	"time"
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
// with the same key and the same bytes. Most flights have nobody waiting, so it
// lives in the first leader's call, and its channels are made for the first that waits.
type flight struct {
	first   *call // the first leader, with whose request the others are compared
	body    []byte
	waiting int
	lead    chan struct{} // cap 1: the lead is free
	done    chan struct{} // closed when there is a result
	result  *call
}

// same reports whether c would send what is in flight.
func (fl *flight) same(c *call, body []byte) bool {
	return fl.first.op.ID == c.op.ID && fl.first.method == c.method &&
		fl.first.url.String() == c.url.String() && bytes.Equal(fl.body, body)
}

// join waits for the result of the flight of c's key, or leads it. led is
// false where another call has the result.
func (f *flights) join(c *call, body []byte) (result *call, led bool, err error) {
	f.mu.Lock()
	fl := f.byKey[c.key]
	if fl == nil {
		if f.byKey == nil {
			f.byKey = map[string]*flight{}
		}
		fl = &c.flight
		fl.first, fl.body = c, body
		f.byKey[c.key] = fl
		f.mu.Unlock()
		f.fly(fl, c)
		return c, true, nil
	}
	if !fl.same(c, body) {
		f.mu.Unlock()
		return nil, false, &keyInFlightError{}
	}
	if fl.done == nil {
		fl.lead, fl.done = make(chan struct{}, 1), make(chan struct{})
	}
	fl.waiting++
	f.mu.Unlock()

	var limit <-chan time.Time
	if c.settings.timeout > 0 {
		t := time.NewTimer(time.Until(c.started.Add(c.settings.timeout)))
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-fl.done:
		return fl.result, false, nil
	case <-fl.lead:
		f.mu.Lock()
		fl.waiting--
		f.mu.Unlock()
		f.fly(fl, c)
		return c, true, nil
	case <-c.Done():
		err = contextError(c.Context)
	case <-limit:
		err = &c.totalLimit
	}
	f.mu.Lock()
	fl.waiting--
	if fl.waiting == 0 && len(fl.lead) > 0 {
		delete(f.byKey, c.key) // the lead was free, and nobody is left to take it
	}
	f.mu.Unlock()
	return nil, false, err
}

// fly makes the call, and then hands over its result, or the lead.
func (f *flights) fly(fl *flight, c *call) {
	finished := false
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if fl.waiting > 0 && (!finished || c.abandoned()) {
			fl.body = bytes.Clone(fl.body) // these bytes are their caller's again
			fl.lead <- struct{}{}          // cap 1, and only a leader sends
			return
		}
		if fl.done != nil {
			fl.result = c
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
