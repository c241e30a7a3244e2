package main

import (
	"errors"
	"fmt"
	"time"
)

// punctual is how late a machine may be to wake a goroutine for what is claimed
// of single steps to be judged: a stall moves attempts into a later step.
const punctual = 40 * time.Millisecond

// check compares what has happened with what the lab claims.
func check(herds []herd) error {
	var wrong []error
	for i, h := range herds {
		for _, c := range claims(i, h) {
			if !c.holds {
				wrong = append(wrong, fmt.Errorf("%s: want %s, got %s, %d of them in the fullest step after the first, %d steps of the outage without one",
					h.name, c.what, h.result(), h.fullest(1), h.quiet()))
			}
		}
	}
	return errors.Join(wrong...)
}

type claim struct {
	what  string
	holds bool
}

// claims are what has to hold of a policy.
func claims(policy int, h herd) []claim {
	n, late := len(h.arrivals), h.stall > punctual
	counted := claim{fmt.Sprintf("as many requests as attempts (%d)", h.attempts), n == h.attempts}
	all := claim{"every caller served", h.served == callers}
	switch policy {
	case noJitter:
		return []claim{counted, all,
			{"5 requests of each caller", late || n == 5*callers},
			{"a step of the outage without a request", late || h.quiet() > 0},
		}
	case equalJitter:
		return []claim{counted, all}
	case fullJitter:
		return []claim{counted, all, {"requests in every step of the outage", late || h.quiet() == 0}}
	case withBudget, withBreaker:
		return []claim{counted, {"at most 10 requests more than callers", n <= callers+10}}
	default:
		return []claim{counted, all,
			{"at most 210 requests", n <= 210},
			{"at most 60 requests in each step after the first", late || h.fullest(1) <= 60},
		}
	}
}

// quiet is how many steps of the outage pass without an arrival.
func (h herd) quiet() int {
	quiet := 0
	bins := h.bins()
	for i := range int(outage / step) {
		if at(bins, i).total() == 0 {
			quiet++
		}
	}
	return quiet
}
