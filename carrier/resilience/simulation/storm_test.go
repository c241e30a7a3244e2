package simulation

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

var (
	seeds = flag.Int("seeds", 1, "how often each simulation is run, each time with another seed; medians are taken")
	first = flag.Uint64("first-seed", 1, "the first of the seeds")

	never = math.Inf(1)
)

// medianOf plays the scenario with each seed.
func medianOf(t *testing.T, s scenario, p policy) measures {
	t.Helper()
	var runs []measures
	for i := range *seeds {
		runs = append(runs, s.run(t, p, *first+uint64(i)).measure())
	}
	return medians(runs)
}

// fleet is how many small clients show what does not depend on their number.
func fleet() int {
	if testing.Short() {
		return 30
	}
	return 40
}

// within fails the test for a measure out of its range, ends included.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s is %.3g, not in [%.3g, %.3g]", what, got, low, high)
	}
}

// each runs f for each policy, side by side.
func each(t *testing.T, policies []policy, f func(*testing.T, policy)) {
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// Where no retry succeeds, a budget bounds what retries add, and a breaker
// saves on first attempts too. Jitter does neither.
func TestOutageIsAmplifiedByRetriesUnlessBounded(t *testing.T) {
	s := failFast.smaller(fleet(), 10*time.Second, 10*time.Second)
	for _, c := range []struct {
		policies  []policy
		low, high float64
	}{
		{[]policy{noRetry}, 1, 1},
		{[]policy{fixed, exponential, equal, full}, 3.5, 4},
		{[]policy{budgeted, ours}, 1, 1.4},
		{[]policy{broken, both, byDefault}, 0.3, 0.7},
		{[]policy{impatient, waiting}, 0.3, 0.8},
	} {
		each(t, c.policies, func(t *testing.T, p policy) {
			within(t, "attempts in the outage per call begun in it", medianOf(t, s, p).ampOut, c.low, c.high)
		})
	}
}

// What a client does by default, and what its budget does alone, however
// many attempts a call may make.
func TestOutageCostsUnderOneAndAHalfAttemptsPerCallByDefault(t *testing.T) {
	unbounded := byDefault.with("our budget alone, attempts without end",
		resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: -1}), resilience.WithoutBreaker())
	for _, s := range []scenario{failFast, queueing, fewLarge} {
		s = s.smaller(min(fleet(), s.clients), 10*time.Second, 5*time.Second)
		t.Run(s.name, func(t *testing.T) {
			each(t, []policy{byDefault, ours, unbounded}, func(t *testing.T, p policy) {
				within(t, "attempts in the outage per call begun in it", medianOf(t, s, p).ampOut, 0, 1.5)
			})
		})
	}
}

// A breaker's price: calls fail on for a while when the upstream is well again.
func TestBreakerRecoversAfterItsUpstream(t *testing.T) {
	s := failFast.smaller(fleet(), 10*time.Second, 30*time.Second)
	each(t, []policy{noRetry, full, budgeted, ours}, func(t *testing.T, p policy) {
		m := medianOf(t, s, p)
		within(t, "recovery", m.recovery, 0, 3)
		within(t, "success after the outage", m.succAfter, 0.97, 1)
	})
	each(t, []policy{broken, both, byDefault}, func(t *testing.T, p policy) {
		m := medianOf(t, s, p)
		within(t, "recovery", m.recovery, 1, 10)
		within(t, "success after the outage", m.succAfter, 0.85, 0.999)
	})
}

// A short outage of an upstream that works on calls which nobody waits for any
// more: unbounded retries keep it down for ever, whatever their jitter.
func TestRetriesSustainTheOutageUnlessBounded(t *testing.T) {
	s := blip.smaller(fleet(), 10*time.Second, 50*time.Second)
	each(t, []policy{fixed, exponential, equal, full}, func(t *testing.T, p policy) {
		m := medianOf(t, s, p)
		within(t, "recovery", m.recovery, never, never)
		within(t, "success after the outage", m.succAfter, 0, 0.05)
	})
	each(t, []policy{noRetry, budgeted, ours, broken, both, byDefault, impatient}, func(t *testing.T, p policy) {
		m := medianOf(t, s, p)
		within(t, "recovery", m.recovery, 0, 45)
		within(t, "success after the outage", m.succAfter, 0.25, 1)
	})
}

// Budgets hold back retries, breakers hold back calls: only these shorten what
// an upstream needs to work off the backlog of its outage.
func TestBreakerShortensTheBacklog(t *testing.T) {
	s := queueing.smaller(fleet(), 10*time.Second, 95*time.Second)
	each(t, []policy{noRetry, budgeted}, func(t *testing.T, p policy) {
		within(t, "recovery", medianOf(t, s, p).recovery, 40, 90)
	})
	each(t, []policy{broken, both, byDefault}, func(t *testing.T, p policy) {
		within(t, "recovery", medianOf(t, s, p).recovery, 1, 32)
	})
}

// Large clients notice an outage at once.
func TestBreakerServesLargeClientsBest(t *testing.T) {
	s := fewLarge.smaller(4, 10*time.Second, 20*time.Second)
	each(t, []policy{broken, both, byDefault}, func(t *testing.T, p policy) {
		m := medianOf(t, s, p)
		within(t, "attempts in the outage per call begun in it", m.ampOut, 0, 0.2)
		within(t, "recovery", m.recovery, 0, 15)
	})
}

// Four attempts cannot be sustained above a utilisation of a quarter.
func TestUtilisationTimesAttemptsDecides(t *testing.T) {
	if testing.Short() {
		t.Skip("near the cliff only a large fleet shows on which side it is")
	}
	for _, c := range []struct {
		utilisation float64
		watched     time.Duration
		low, high   float64
	}{
		{0.24, 150 * time.Second, 0, 145},
		{0.26, 80 * time.Second, never, never},
	} {
		t.Run(fmt.Sprint(c.utilisation), func(t *testing.T) {
			t.Parallel()
			s := blip.smaller(300, 5*time.Second, c.watched).at(c.utilisation)
			within(t, "recovery", medianOf(t, s, full).recovery, c.low, c.high)
		})
	}
}

// Clients that all call at the same moment: jitter is what helps. A budget
// hurts, the more the less comes back by itself: spread first attempts as well.
func TestJitterPartsClientsThatCallInStep(t *testing.T) {
	s := inStep.smaller(inStep.clients, time.Minute, 40*time.Second)
	for _, c := range []struct {
		policy    policy
		low, high float64
	}{
		{noRetry, 0.07, 0.08}, // the burst: 15 of 200
		{fixed, 0.25, 0.4},
		{exponential, 0.25, 0.4}, // four bursts
		{equal, 0.95, 1},
		{full, 0.95, 1},
		{budgeted, 0.07, 0.2},
		{ours, 0.3, 0.8},
	} {
		each(t, []policy{c.policy}, func(t *testing.T, p policy) {
			within(t, "success", medianOf(t, s, p).succAfter, c.low, c.high)
		})
	}
}
