package resilience

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	breakerSteps       = 10
	defaultMaxOpen     = time.Minute            // cap of a Retry-After that keeps a breaker open
	minReleaseSpread   = 500 * time.Millisecond // waiting calls leave over at least this
	releaseSpreadEach  = 5 * time.Millisecond   // and this for each of them
	openJitter         = 0.2
	probeRetryFallback = time.Second // told to those refused beside a probe that has no time limit
	shortestOpen       = 2           // nanoseconds: gobreaker's own open time must be over first
)

// verdict is what a breaker is told of an attempt.
type verdict int8

const (
	verdictExcluded verdict = iota // counts for nothing: the zero value, so that a lost attempt cannot wedge it
	verdictSuccess
	verdictFailure
)

var (
	errExcluded = errors.New("excluded")
	errFailure  = errors.New("failure")
)

// Breaker is a circuit breaker. gobreaker counts and hands out the half-open
// places, with the shortest open time that it has; a gate in front of it owns
// how long it stays open, what a refusal says, and who waits.
//
// A [Doer] makes one for each group of operations. One that is made by
// [NewBreaker] can be shared between clients ([WithSharedBreaker]), or used
// alone ([Breaker.Execute]) for things that are no HTTP at all.
type Breaker struct {
	name   string
	policy BreakerPolicy
	maxRA  time.Duration

	// mu is held for moments only: never over a callback, a wait or a call. It
	// guards gobreaker as well, so that a change of state and what the gate
	// knows of it are one.
	mu         sync.Mutex
	cb         *gobreaker.TwoStepCircuitBreaker[struct{}]
	state      BreakerState
	openUntil  time.Time
	probes     int           // probes on their way
	probeLimit time.Duration // the newest one's time limit; 0 if it has none
	epoch      int           // counts the changes of state: a result of an older one is late
	streak     int           // failures in a row while closed
	lastRA     time.Duration // Retry-After of the last failure
	queue      []*waiter     // waiting calls, first come first
	changes    []change      // not yet delivered to OnStateChange
	notifying  bool
}

type change struct{ from, to BreakerState }

// waiter is a call that waits at the gate.
type waiter struct {
	wake chan struct{} // cap 1: look again
	slot time.Time     // when to leave, while the breaker is closed
}

// NewBreaker returns a closed breaker of its own. name is the group that
// errors and OnStateChange show.
func NewBreaker(name string, p BreakerPolicy) (*Breaker, error) {
	return newBreaker(name, p, defaultMaxOpen)
}

func newBreaker(name string, p BreakerPolicy, maxRetryAfter time.Duration) (*Breaker, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	p.ConsecutiveFailures = orDefault(p.ConsecutiveFailures, 5, 0)
	p.FailureRatio = orDefault(p.FailureRatio, 0.5, 0)
	p.MinimumCalls = orDefault(p.MinimumCalls, 10, 1)
	p.Window = orDefault(p.Window, 10*time.Second, 0)
	p.OpenFor = orDefault(p.OpenFor, 5*time.Second, 0)
	p.HalfOpenCalls = orDefault(p.HalfOpenCalls, 1, -1)
	if p.FailureStatuses == nil {
		p.FailureStatuses = defaultFailureStatuses
	}
	p.FailureStatuses = slices.Clone(p.FailureStatuses)

	b := &Breaker{name: name, policy: p, maxRA: maxRetryAfter}
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         name,
		MaxRequests:  uint32(max(p.HalfOpenCalls, 1)),
		Interval:     p.Window,
		BucketPeriod: (p.Window + breakerSteps - 1) / breakerSteps,
		Timeout:      1, // a nanosecond: the gate owns the open time
		ReadyToTrip:  b.trips,
		IsExcluded:   func(err error) bool { return err == errExcluded },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.moved(stateOf(from), stateOf(to))
		},
	})
	return b, nil
}

func stateOf(s gobreaker.State) BreakerState {
	switch s {
	case gobreaker.StateHalfOpen:
		return BreakerHalfOpen
	case gobreaker.StateOpen:
		return BreakerOpen
	default:
		return BreakerClosed
	}
}

// trips is gobreaker's ReadyToTrip. Requests in flight and excluded ones are
// in Counts.Requests, so judged calls are counted by their results. Its
// consecutive failures age out of the window, and then a carrier that hangs for
// longer than the window would never open the breaker: the streak is ours.
func (b *Breaker) trips(n gobreaker.Counts) bool {
	if b.policy.ConsecutiveFailures > 0 && b.streak >= b.policy.ConsecutiveFailures {
		return true
	}
	judged := int(n.TotalSuccesses + n.TotalFailures)
	return b.policy.FailureRatio > 0 && judged >= b.policy.MinimumCalls &&
		float64(n.TotalFailures) >= b.policy.FailureRatio*float64(judged)
}

