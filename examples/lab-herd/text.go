package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// printHistograms prints the columns of each herd, all to one scale.
func printHistograms(stdout io.Writer, herds []herd) {
	steps, most := extent(herds)
	for _, h := range herds {
		bins := h.bins()
		fmt.Fprintf(stdout, "\n%s. %s", h.name, h.lesson)
		if h.stall > punctual {
			fmt.Fprintf(stdout, " (Blurred: the machine was %v late at worst.)", h.stall.Round(time.Millisecond))
		}
		fmt.Fprintln(stdout)
		const rows = 4
		for row := rows - 1; row >= 0; row-- {
			fmt.Fprintln(stdout, line(steps, func(i int) string { return column(bins, i, most, rows, row) }))
		}
		fmt.Fprintln(stdout, line(steps, func(i int) string { return strconv.Itoa(at(bins, i).total()) })+"  "+h.result())
	}
	fmt.Fprintln(stdout, line(steps, func(i int) string { return strconv.FormatFloat((step * time.Duration(i)).Seconds(), 'f', -1, 64) })+"  seconds")
}

// result is a herd in a few words.
func (h herd) result() string {
	s := fmt.Sprintf("%d requests, %d of %d served", len(h.arrivals), h.served, callers)
	if h.served > 0 {
		s += fmt.Sprintf(", the last after %.2f s", h.last.Seconds())
	}
	return s
}

// line puts cells side by side, and a bar where the carrier comes back.
func line(steps int, cell func(i int) string) string {
	var s strings.Builder
	for i := range steps {
		if time.Duration(i)*step == outage {
			s.WriteString(" │")
		}
		fmt.Fprintf(&s, "%5s", cell(i))
	}
	return strings.TrimRight(s.String(), " ")
}

// column is the part of a bar that lies in a row, in eighths.
func column(bins []bin, i, most, rows, row int) string {
	const blocks = " ▁▂▃▄▅▆▇█"
	n := at(bins, i).total()
	eighths := (n*rows*8 + most - 1) / most // what is not nothing shows
	eighths = min(max(eighths-row*8, 0), 8)
	return strings.Repeat(string([]rune(blocks)[eighths]), 4)
}

func at(bins []bin, i int) bin {
	if i < len(bins) {
		return bins[i]
	}
	return bin{}
}

// extent is how many steps there are, and how full the fullest is.
func extent(herds []herd) (steps, most int) {
	for _, h := range herds {
		steps = max(steps, len(h.bins()))
		most = max(most, h.fullest(0))
	}
	return steps, most
}
