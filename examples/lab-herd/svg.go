package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"os"
	"strings"
	"text/template"
	"time"
)

//go:embed histograms.svg.tmpl
var histograms string

// The layout of the drawing, in pixels.
const (
	columns               = 2
	margin, top           = 28, 96
	panelWidth, panelGap  = 438, 28
	axis, header          = 34, 46 // left of the plot, above the plot
	plotHeight, rugHeight = 126, 12
	panelHeight           = header + plotHeight + rugHeight + 46
	plotWidth             = panelWidth - axis
)

// drawing is all that the template needs.
type drawing struct {
	Width, Height, Right int
	Callers              int
	Outage, Step         string
	Panels               []panel
	Plot, Rug, Labels    int // from the top of a plot: its foot, the rug, the labels of the axis
	PlotWidth            int
	Down                 float64 // width of the outage
	Levels, Ticks        []tick
}

// tick is a line of a scale.
type tick struct {
	At   float64
	Text string
}

// panel is one herd.
type panel struct {
	X, Y              int
	Left              bool // it has the title of the vertical axis
	Last              bool // it has the title of the horizontal axis
	Name, Lesson      string
	Requests, Served  int
	Bars              []bar
	Refused, Answered string // paths of the rug
}

type bar struct {
	X, Y, Width, Height, Middle float64
	Class                       string
	Count                       int
}

func draw(herds []herd) drawing {
	steps, most := extent(herds)
	steps++ // some room on the right
	perStep := float64(plotWidth) / float64(steps)
	perSecond := perStep / step.Seconds()
	level := levelFor(most)
	full := 1.12 * float64(max(most, 1)) // some room for the number on the fullest

	d := drawing{
		Width: 2*margin + columns*panelWidth + (columns-1)*panelGap, Callers: callers,
		Outage: fmt.Sprintf("%g s", outage.Seconds()), Step: fmt.Sprintf("%d ms", step.Milliseconds()),
		Plot: plotHeight, Rug: plotHeight + 4, Labels: plotHeight + rugHeight + 20, PlotWidth: plotWidth,
		Down: outage.Seconds() * perSecond,
	}
	rows := (len(herds) + columns - 1) / columns
	d.Height = top + rows*panelHeight + 20
	d.Right = d.Width - margin
	for n := 0; n <= most; n += level {
		d.Levels = append(d.Levels, tick{plotHeight * (1 - float64(n)/full), fmt.Sprint(n)})
	}
	for i := 0; i <= steps; i += 2 {
		d.Ticks = append(d.Ticks, tick{float64(i) * perStep, fmt.Sprintf("%.1f", (step * time.Duration(i)).Seconds())})
	}
	for i, h := range herds {
		p := panel{
			X: margin + i%columns*(panelWidth+panelGap) + axis, Y: top + i/columns*panelHeight + header,
			Left: i%columns == 0, Last: i/columns == rows-1,
			Name: h.name, Lesson: h.lesson, Requests: len(h.arrivals), Served: h.served,
		}
		for n, b := range h.bins() {
			if b.total() == 0 {
				continue
			}
			class := "refused"
			if b.answered > b.refused {
				class = "answered"
			}
			height := math.Max(1, plotHeight*float64(b.total())/full)
			p.Bars = append(p.Bars, bar{
				X: float64(n)*perStep + 2, Y: plotHeight - height, Width: perStep - 4, Height: height,
				Middle: (float64(n) + 0.5) * perStep, Class: class, Count: b.total(),
			})
		}
		p.Refused = rug(h.arrivals, true, perSecond)
		p.Answered = rug(h.arrivals, false, perSecond)
		d.Panels = append(d.Panels, p)
	}
	return d
}

// levelFor is the distance between two lines of the vertical scale: at most four
// of them.
func levelFor(most int) int {
	for level := 10; ; level *= 10 {
		for _, l := range []int{level, 2 * level, 5 * level} {
			if most/l <= 4 {
				return l
			}
		}
	}
}

// rug is a path with a short line for each attempt.
func rug(arrivals []arrival, refused bool, perSecond float64) string {
	var s strings.Builder
	for _, a := range arrivals {
		if a.refused == refused {
			fmt.Fprintf(&s, "M%.1f 0v%d", a.at.Seconds()*perSecond, rugHeight)
		}
	}
	return s.String()
}

func writeSVG(file string, herds []herd) error {
	t, err := template.New("histograms").Parse(histograms)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, draw(herds)); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
