package simulation

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

var (
	printTable = flag.Bool("table", false, "make TestTable run, and print the measures of all policies in all scenarios")
	chartFile  = flag.String("svg", "", "make TestTable run, and draw the arrivals into this file")
)

// TestTable is no test but a report, and is skipped unless it is asked for.
func TestTable(t *testing.T) {
	if !*printTable && *chartFile == "" {
		t.Skip("a report: use -args -table, -svg FILE, or both")
	}
	scenarios := []scenario{failFast, blip}
	if *printTable {
		scenarios = []scenario{failFast, queueing, blip, fewLarge, inStep}
	}

	// Everything runs side by side, and each run has a place of its own.
	results := make([][]measures, len(scenarios)*len(policies))
	drawn := make([]*panel, len(scenarios)*len(policies))
	t.Run("simulations", func(t *testing.T) {
		for i, s := range scenarios {
			for j, p := range policies {
				place := i*len(policies) + j
				results[place] = make([]measures, *seeds)
				for k := range *seeds {
					t.Run(p.name, func(t *testing.T) {
						t.Parallel()
						r := s.run(t, p, *first+uint64(k))
						results[place][k] = r.measure()
						if k == 0 {
							drawn[place] = newPanel(r)
						}
					})
				}
			}
		}
	})
	if t.Failed() {
		return
	}

	var c chart
	for i, s := range scenarios {
		rows := make([]measures, len(policies))
		for j := range policies {
			rows[j] = medians(results[i*len(policies)+j])
		}
		if *printTable {
			if err := writeTable(os.Stdout, s, rows); err != nil {
				t.Fatal(err)
			}
		}
		if s.name == failFast.name || s.name == blip.name {
			c.add(s, rows, drawn[i*len(policies):])
		}
	}
	if *chartFile == "" {
		return
	}
	var svg bytes.Buffer
	if err := c.draw(&svg); err != nil {
		t.Fatal(err)
	}
	if err := wellFormed(svg.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*chartFile, svg.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\nThe arrivals are drawn in", *chartFile)
}

// writeTable prints the measures of all policies in one scenario.
func writeTable(w io.Writer, s scenario, rows []measures) error {
	const format = "%-36s%14s%15s%7s%15s%12s%15s\n"
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n%s\n\n", strings.ToUpper(s.name[:1])+s.name[1:], s.describe())
	fmt.Fprintf(&b, format, "", "attempts/call", "in the outage", "peak", "in 30 s after", "recovery s", "success after")
	for i, m := range rows {
		fmt.Fprintf(&b, format, policies[i].name,
			fmt.Sprintf("%.2f", m.amp), s.ifDown("%.2f", m.ampOut), fmt.Sprintf("%.2f", m.peak),
			s.ifDown("%.2f", m.peak30), s.ifDown("%.0f", m.recovery), fmt.Sprintf("%.3f", m.succAfter))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ifDown leaves a measure out that means nothing without an outage.
func (s scenario) ifDown(format string, v float64) string {
	switch {
	case s.outage == 0:
		return "–"
	case math.IsInf(v, 1):
		return "never"
	default:
		return fmt.Sprintf(format, v)
	}
}

// describe says what the name does not.
func (s scenario) describe() string {
	load := fmt.Sprintf("%g calls/s each", s.rate)
	if s.every > 0 {
		load = fmt.Sprintf("all at once every %v", s.every)
	}
	kind := "more is answered 503 at once"
	if s.queues {
		kind = fmt.Sprintf("more queues, and is worked on after its client has left (attempt timeout %v)", attemptTimeout)
	}
	down := ""
	if s.outage > 0 {
		down = fmt.Sprintf(" Down from %v for %v.", s.before, s.outage)
	}
	return fmt.Sprintf("%d clients, %s. The upstream can do %g calls/s; %s.%s Observed for %v.",
		s.clients, load, s.capacity, kind, down, s.length())
}

// wellFormed reads a document to its end.
func wellFormed(doc []byte) error {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
