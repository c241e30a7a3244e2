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
// evenly spaced, so that a carrier that has just come back is not knocked over;
// it keeps its place until it leaves, for the case that the breaker opens again.
// No goroutine of its own does any of this, and no lock is held while waiting.
func (b *Breaker) enter(ctx context.Context, until time.Time, limit time.Duration) (admission, error) {
	b.mu.Lock()
	now := time.Now()
	if !b.policy.WaitWhenOpen || b.state == BreakerClosed {
		a, err := b.tryLocked(now, limit)
		return b.hand(a), err
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	b.queue = append(b.queue, w)
	for {
		turn := b.turn(w, now)
		if !turn.IsZero() && !turn.After(now) {
			if a, err := b.tryLocked(now, limit); err == nil {
				a.freed = !a.probe
				b.leave(w)
				return b.hand(a), nil
			}
			turn = time.Time{} // every place is taken, and each end of a probe wakes us
		}
		if soonest := b.soonest(w); !until.IsZero() && soonest.After(until) {
			b.leave(w)
			b.mu.Unlock()
			return admission{}, &openError{b.name, soonest.Sub(now)}
		}
		b.mu.Unlock()

		err := w.wait(ctx, turn, until, now)
		b.mu.Lock()
		now = time.Now()
		if err != nil {
			left := b.refusal(now)
			b.leave(w)
			b.mu.Unlock()
			if ctx.Err() == nil {
				err = left
			}
			return admission{}, err
		}
	}
}

// turn says when w may try: at its slot once the breaker has closed, and at the
// end of the open time if it is the first in line. One probe goes out at a time.
// Zero means: only when woken. It is called with mu held.
func (b *Breaker) turn(w *waiter, now time.Time) time.Time {
	switch {
	case b.state == BreakerClosed:
		return w.slot
	case b.queue[0] != w || b.probes > 0:
		return time.Time{}
	case b.state == BreakerOpen:
		return b.openUntil
	default:
		return now
	}
}

// soonest is when w can be through at the earliest, as far as that can be told.
// It is called with mu held.
func (b *Breaker) soonest(w *waiter) time.Time {
	switch b.state {
	case BreakerClosed:
		return w.slot
	case BreakerOpen:
		return b.openUntil
	default:
		return time.Time{}
	}
}

// wait ends with nil when it is time to look again, with ctx's error, or with
// context.DeadlineExceeded when until has passed.
func (w *waiter) wait(ctx context.Context, turn, until, now time.Time) error {
	var alarm, limit <-chan time.Time
	if !turn.IsZero() {
		t := time.NewTimer(turn.Sub(now))
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
		return ctx.Err()
	case <-alarm:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-limit:
		return context.DeadlineExceeded
	}
}

// release gives every waiting call its slot. It is called with mu held.
func (b *Breaker) release() {
	n := time.Duration(len(b.queue))
	if n == 0 {
		return
	}
	step := max(minReleaseSpread, releaseSpreadEach*n) / n
	slot := time.Now()
	for _, w := range b.queue {
		slot = slot.Add(step)
		w.slot = slot
	}
	b.wakeAll()
}

// wakeFirst makes the first in line look again. It is called with mu held.
func (b *Breaker) wakeFirst() {
	if len(b.queue) > 0 {
		b.queue[0].signal()
	}
}

// wakeAll makes all of them look again. It is called with mu held.
func (b *Breaker) wakeAll() {
	for _, w := range b.queue {
		w.signal()
	}
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// leave takes w out of the line, and wakes who is now the first. It is called
// with mu held.
func (b *Breaker) leave(w *waiter) {
	if i := slices.Index(b.queue, w); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	b.wakeFirst()
}
