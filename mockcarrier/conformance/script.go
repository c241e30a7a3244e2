package conformance

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// scripts has the cases that are data, one file for each group.
//
//go:embed cases/*.json
var scripts embed.FS

// script is a case that is data: one call, what the carrier does meanwhile, and
// what must be seen.
type script struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`

	// Faults are injected in this order, so that the last goes first.
	Faults []mockcarrier.Fault `json:"faults"`
	// Port is what the client calls; see [port].
	Port port `json:"port"`
	// Clock is by how much the carrier's clock is ahead.
	Clock span `json:"clock"`
	// Keeps5xx lets the carrier keep a 5xx as the answer for a key.
	Keeps5xx bool `json:"keeps5xx"`
	// Limit is how long the caller waits; 10 s if it is not given.
	Limit span `json:"limit"`

	// Want is for Track and for Ship, each of which may have its own in place of
	// it. Label has its own only. A call for which there is none is not made.
	Want  *want `json:"want"`
	Track *want `json:"track"`
	Ship  *want `json:"ship"`
	Label *want `json:"label"`
}

// want is what must be seen. What is not given is not judged, but that one call
// never buys twice.
type want struct {
	// Result is "ok", where the value is judged as well, "any value" or "error".
	Result string `json:"result"`
	// Requests are the least and the most that may come.
	Requests []int `json:"requests"`
	// Bought is how many shipments are made.
	Bought *int `json:"bought"`
	// OneKey says that all requests carry the same key and the same bytes.
	OneKey bool `json:"oneKey"`
	// Gap is how long must lie between the first request and the second.
	Gap span `json:"gap"`
	// Within is when the call must be over.
	Within span `json:"within"`

	// These are what the client must tell.
	Outcome    Outcome `json:"outcome"`
	Status     int     `json:"status"`
	RetryAfter span    `json:"retryAfter"`
	// Is is "deadline" or "canceled": the error of the context that errors.Is finds.
	Is string `json:"is"`
}

// span is a time.Duration that is written as text.
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// load reads a group.
func load(group string) ([]script, error) {
	data, err := scripts.ReadFile("cases/" + group + ".json")
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var all []script
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", group, err)
	}
	return all, nil
}

// scripted returns the cases of a group that are data.
func scripted(group string) []Case {
	all, err := load(group)
	if err != nil {
		panic(err) // the files are part of the program, and tested
	}
	var cases []Case
	for _, s := range all {
		calls := s.calls()
		for _, name := range []string{"track", "ship", "label"} {
			want, ok := calls[name]
			if !ok {
				continue
			}
			c := Case{ID: group + "/" + s.Name, Title: s.Title, Source: s.Source, setup: s.setup()}
			if len(calls) > 1 {
				c.ID += "/" + name
			}
			c.run = func(st *stage) { s.play(st, name, want) }
			cases = append(cases, c)
		}
	}
	return cases
}

func (s script) calls() map[string]*want {
	calls := map[string]*want{"track": s.Want, "ship": s.Want}
	for name, own := range map[string]*want{"track": s.Track, "ship": s.Ship, "label": s.Label} {
		if own != nil {
			calls[name] = own
		}
	}
	maps.DeleteFunc(calls, func(_ string, w *want) bool { return w == nil })
	return calls
}

func (s script) setup() setup {
	with := setup{port: s.Port}
	if s.Clock != 0 {
		with.options = append(with.options, mockcarrier.WithClock(func() time.Time { return time.Now().Add(time.Duration(s.Clock)) }))
	}
	if s.Keeps5xx {
		with.options = append(with.options, mockcarrier.WithIdempotencyPolicy(mockcarrier.StoreServerErrors))
	}
	return with
}

// operations are the operationIds of the calls.
var operations = map[string]string{"track": "getTracking", "ship": "createShipment", "label": "getLabel"}

// play makes the call, and judges it.
func (s script) play(st *stage, name string, want *want) {
	limit := time.Duration(s.Limit)
	if limit == 0 {
		limit = defaultLimit
	}
	var label label
	do := st.track
	switch name {
	case "ship":
		do = st.ship("key-1", "order-1")
	case "label":
		if !label.make(st) {
			return
		}
		do = label.download
	}
	for _, f := range s.Faults {
		st.mock.Inject(f)
	}
	before := len(st.sent(operations[name]))
	r := st.within(limit, do)
	if r.hung {
		return
	}
	requests := st.sent(operations[name])[before:]
	want.judgeResult(st, name, r, &label)
	want.judgeRequests(st, requests)
	want.judgeTold(st, r)
}

func (w *want) judgeResult(s *stage, call string, r reply, l *label) {
	switch w.Result {
	case "ok", "any value":
		if !s.want(r.Err == nil, "the call fails: %s; it must succeed", line(r.Err)) || w.Result != "ok" {
			break
		}
		switch call {
		case "track":
			s.want(r.Value == parcelStatus, "the parcel's status is read as %q; it is %q", r.Value, parcelStatus)
		case "ship":
			bought := s.mock.Ledger()
			s.want(len(bought) == 1 && bought[0].ShipmentID == r.Value, "%d shipments are bought, and %q is told; it must be one, and that", len(bought), r.Value)
		case "label":
			s.want(bytes.Equal(l.got.Bytes(), l.whole), "%d bytes of the label come, and no error; it has %d", l.got.Len(), len(l.whole))
		}
	case "error":
		s.want(r.Err != nil, "the call succeeds, with the value %q; it must fail", r.Value)
	}
	bought := len(s.mock.Ledger())
	switch {
	case w.Bought != nil:
		s.want(bought == *w.Bought, "%d shipments are bought; it must be %d", bought, *w.Bought)
	default:
		s.want(bought <= 1, "%d shipments are bought by one call", bought)
	}
	if w.Within != 0 {
		s.want(r.took < time.Duration(w.Within), "the call takes %v; it must be over within %v", r.took.Round(time.Millisecond), time.Duration(w.Within))
	}
	if r.Err == nil {
		return
	}
	switch w.Is {
	case "deadline":
		s.want(errors.Is(r.Err, context.DeadlineExceeded), "the error is not context.DeadlineExceeded: %s", line(r.Err))
	case "canceled":
		s.want(errors.Is(r.Err, context.Canceled), "the error is not context.Canceled: %s", line(r.Err))
	}
}

func (w *want) judgeRequests(s *stage, requests []mockcarrier.Request) {
	n := len(requests)
	if len(w.Requests) == 2 {
		least, most := w.Requests[0], w.Requests[1]
		wanted := fmt.Sprintf("%d to %d", least, most)
		if least == most {
			wanted = fmt.Sprint(least)
		}
		s.want(n >= least && n <= most, "%d requests come; it must be %s", n, wanted)
	}
	if gap := time.Duration(w.Gap); gap != 0 && s.want(n > 1, "no second request comes") {
		// Clocks of coarse ticks may have the second a little early.
		waited := requests[1].At.Sub(requests[0].At)
		s.want(waited > gap-20*time.Millisecond, "the second request comes after %v; it must wait %v", waited.Round(time.Millisecond), gap)
	}
	if w.OneKey {
		judgeOneKey(s, requests)
	}
}

// judgeOneKey wants all requests to carry one key, and the same bytes.
func judgeOneKey(s *stage, requests []mockcarrier.Request) {
	keys := map[string]bool{}
	for _, r := range requests {
		keys[r.Key] = true
		s.want(bytes.Equal(r.Body, requests[0].Body), "request %d has other bytes than the first", r.Seq)
	}
	s.want(len(keys) == 1 && !keys[""], "%d requests carry the keys %q; it must be one key", len(requests), slices.Sorted(maps.Keys(keys)))
}

func (w *want) judgeTold(s *stage, r reply) {
	if r.Err == nil {
		return
	}
	if w.Outcome != NoStatement {
		told(&s.findings, "outcome", r.Outcome, w.Outcome)
	}
	if w.Status != 0 {
		told(&s.findings, "status", r.StatusCode, w.Status)
	}
	if w.RetryAfter != 0 {
		told(&s.findings, "Retry-After", r.RetryAfter, time.Duration(w.RetryAfter))
	}
}

// line is the first line of an error's text, and not all of a long one.
func line(err error) string {
	if err == nil {
		return "no error"
	}
	text := strings.ReplaceAll(firstLine(err.Error()), APIKey, "[the API key]")
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}
