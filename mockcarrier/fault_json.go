package mockcarrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// faultJSON is a Fault as the admin API has it. Waits are Go durations: "1.5s".
type faultJSON struct {
	Kind            Kind        `json:"kind"`
	Phase           Phase       `json:"phase,omitempty"`
	Operations      []string    `json:"operations,omitempty"`
	Keys            []string    `json:"keys,omitempty"`
	References      []string    `json:"references,omitempty"`
	TrackingNumbers []string    `json:"trackingNumbers,omitempty"`
	After           int         `json:"after,omitempty"`
	First           int         `json:"first,omitempty"`
	Every           int         `json:"every,omitempty"`
	AllBut          int         `json:"allBut,omitempty"`
	Probability     *float64    `json:"probability,omitempty"`
	Seed            uint64      `json:"seed,omitempty"`
	Optional        bool        `json:"optional,omitempty"`
	Status          int         `json:"status,omitempty"`
	Header          http.Header `json:"header,omitempty"`
	Body            string      `json:"body,omitempty"`
	Wait            string      `json:"wait,omitempty"`
	Bytes           int64       `json:"bytes,omitempty"`
	Framing         Framing     `json:"framing,omitempty"`
	Count           int         `json:"count,omitempty"`
}

// MarshalJSON writes the names of the fields in lower camel case, Wait as a Go
// duration, and leaves out zero values.
func (f Fault) MarshalJSON() ([]byte, error) {
	j := faultJSON{
		Kind: f.Kind, Phase: f.Phase,
		Operations: f.Operations, Keys: f.Keys, References: f.References, TrackingNumbers: f.TrackingNumbers,
		After: f.After, First: f.First, Every: f.Every, AllBut: f.AllBut,
		Probability: f.Probability, Seed: f.Seed, Optional: f.Optional,
		Status: f.Status, Header: f.Header, Body: f.Body, Bytes: f.Bytes, Framing: f.Framing, Count: f.Count,
	}
	if f.Wait != 0 {
		j.Wait = f.Wait.String()
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
		Operations: j.Operations, Keys: j.Keys, References: j.References, TrackingNumbers: j.TrackingNumbers,
		After: j.After, First: j.First, Every: j.Every, AllBut: j.AllBut,
		Probability: j.Probability, Seed: j.Seed, Optional: j.Optional,
		Status: j.Status, Body: j.Body, Bytes: j.Bytes, Framing: j.Framing, Count: j.Count,
	}
	for name, values := range j.Header {
		for _, value := range values {
			*f = f.WithHeader(name, value)
		}
	}
	if j.Wait != "" {
		wait, err := time.ParseDuration(j.Wait)
		if err != nil {
			return fmt.Errorf("mockcarrier: wait %q is no duration such as 1.5s", j.Wait)
		}
		f.Wait = wait
	}
	return f.Validate()
}
