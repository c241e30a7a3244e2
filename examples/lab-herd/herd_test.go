package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// The lab checks its claims by counting callers, attempts and arrivals, and
// fails if one does not hold.
func TestTheClaimsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	file := filepath.Join(t.TempDir(), "herd.svg")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-out", file}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	drawn, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range policies() {
		if !strings.Contains(out.String(), p.name) || !bytes.Contains(drawn, []byte(p.name)) {
			t.Errorf("nothing of %q", p.name)
		}
	}
}

// The same in virtual time, where nothing is ever late and every claim is judged.
func TestTheClaimsHoldInVirtualTime(t *testing.T) {
	for i, p := range policies() {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := new(upstream)
				client, err := carrier.New("http://carrier.test", append(p.options, carrier.WithTransport(inMemory{u}))...)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				h, err := u.trample(t.Context(), p, client)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s; %d in the fullest step after the first, %d steps of the outage without one", h.result(), h.fullest(1), h.quiet())
				if h.stall != 0 {
					t.Errorf("late by %v", h.stall)
				}
				for _, what := range failed(i, h) {
					t.Errorf("want %s", what)
				}
			})
		})
	}
}

// inMemory is a network without time.
type inMemory struct{ u *upstream }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.u.ServeHTTP(w, r)
	return w.Result(), nil
}

// arriving is a herd whose attempts arrive at these moments, in milliseconds.
func arriving(served int, at ...int) herd {
	h := herd{served: served, attempts: len(at)}
	for _, ms := range at {
		d := time.Duration(ms) * time.Millisecond
		h.arrivals = append(h.arrivals, arrival{d, d < outage})
	}
	return h
}

// spread are n moments, evenly from one to another.
func spread(n, from, to int) (at []int) {
	for i := range n {
		at = append(at, from+i*(to-from)/n)
	}
	return at
}

func TestAClaimThatDoesNotHoldIsSeen(t *testing.T) {
	calm := spread(100, 0, 10)
	waited := append(append(calm, 250, 500, 750, 1000, 1250), spread(100, 1500, 2000)...)
	for name, tc := range map[string]struct {
		policy int
		good   herd
		bad    []herd
	}{
		"late": {noJitter, herd{stall: time.Second, served: 100}, []herd{{stall: time.Second, served: 99}}},
		"no jitter": {noJitter, arriving(100, append(spread(400, 0, 700), spread(100, 1500, 1510)...)...), []herd{
			arriving(99, append(spread(400, 0, 700), spread(100, 1500, 1510)...)...),
			arriving(100, append(spread(400, 0, 1500), spread(100, 1500, 1510)...)...),
			arriving(100, append(spread(299, 0, 700), spread(100, 1500, 1510)...)...),
		}},
		"equal": {equalJitter, arriving(100, spread(600, 0, 2000)...), []herd{arriving(99, spread(600, 0, 2000)...)}},
		"full": {fullJitter, arriving(100, spread(700, 0, 2000)...), []herd{
			arriving(99, spread(700, 0, 2000)...),
			arriving(100, append(spread(600, 0, 700), spread(100, 1500, 1510)...)...),
		}},
		"budget": {withBudget, arriving(0, spread(110, 0, 200)...), []herd{arriving(0, spread(111, 0, 200)...)}},
		"breaker": {withBreaker, arriving(0, spread(40, 0, 200)...), []herd{
			arriving(0, spread(111, 0, 200)...),
			{attempts: 40},
		}},
		"waiting": {waiting, arriving(100, waited...), []herd{
			arriving(99, waited...),
			arriving(100, append(spread(6, 1600, 1700), waited...)...),
			arriving(100, append(calm, spread(61, 1500, 1740)...)...),
		}},
	} {
		herds := make([]herd, tc.policy+1)
		if errs := failed(tc.policy, tc.good); len(errs) > 0 {
			t.Errorf("%s: %q do not hold", name, errs)
		}
		for i, bad := range tc.bad {
			if len(failed(tc.policy, bad)) == 0 {
				t.Errorf("%s: bad herd %d was not seen", name, i)
			}
			herds[tc.policy] = bad
			if check(herds) == nil {
				t.Errorf("%s: bad herd %d is no error", name, i)
			}
		}
	}
}

func failed(policy int, h herd) (what []string) {
	for _, c := range claims(policy, h) {
		if !c.holds {
			what = append(what, c.what)
		}
	}
	return what
}

func TestBins(t *testing.T) {
	h := arriving(2, 0, 249, 250, 1499, 1500, 1600)
	want := []bin{{refused: 2}, {refused: 1}, {}, {}, {}, {refused: 1}, {answered: 2}}
	got := h.bins()
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d: %v, want %v", i, got[i], want[i])
		}
	}
	if h.fullest(0) != 2 || h.fullest(1) != 2 || h.fullest(7) != 0 || h.quiet() != 3 {
		t.Errorf("fullest %d, %d, %d; quiet %d", h.fullest(0), h.fullest(1), h.fullest(7), h.quiet())
	}
}

func TestColumns(t *testing.T) {
	bins := []bin{{refused: 32}, {answered: 1}, {}, {refused: 12}}
	for row, want := range []string{"█▁ █", "█  ▄", "█   ", "█   "} {
		got := ""
		for i := range bins {
			got += string([]rune(column(bins, i, 32, 4, row))[:1])
		}
		if got != want {
			t.Errorf("row %d: %q, want %q", row, got, want)
		}
	}
}

// All panels have one scale, and nothing is drawn outside of its panel.
func TestDrawing(t *testing.T) {
	herds := []herd{arriving(100, spread(300, 0, 200)...), arriving(100, spread(30, 0, 200)...), arriving(1, 1600)}
	d := draw(herds)
	for i, p := range d.Panels {
		for _, b := range p.Bars {
			if b.Y < 0 || b.Y+b.Height != plotHeight || b.X < 0 || b.X+b.Width > plotWidth {
				t.Errorf("panel %d: a bar at %+v", i, b)
			}
		}
		if p.X+plotWidth > d.Width || p.Y+plotHeight > d.Height {
			t.Errorf("panel %d at %d, %d of %d, %d", i, p.X, p.Y, d.Width, d.Height)
		}
	}
	large, small := d.Panels[0].Bars[0], d.Panels[1].Bars[0]
	if ratio := large.Height / small.Height; ratio < 9.99 || ratio > 10.01 {
		t.Errorf("ten times as many are %g times as high", ratio)
	}
	if bars := d.Panels[2].Bars; len(bars) != 1 || bars[0].Class != "answered" {
		t.Errorf("bars %+v", bars)
	}
	if n := strings.Count(d.Panels[0].Refused, "M"); n != 300 {
		t.Errorf("%d marks, want 300", n)
	}

	file := filepath.Join(t.TempDir(), "herd.svg")
	if err := writeSVG(file, herds); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decoder := xml.NewDecoder(f)
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLevels(t *testing.T) {
	for most, want := range map[int]int{0: 10, 1: 10, 49: 10, 50: 20, 100: 50, 249: 50, 250: 100, 313: 100, 500: 200, 3000: 1000} {
		if got := levelFor(most); got != want {
			t.Errorf("%d: %d, want %d", most, got, want)
		}
	}
}

func TestBadFile(t *testing.T) {
	if err := writeSVG(filepath.Join(t.TempDir(), "none", "herd.svg"), nil); err == nil {
		t.Error("no error")
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-out", filepath.Join(t.TempDir(), "herd.svg")}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
