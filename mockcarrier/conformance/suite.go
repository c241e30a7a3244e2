package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// atOnce is how many cases run at the same time. Most of a case is waiting.
const atOnce = 16

// Run puts a client to the test, each case as a subtest named
// parallel/<id of the case>. It fails those whose rule does not hold, in one
// line for each finding, and logs the scorecard at the end. The usual -run
// selects: -run 'TestConformance//retry-after'.
//
// newClient makes a client for the API at baseURL. It is called for each case
// and from several goroutines at once. The client is to be set up as it is in
// production, with [APIKey] and [AttemptTimeout].
func Run(t *testing.T, newClient func(baseURL string) Client) {
	t.Helper()
	card := &Scorecard{}
	places := make(chan struct{}, atOnce)
	scores := make([]*Score, len(allCases()))
	// Cases begin before their subtest calls Parallel, so that it is not the flag
	// -parallel that says how many run at once; they wait more than they work.
	t.Run("parallel", func(t *testing.T) {
		for i, c := range allCases() {
			t.Run(c.ID, func(t *testing.T) {
				done := begin(c, newClient, runs, places)
				t.Parallel()
				score := <-done
				scores[i] = &score
				for _, finding := range score.Findings {
					t.Errorf("%s [%s]", finding, c.Source)
				}
			})
		}
	})
	for _, score := range scores {
		if score != nil {
			card.Scores = append(card.Scores, *score)
		}
	}
	t.Log("\n" + card.String())
}

// Check is [Run] without a test: for programs, and to compare clients. With
// only, it is those cases that are named, by ID or the first parts of one:
// "outage", "faults/reset-after".
func Check(newClient func(baseURL string) Client, only ...string) *Scorecard {
	return check(newClient, runs, only)
}

func check(newClient func(baseURL string) Client, runs int, only []string) *Scorecard {
	card := &Scorecard{}
	places := make(chan struct{}, atOnce)
	var running []<-chan Score
	for _, c := range selected(only) {
		running = append(running, begin(c, newClient, runs, places))
	}
	for _, done := range running {
		card.Scores = append(card.Scores, <-done)
	}
	return card
}

// begin runs a case as soon as there is a place.
func begin(c Case, newClient func(baseURL string) Client, runs int, places chan struct{}) <-chan Score {
	done := make(chan Score, 1)
	go func() {
		places <- struct{}{}
		defer func() { <-places }()
		done <- judge(c, newClient, runs)
	}()
	return done
}

// runs is how often a case is run at most; see judge.
const runs = 3

// judge runs one case. What does not hold while the machine stalls says nothing
// of the client, and is run again.
func judge(c Case, newClient func(baseURL string) Client, runs int) Score {
	const stall = 40 * time.Millisecond
	for run := 1; ; run++ {
		lateness := watch()
		score := play(c, newClient)
		if late := lateness(); score.Verdict == Holds || run == runs || late < stall {
			return score
		}
	}
}

func play(c Case, newClient func(baseURL string) Client) Score {
	began := time.Now()
	s := &stage{id: c.ID, newClient: newClient}
	if err := s.open(c.setup); err != nil {
		s.want(false, "the suite could not begin: %v", err)
	} else {
		func() {
			defer s.recover()
			c.run(s)
		}()
		s.close()
	}
	score := Score{Case: c, Took: time.Since(began)}
	score.Verdict, score.Findings = s.verdict()
	return score
}

// watch looks at how late the machine wakes a goroutine. The function that it
// returns ends it, and tells the worst.
func watch() (worst func() time.Duration) {
	const tick = 5 * time.Millisecond
	stop, told := make(chan struct{}), make(chan time.Duration)
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		late, last := time.Duration(0), time.Now()
		for {
			select {
			case <-ticker.C:
				now := time.Now()
				late, last = max(late, now.Sub(last)-tick), now
			case <-stop:
				told <- late
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-told
	}
}

// recover turns a panic of the client into a finding.
func (s *stage) recover() {
	if p := recover(); p != nil {
		s.want(false, "panics: %s", firstLine(fmt.Sprint(p)))
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
