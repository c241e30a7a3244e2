package simulation

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The instruments themselves, against figures worked out by hand.

func TestMeasures(t *testing.T) {
	s := scenario{
		clients: 2, rate: 0.5, // one call per second
		before: 10 * time.Second, outage: 10 * time.Second, after: 20 * time.Second,
	}
	r := &record{scenario: s}
	arrive := func(at time.Duration, ok bool, times int) {
		for range times {
			r.arrivals = append(r.arrivals, arrival{at, ok})
		}
	}
	for second := range 40 {
		at := time.Duration(second)*time.Second + 500*time.Millisecond
		up := second < 10 || second >= 23
		r.calls = append(r.calls, call{at: at, ok: up})
		switch {
		case second >= 10 && second < 20:
			arrive(at, up, 3)
		case second == 20:
			arrive(at, up, 4)
		case second == 39:
			arrive(at, up, 6)
		default:
			arrive(at, up, 1)
		}
	}
	got := r.measure()
	want := measures{
		amp:       float64(28+30+4+6) / 40,
		ampOut:    3,
		peak:      6,
		peak30:    6, // the run ends before the 30 s do
		recovery:  3,
		succAfter: 17.0 / 20,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	for i := range r.calls {
		r.calls[i].ok = false
	}
	if got := r.measure().recovery; got != math.Inf(1) {
		t.Errorf("recovery without a success is %v", got)
	}
}

func TestMedians(t *testing.T) {
	got := medians([]measures{{amp: 3, recovery: math.Inf(1)}, {amp: 1, recovery: 7}, {amp: 2, recovery: math.Inf(1)}})
	if got.amp != 2 || got.recovery != math.Inf(1) {
		t.Errorf("medians are %+v", got)
	}
}

func TestUpstreamThatFailsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{
			scenario: scenario{capacity: 10, before: 10 * time.Second, outage: 5 * time.Second},
			began:    time.Now(), tokens: burst,
		}
		accepted := func(offered int) (n int) {
			for range offered {
				resp, err := u.RoundTrip(new(http.Request))
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode == http.StatusOK {
					n++
				}
			}
			return n
		}
		for _, c := range []struct {
			at                time.Duration
			offered, accepted int
		}{
			{0, 20, burst},
			{time.Second, 20, 10},
			{9 * time.Second, 20, burst}, // no more is saved up
			{10 * time.Second, 20, 0},
			{14*time.Second + 999*time.Millisecond, 20, 0},
			{15 * time.Second, 20, burst},
		} {
			time.Sleep(c.at - time.Since(u.began))
			if got := accepted(c.offered); got != c.accepted {
				t.Errorf("at %v %d of %d were accepted, not %d", c.at, got, c.offered, c.accepted)
			}
		}
	})
}

func TestUpstreamThatQueues(t *testing.T) {
	u := &upstream{scenario: scenario{capacity: 1, queues: true, before: 10 * time.Second, outage: 5 * time.Second}}
	for _, c := range []struct{ at, done time.Duration }{
		{0, 1}, {0, 2}, // one after the other
		{5, 6},   // idle in between
		{9, 10},  // just before the outage
		{9, 16},  // interrupted
		{12, 17}, // began in the outage
		{30, 31}, // the queue is long empty
	} {
		if got := u.enqueue(c.at * time.Second); got != c.done*time.Second {
			t.Errorf("a call that comes at %d s is done at %v, not at %d s", c.at, got, c.done)
		}
	}
}

func TestOutline(t *testing.T) {
	if got, want := outline([]int{2, 5, 5, 0, 9}, 6), "M0 0V2H1V5H3V0H4V6H5V0z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A chart of made-up runs: every policy has its row, and every measure its words.
func TestChart(t *testing.T) {
	r := &record{scenario: failFast}
	for i := range 200 {
		r.arrivals = append(r.arrivals, arrival{failFast.before + time.Second, i%2 == 0}) // all in one slot
	}
	rows := make([]measures, len(policies))
	panels := make([]*panel, len(policies))
	for i := range policies {
		rows[i] = measures{ampOut: 1.5, recovery: float64(7 * i)}
		panels[i] = newPanel(r)
	}
	rows[1].recovery = never
	var c chart
	c.add(failFast, rows, panels)
	c.add(blip, rows, panels)
	var svg bytes.Buffer
	if err := c.draw(&svg); err != nil {
		t.Fatal(err)
	}
	if err := wellFormed(svg.Bytes()); err != nil {
		t.Fatal(err)
	}
	for text, times := range map[string]int{
		`class="lost" d=`:            2 * len(policies),
		`class="served" d=`:          2 * len(policies),
		"V150H45":                    2 * len(policies), // cut at the edge of the panel
		"V100H45":                    2 * len(policies),
		"▲ 200<":                     2 * len(policies),
		"recovers at once":           2,
		"never recovers":             2,
		"recovers in 14 s":           2,
		"waiting at most 5 s</text>": 0, // too long for a line
		"at most 5 s</text>":         1,
	} {
		if got := strings.Count(svg.String(), text); got != times {
			t.Errorf("%q is there %d times, not %d", text, got, times)
		}
	}
}

func TestWrittenTable(t *testing.T) {
	rows := make([]measures, len(policies))
	rows[0] = measures{amp: 1, ampOut: 1, peak: 1.25, peak30: 1.5, recovery: 57, succAfter: 0.8}
	rows[1] = measures{amp: 3.5, recovery: never}
	var out bytes.Buffer
	if err := writeTable(&out, queueing, rows); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(&out, inStep, rows); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, noRetry.name) || strings.Contains(line, fixed.name) {
			got = append(got, strings.Fields(line)[len(strings.Fields(line))-6:])
		}
	}
	want := [][]string{
		{"1.00", "1.00", "1.25", "1.50", "57", "0.800"},
		{"3.50", "0.00", "0.00", "0.00", "never", "0.000"},
		{"1.00", "–", "1.25", "–", "–", "0.800"}, // never down
		{"3.50", "–", "0.00", "–", "–", "0.000"},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q", got)
	}
}
