package simulation

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"
)

// chart is small multiples: a row for each policy, a column for each scenario,
// and one scale for all panels, so that they can be compared by eye.
type chart struct{ columns []column }

type column struct {
	scenario
	rows   []measures
	panels []*panel
}

// What a panel shows of a run, and how finely.
const (
	slot       = 250 * time.Millisecond
	leadIn     = 10 * time.Second
	panelRange = 80 * time.Second
)

// panel is the arrivals of one run around its outage.
type panel struct {
	all, served []int // per slot; served ones brought their client an answer
}

func newPanel(r *record) *panel {
	from := r.before - leadIn
	served := slices.DeleteFunc(slices.Clone(r.arrivals), func(a arrival) bool { return !a.ok })
	return &panel{
		all:    histogram(r.arrivals, from, from+panelRange, slot),
		served: histogram(served, from, from+panelRange, slot),
	}
}

func (c *chart) add(s scenario, rows []measures, panels []*panel) {
	c.columns = append(c.columns, column{s, rows, panels})
}

// Sizes, in pixels.
const (
	margin      = 20
	nameWidth   = 172
	ticksWidth  = 44
	panelWidth  = 360
	panelGap    = 28
	panelHeight = 60
	rowPitch    = 90
	firstRow    = 218
)

//go:embed chart.svg.tmpl
var chartTemplate string

// label is a text and where it stands.
type label struct {
	X, Y float64
	Text string
}

type rowView struct {
	Y      float64
	Name   []label
	Panels []panelView
}

type panelView struct {
	X, OutageX, OutageWidth float64
	All, Served             string // outlines
	Note                    string
	Cut                     string // how high it is, if that is higher than the scale
}

func (c *chart) draw(w io.Writer) error {
	t, err := template.New("chart").Parse(chartTemplate)
	if err != nil {
		return err
	}
	s := c.columns[0].scenario // all columns have the same load
	offered := s.offered() * slot.Seconds()
	top := 6 * offered // arrivals in a slot at the upper edge of a panel
	y := func(arrivals float64) float64 { return panelHeight * (1 - arrivals/top) }
	x := func(d time.Duration) float64 { return panelWidth * d.Seconds() / panelRange.Seconds() }
	bottom := float64(firstRow + rowPitch*(len(policies)-1) + panelHeight)

	view := map[string]any{
		"Title": "What retries do to an upstream that goes down",
		"Description": "Histograms of the attempts that arrive at an upstream around its outage: " +
			"one row for each retry policy, one column for each kind of upstream.",
		"Intro": lines(60, 18,
			fmt.Sprintf("%d clients make %g calls a second, to an upstream that can do %g. Each row is a policy: up to four attempts, with backoff from 0.5 s to 8 s;",
				s.clients, s.offered(), s.capacity),
			"by default up to three, from 0.1 s to 5 s. On the left, unbounded retries multiply the load for as long as the outage lasts. On the right,",
			"the upstream goes on with calls that nobody waits for any more, and unbounded retries make a blip last for ever, whatever their jitter."),
		"Width":  margin + nameWidth + ticksWidth + panelWidth*len(c.columns) + panelGap*(len(c.columns)-1) + margin,
		"Height": bottom + 60, "Left": margin, "LegendY": 134, "HeadY": firstRow - 36,
		"PanelWidth": panelWidth, "PanelHeight": panelHeight,
		"SlotWidth": x(slot), "ArrivalHeight": -panelHeight / top, "CapacityY": y(s.capacity * slot.Seconds()),
		"TickX": margin + nameWidth + ticksWidth - 6, "UnitY": firstRow - 14,
		"AxisY": bottom, "AxisTextY": bottom + 20, "AxisTitleY": bottom + 40,
		"Slot": inWords(slot), "GivenUp": inWords(attemptTimeout),
	}

	var ticks, heads, axes, seconds []label
	for arrivals := 0.0; arrivals <= top; arrivals += 2 * offered {
		ticks = append(ticks, label{Y: y(arrivals) + 4, Text: fmt.Sprint(arrivals)})
	}
	for i, col := range c.columns {
		heads = append(heads, label{X: columnX(i), Text: "An upstream that " + col.name})
		axes = append(axes, label{X: columnX(i) + panelWidth/2, Text: "seconds since the outage began"})
		for d := -leadIn; d <= panelRange-leadIn; d += 10 * time.Second {
			text := strings.Replace(fmt.Sprint(d.Seconds()), "-", "−", 1)
			seconds = append(seconds, label{X: columnX(i) + x(d+leadIn), Text: text})
		}
	}
	view["Ticks"], view["Heads"], view["Axes"], view["Seconds"] = ticks, heads, axes, seconds

	var rows []rowView
	for j, p := range policies {
		row := rowView{Y: float64(firstRow + rowPitch*j)}
		name := wrap(p.name, 22)
		row.Name = lines(panelHeight/2+5-9*float64(len(name)-1), 18, name...)
		for i, col := range c.columns {
			shown := col.panels[j]
			v := panelView{
				X: columnX(i), OutageX: x(leadIn), OutageWidth: x(col.outage),
				All: outline(shown.all, int(top)), Served: outline(shown.served, int(top)), Note: note(col.rows[j]),
			}
			if most := slices.Max(shown.all); float64(most) > top {
				v.Cut = fmt.Sprint(most)
			}
			row.Panels = append(row.Panels, v)
		}
		rows = append(rows, row)
	}
	view["Rows"] = rows
	return t.Execute(w, view)
}

func columnX(i int) float64 {
	return float64(margin + nameWidth + ticksWidth + i*(panelWidth+panelGap))
}

// outline is the path around the bars of a histogram: a unit to the right is a
// slot, a unit up is an arrival.
func outline(slots []int, top int) string {
	var b strings.Builder
	b.WriteString("M0 0")
	for i, n := range slots {
		if i == 0 || n != slots[i-1] {
			fmt.Fprintf(&b, "V%d", min(n, top))
		}
		if i == len(slots)-1 || n != slots[i+1] {
			fmt.Fprintf(&b, "H%d", i+1)
		}
	}
	b.WriteString("V0z")
	return b.String()
}

// note says in words what a panel shows.
func note(m measures) string {
	recovered := fmt.Sprintf("recovers in %.0f s", m.recovery)
	switch {
	case math.IsInf(m.recovery, 1):
		recovered = "never recovers"
	case m.recovery == 0:
		recovered = "recovers at once"
	}
	return fmt.Sprintf("%.2f attempts per call while down · %s", m.ampOut, recovered)
}

// inWords has the space that a duration's own text lacks.
func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

// lines puts each text below the one before it.
func lines(y, pitch float64, texts ...string) (out []label) {
	for i, text := range texts {
		out = append(out, label{Y: y + pitch*float64(i), Text: text})
	}
	return out
}

// wrap breaks a text into lines at spaces.
func wrap(text string, width int) []string {
	broken := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &broken[len(broken)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) > width:
			broken = append(broken, word)
		default:
			*last += " " + word
		}
	}
	return broken
}
