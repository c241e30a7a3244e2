package simulation

import (
	"math"
	"slices"
	"time"
)

// measures of one run, or the medians of several.
type measures struct {
	amp       float64 // attempts per call
	ampOut    float64 // attempts in the outage per call begun in it; NaN without an outage
	peak      float64 // most attempts in a second, as a multiple of the calls offered
	peak30    float64 // the same, in the 30 s after the outage only
	recovery  float64 // seconds from the end of the outage to the first 5 s with 99 % success; +Inf: never
	succAfter float64 // share of the calls begun after the outage that succeeded
}

const (
	recoveryWindow = 5 * time.Second
	recoveredShare = 0.99
)

func (r *record) measure() measures {
	up := r.before + r.outage
	succAfter, _ := r.success(up, r.length())
	return measures{
		amp:       float64(len(r.arrivals)) / float64(len(r.calls)),
		ampOut:    float64(count(r.arrivals, r.before, up)) / float64(countCalls(r.calls, r.before, up)),
		peak:      r.peakBetween(0, r.length()),
		peak30:    r.peakBetween(up, min(up+30*time.Second, r.length())),
		recovery:  r.recovery(),
		succAfter: succAfter,
	}
}

// peakBetween compares the fullest second from from to to with the rate offered.
func (r *record) peakBetween(from, to time.Duration) float64 {
	most := 0
	for _, n := range histogram(r.arrivals, from, to, time.Second) {
		most = max(most, n)
	}
	return float64(most) / r.offered()
}

func (r *record) recovery() float64 {
	up := r.before + r.outage
	for begin := up; begin+recoveryWindow <= r.length(); begin += time.Second {
		if share, n := r.success(begin, begin+recoveryWindow); n > 0 && share >= recoveredShare {
			return (begin - up).Seconds()
		}
	}
	return math.Inf(1)
}

// success is the share of the calls begun from from to to that succeeded, and
// how many were begun.
func (r *record) success(from, to time.Duration) (share float64, begun int) {
	ok := 0
	for _, c := range r.calls {
		if c.at >= from && c.at < to {
			begun++
			if c.ok {
				ok++
			}
		}
	}
	return float64(ok) / float64(begun), begun
}

func countCalls(calls []call, from, to time.Duration) (n int) {
	for _, c := range calls {
		if c.at >= from && c.at < to {
			n++
		}
	}
	return n
}

func count(arrivals []arrival, from, to time.Duration) (n int) {
	for _, a := range arrivals {
		if a.at >= from && a.at < to {
			n++
		}
	}
	return n
}

// histogram counts the arrivals from from to to in slots of a width.
func histogram(arrivals []arrival, from, to, width time.Duration) []int {
	slots := make([]int, (to-from+width-1)/width)
	for _, a := range arrivals {
		if a.at >= from && a.at < to {
			slots[(a.at-from)/width]++
		}
	}
	return slots
}

// medians takes the median of each measure by itself.
func medians(runs []measures) measures {
	of := func(field func(measures) float64) float64 {
		values := make([]float64, len(runs))
		for i, m := range runs {
			values[i] = field(m)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return measures{
		amp:       of(func(m measures) float64 { return m.amp }),
		ampOut:    of(func(m measures) float64 { return m.ampOut }),
		peak:      of(func(m measures) float64 { return m.peak }),
		peak30:    of(func(m measures) float64 { return m.peak30 }),
		recovery:  of(func(m measures) float64 { return m.recovery }),
		succAfter: of(func(m measures) float64 { return m.succAfter }),
	}
}