// moved is called by gobreaker, under its lock and ours.
func (b *Breaker) moved(from, to BreakerState) {
	b.state = to
	b.epoch++
	b.streak, b.probes = 0, 0
	switch to {
	case BreakerOpen:
		spread := 1 - openJitter + 2*openJitter*rand.Float64()
		open := time.Duration(float64(b.policy.OpenFor) * spread)
		b.openUntil = time.Now().Add(max(open, min(b.lastRA, b.maxRA), shortestOpen))
		b.wakeAll()
	case BreakerClosed:
		b.release()
	}
	if b.policy.OnStateChange != nil {
		b.changes = append(b.changes, change{from, to})
	}
}

// State returns where the breaker stands now. Unlike gobreaker's, a look
// changes nothing: one whose open time is over is still BreakerOpen until a
// probe goes out.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// openError is a refusal, and Is [ErrCircuitOpen].
type openError struct {
	group      string
	retryAfter time.Duration
}

func (e *openError) Error() string {
	if e.group == "" {
		return fmt.Sprintf("circuit breaker open, next probe in %s", round(e.retryAfter))
	}
	return fmt.Sprintf("circuit breaker %q open, next probe in %s", e.group, round(e.retryAfter))
}

func (e *openError) Is(target error) bool { return target == ErrCircuitOpen }

// round makes a duration fit for people.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d
	}
}

// admission is a place that the breaker gave to an attempt. Exactly one call
// of end has an effect.
type admission struct {
	b     *Breaker
	done  func(error)
	probe bool
	freed bool // a waiting call that a successful probe let out
	epoch int
}

// hand delivers what happened, and hands a over. A callback that does not
// return must not take the place with it.
func (b *Breaker) hand(a admission) admission {
	handed := false
	defer func() {
		if !handed {
			a.end(verdictExcluded, 0)
		}
	}()
	b.deliver()
	handed = true
	return a
}

// tryLocked asks for a place without waiting. limit is the attempt's time limit,
// which refusals beside a probe name as the time to wait; 0 means none. It is
// called with mu held.
func (b *Breaker) tryLocked(now time.Time, limit time.Duration) (admission, error) {
	if b.state == BreakerOpen && b.openUntil.After(now) {
		return admission{}, b.refusal(now)
	}
	done, err := b.cb.Allow()
	if err == nil && b.policy.HalfOpenCalls < 0 && b.state == BreakerHalfOpen {
		done(nil) // no probing: the open time is over, so it closes
		done, err = b.cb.Allow()
	}
	if err != nil {
		return admission{}, b.refusal(now)
	}
	probe := b.state == BreakerHalfOpen
	if probe {
		b.probes++
		b.probeLimit = limit
	}
	return admission{b: b, done: done, probe: probe, epoch: b.epoch}, nil
}

// refusal says when to come back: when the open time is over, or after the time
// limit of the probe that is out. It is called with mu held.
func (b *Breaker) refusal(now time.Time) *openError {
	switch {
	case b.state == BreakerOpen:
		return &openError{b.name, max(b.openUntil.Sub(now), time.Millisecond)}
	case b.state == BreakerHalfOpen && b.probeLimit > 0:
		return &openError{b.name, b.probeLimit}
	default:
		return &openError{b.name, probeRetryFallback}
	}
}

// end tells the breaker what became of the attempt, and wakes whoever is next.
func (a *admission) end(v verdict, retryAfter time.Duration) {
	if a.done == nil {
		return
	}
	done, b := a.done, a.b
	a.done = nil
	b.mu.Lock()
	if a.epoch == b.epoch { // a late result counts for nothing; gobreaker would even go half-open at it
		if a.probe {
			b.probes--
		}
		switch v {
		case verdictSuccess:
			b.streak = 0
			done(nil)
		case verdictFailure:
			b.streak++
			b.lastRA = retryAfter
			done(errFailure)
		default:
			done(errExcluded)
		}
	}
	b.wakeFirst()
	b.deliver()
}

// deliver unlocks mu, and calls OnStateChange for what happened under it. One
// goroutine at a time delivers, so that the order is kept.
func (b *Breaker) deliver() {
	if b.notifying {
		b.mu.Unlock()
		return
	}
	b.notifying = true
	for len(b.changes) > 0 {
		c := b.changes[0]
		b.changes = b.changes[1:]
		b.notify(c)
	}
	b.notifying = false
	b.mu.Unlock()
}

// notify calls OnStateChange without mu. It survives one that panics or leaves:
// the next change is delivered all the same.
func (b *Breaker) notify(c change) {
	b.mu.Unlock()
	returned := false
	defer func() {
		b.mu.Lock()
		if !returned {
			b.notifying = false
			b.mu.Unlock()
		}
	}()
	b.policy.OnStateChange(b.name, c.from, c.to)
	returned = true
}

// openFor returns how long the breaker will stay open; 0 if it is not.
func (b *Breaker) openFor(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != BreakerOpen {
		return 0
	}
	return max(b.openUntil.Sub(now), 0)
}

// standsIn reports whether the gate stands in for the retry budget.
func (b *Breaker) standsIn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state != BreakerClosed
}
