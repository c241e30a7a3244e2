package resilience

import (
	"context"
	"slices"
	"time"
)

// enter asks for a place, and waits for one where the policy says so. It ends
// with an admission, with an *openError (refused, or until passed first), or
// with ctx's error. limit is the time limit of the attempt to come.
//
// Waiting calls stand in a queue. The first of them watches the clock for the
// end of the open time and becomes the probe; every end of a probe wakes the
// next in line. When a probe closes the breaker, each waiting call gets a slot,
// evenly spaced, so that a carrier that has just come back is not knocked over.
// No goroutine of its own does any of this, and no lock is held while waiting.
func (b *Breaker) enter(ctx context.Context, until time.Time, limit time.Duration) (admission, error) {
	if !b.policy.WaitWhenOpen {
		return b.admit(time.Now(), limit)
	}

	b.mu.Lock()
	now := time.Now()
	if b.state == BreakerClosed {
		a, err := b.tryLocked(now, limit)
		b.deliver()
		return a, err
	}
	b.arrivals++
	w := &waiter{number: b.arrivals, wake: make(chan struct{}, 1)}
	b.join(w)
	for {
		next := b.nextLook(w, now)
		if next.at(now) {
			if a, err := b.tryLocked(now, limit); err == nil {
				a.freed = !a.probe && !w.slot.IsZero()
				b.leave(w)
				b.deliver()
				return a, nil
			}
			next = look{} // every place is taken, and each end of a probe wakes us
		}
		if next.after(until) {
			wait := next.when.Sub(now)
			b.leave(w)
			b.wakeFirst()
			b.deliver()
			return admission{}, &openError{b.name, wait}
		}
		b.deliver()

		if err := w.wait(ctx, next, until, now); err != nil {
			b.mu.Lock()
			b.leave(w)
			b.wakeFirst()
			left := max(b.openUntil.Sub(time.Now()), b.probeLeft(time.Now()))
			b.deliver()
			if ctx.Err() == nil {
				return admission{}, &openError{b.name, left}
			}
			return admission{}, err
		}
		b.mu.Lock()
		now = time.Now()
	}
}

// look is when a waiting call has something to do by itself; zero: only when woken.
type look struct{ when time.Time }

func (l look) at(now time.Time) bool { return !l.when.IsZero() && !l.when.After(now) }

func (l look) after(until time.Time) bool {
	return !l.when.IsZero() && !until.IsZero() && l.when.After(until)
}

// nextLook says when w may try: at its slot once the breaker has closed, and
// at the end of the open time if it is the first in line. One probe goes out
// at a time. It is called with mu held.
func (b *Breaker) nextLook(w *waiter, now time.Time) look {
	switch {
	case b.state == BreakerClosed && w.slot.IsZero():
		return look{now}
	case b.state == BreakerClosed:
		return look{w.slot}
	case !w.slot.IsZero():
		// Released, and open again before the slot came: back to its place in line.
		w.slot = time.Time{}
		b.join(w)
		return b.nextLook(w, now)
	case len(b.queue) > 0 && b.queue[0] != w, b.probes > 0:
		return look{}
	case b.state == BreakerOpen:
		return look{b.openUntil}
	default:
		return look{now}
	}
}

// wait ends with nil when it is time to look again, with ctx's error, or with
// context.DeadlineExceeded when until has passed.
func (w *waiter) wait(ctx context.Context, next look, until, now time.Time) error {
	var alarm, limit <-chan time.Time
	if !next.when.IsZero() {
		t := time.NewTimer(next.when.Sub(now))
		defer t.Stop()
		alarm = t.C
	}
	if !until.IsZero() {
		t := time.NewTimer(until.Sub(now))
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-w.wake:
		return nil
	case <-alarm:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit:
		return context.DeadlineExceeded
	}
}

// release gives every waiting call its slot. It is called with mu held.
func (b *Breaker) release() {
	if len(b.queue) == 0 {
		return
	}
	spread := max(minReleaseSpread, releaseSpreadEach*time.Duration(len(b.queue)))
	step := spread / time.Duration(len(b.queue))
	now := time.Now()
	for i, w := range b.queue {
		w.slot = now.Add(step * time.Duration(i+1))
		w.signal()
	}
	b.queue = nil
}

// wakeFirst makes the first in line look again. It is called with mu held.
func (b *Breaker) wakeFirst() {
	if len(b.queue) > 0 {
		b.queue[0].signal()
	}
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// join puts w in line, behind those that came before it. It is called with mu held.
func (b *Breaker) join(w *waiter) {
	i := len(b.queue)
	for i > 0 && b.queue[i-1].number > w.number {
		i--
	}
	b.queue = slices.Insert(b.queue, i, w)
}

// leave takes w out of the line. It is called with mu held.
func (b *Breaker) leave(w *waiter) {
	if i := slices.Index(b.queue, w); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}
