package mockcarrier

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is what the journal keeps of a request that reached the carrier.
type Request struct {
	// Seq numbers the requests in the order of their arrival, from 1.
	Seq int `json:"seq"`
	// Operation is the operationId; "" if no operation matched.
	Operation string `json:"operation,omitempty"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Query     string `json:"query,omitempty"`
	// Parameters are those of the path, by their names in the spec.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Header is as it came, but for the credentials.
	Header http.Header `json:"header"`
	// Body has the first 64 KiB of the body, and BodySize the length of all that was read.
	Body     []byte `json:"-"`
	BodySize int    `json:"bodySize"`
	// Key is the idempotency key, where the operation takes one and it is well formed.
	Key string `json:"key,omitempty"`
	// Connection numbers the connections from 1, and Nth the requests on this
	// one. Both are 0 where the server has no [Carrier.ConnContext].
	Connection int `json:"connection,omitempty"`
	Nth        int `json:"nth,omitempty"`
	// ResentOf is the Seq of the request that this one repeats, if the client's
	// HTTP library sent it again by itself, without the caller's knowledge:
	// net/http does when a connection that it has used before ends without an
	// answer, and the request is a GET, or has an idempotency key and a body
	// that can be read again. An attempt of the SDK is another request, and has 0.
	ResentOf int `json:"resentOf,omitempty"`
	// Expected describes the [Expectation] that counted it. Unexpected says that
	// none did, though one should have.
	Expected   string `json:"expected,omitempty"`
	Unexpected bool   `json:"unexpected,omitempty"`
	// RequestID is the X-Request-Id of the answer.
	RequestID string `json:"requestId"`
	// Fault describes the fault that struck, and begins with its [Kind]; ""
	// if none did.
	Fault string `json:"fault,omitempty"`
	// Status is the HTTP status that was sent; 0 while none was, or if none came to be.
	Status int `json:"status,omitempty"`
	// Replayed says that the answer was that of an earlier request with the same key.
	Replayed bool `json:"replayed,omitempty"`
	// Answer has the first 4 KiB of the answer's body, if it was an error.
	Answer []byte `json:"-"`
	// At is when it came, on the carrier's clock.
	At time.Time `json:"at"`
	// Duration is how long the carrier had it; 0 while it does.
	Duration time.Duration `json:"-"`
}

// MarshalJSON writes the bodies as text and the duration as a Go duration.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	return json.Marshal(struct {
		plain
		Body     string `json:"body,omitempty"`
		Answer   string `json:"answer,omitempty"`
		Duration string `json:"duration"`
	}{plain(r), string(r.Body), string(r.Answer), r.Duration.String()})
}

const (
	journalBodyLimit   = 64 << 10
	journalAnswerLimit = 4 << 10
)

// credentials are the headers that are kept without their value, in canonical
// form.
var credentials = []string{apiKeyHeader, "Authorization", "Proxy-Authorization", "Cookie"}

const redacted = "[redacted]"

// journal keeps the newest requests.
type journal struct {
	limit int

	mu       sync.Mutex
	requests []*Request
	seen     int
	orphans  []orphan // requests whose connection was cut, the newest last
}

// begin notes a request. The entry is changed through update only.
func (j *journal) begin(r Request) *Request {
	header := r.Header.Clone()
	for _, name := range credentials {
		if _, ok := header[name]; ok {
			header[name] = []string{redacted}
		}
	}
	r.Header = header
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen++
	r.Seq = j.seen
	if len(j.requests) == j.limit {
		// Half are dropped at once, so that this is rare.
		j.requests = slices.Delete(j.requests, 0, (j.limit+1)/2)
	}
	entry := &r
	j.requests = append(j.requests, entry)
	return entry
}

func (j *journal) update(entry *Request, change func(*Request)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(entry)
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests, j.seen, j.orphans = nil, 0, nil
}

// list returns copies. What they point at is not changed any more.
func (j *journal) list() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]Request, len(j.requests))
	for i, r := range j.requests {
		list[i] = *r
		list[i].Header = r.Header.Clone()
		list[i].Parameters = maps.Clone(r.Parameters)
		list[i].Body = slices.Clone(r.Body)
		list[i].Answer = slices.Clone(r.Answer)
	}
	return list
}

func (j *journal) copyOf(entry *Request) Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *entry
}
