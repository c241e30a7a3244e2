package mockcarrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// faultJSON is a Fault as the admin API has it. Times are Go durations: "1.5s".
type faultJSON struct {
	Kind            Kind        `json:"kind"`
	Phase           Phase       `json:"phase,omitempty"`
	Operations      []string    `json:"operations,omitempty"`
	Keys            []string    `json:"keys,omitempty"`
	References      []string    `json:"references,omitempty"`
	TrackingNumbers []string    `json:"trackingNumbers,omitempty"`
	Match           []Matcher   `json:"match,omitempty"`
	After           int         `json:"after,omitempty"`
	First           int         `json:"first,omitempty"`
	Every           int         `json:"every,omitempty"`
	AllBut          int         `json:"allBut,omitempty"`
	Probability     *float64    `json:"probability,omitempty"`
	Seed            uint64      `json:"seed,omitempty"`
	Lasts           string      `json:"lasts,omitempty"`
	Ends            time.Time   `json:"ends,omitzero"`
	Optional        bool        `json:"optional,omitempty"`
	Steps           []Fault     `json:"steps,omitempty"`
	Loop            bool        `json:"loop,omitempty"`
	Status          int         `json:"status,omitempty"`
	Code            string      `json:"code,omitempty"`
	Header          http.Header `json:"header,omitempty"`
	RetryDate       string      `json:"retryDate,omitempty"`
	Body            string      `json:"body,omitempty"`
	Wait            string      `json:"wait,omitempty"`
	MaxWait         string      `json:"maxWait,omitempty"`
	Sigma           float64     `json:"sigma,omitempty"`
	Bytes           int64       `json:"bytes,omitempty"`
	Framing         Framing     `json:"framing,omitempty"`
	Count           int         `json:"count,omitempty"`
}

// MarshalJSON writes the names of the fields in lower camel case, lengths of
// time as Go durations ("1.5s"), and leaves out zero values.
func (f Fault) MarshalJSON() ([]byte, error) {
	j := faultJSON{
		Kind: f.Kind, Phase: f.Phase,
		Operations: f.Operations, Keys: f.Keys, References: f.References, TrackingNumbers: f.TrackingNumbers, Match: f.Match,
		After: f.After, First: f.First, Every: f.Every, AllBut: f.AllBut,
		Probability: f.Probability, Seed: f.Seed, Ends: f.Ends, Optional: f.Optional, Steps: f.Steps, Loop: f.Loop,
		Status: f.Status, Code: f.Code, Header: f.Header, Body: f.Body, Sigma: f.Sigma,
		Bytes: f.Bytes, Framing: f.Framing, Count: f.Count,
	}
	for text, d := range map[*string]time.Duration{&j.Wait: f.Wait, &j.MaxWait: f.MaxWait, &j.Lasts: f.Lasts} {
		if d != 0 {
			*text = d.String()
		}
	}
	if f.RetryDate != nil {
		j.RetryDate = f.RetryDate.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown member is an error,
// and so is what [Fault.Validate] refuses.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var j faultJSON
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return err
	}
	*f = Fault{
		Kind: j.Kind, Phase: j.Phase,
		Operations: j.Operations, Keys: j.Keys, References: j.References, TrackingNumbers: j.TrackingNumbers, Match: j.Match,
		After: j.After, First: j.First, Every: j.Every, AllBut: j.AllBut,
		Probability: j.Probability, Seed: j.Seed, Ends: j.Ends, Optional: j.Optional, Steps: j.Steps, Loop: j.Loop,
		Status: j.Status, Code: j.Code, Body: j.Body, Sigma: j.Sigma, Bytes: j.Bytes, Framing: j.Framing, Count: j.Count,
	}
	for name, values := range j.Header {
		for _, value := range values {
			*f = f.WithHeader(name, value)
		}
	}
	var retry time.Duration
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{
		{"wait", j.Wait, &f.Wait}, {"maxWait", j.MaxWait, &f.MaxWait}, {"lasts", j.Lasts, &f.Lasts}, {"retryDate", j.RetryDate, &retry},
	} {
		var err error
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return fmt.Errorf("mockcarrier: %s %q is no duration such as 1.5s", d.name, d.text)
		}
	}
	if j.RetryDate != "" {
		f.RetryDate = &retry
	}
	return f.Validate()
}
