package resilience_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// named is what every case of a data file has.
type named interface{ caseName() string }

// Name is the name of a case: what its test is called.
type Name struct {
	Name string `json:"name"`
	Note string `json:"note"` // why a row is as it is
}

func (n Name) caseName() string { return n.Name }

// casesOf reads a data file of testdata: a list of cases with a name each.
func casesOf[T named](t testing.TB, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var cases []T
	if err := dec.Decode(&cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no cases", file)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if n := c.caseName(); n == "" || seen[n] {
			t.Fatalf("%s: the name %q is empty or given twice", file, n)
		}
		seen[c.caseName()] = true
	}
	return cases
}

// span is a duration in a data file: "1.5s", or "max" for the longest there is.
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*s = math.MaxInt64
		return nil
	}
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

func (s span) d() time.Duration { return time.Duration(s) }

// sentinels are all of the package's, by name.
var sentinels = map[string]error{
	"ErrInvalidRequest":    resilience.ErrInvalidRequest,
	"ErrUnauthorized":      resilience.ErrUnauthorized,
	"ErrForbidden":         resilience.ErrForbidden,
	"ErrNotFound":          resilience.ErrNotFound,
	"ErrConflict":          resilience.ErrConflict,
	"ErrInProgress":        resilience.ErrInProgress,
	"ErrKeyReused":         resilience.ErrKeyReused,
	"ErrRateLimited":       resilience.ErrRateLimited,
	"ErrUnavailable":       resilience.ErrUnavailable,
	"ErrTimeout":           resilience.ErrTimeout,
	"ErrCircuitOpen":       resilience.ErrCircuitOpen,
	"ErrBudgetExhausted":   resilience.ErrBudgetExhausted,
	"ErrOutcomeUnknown":    resilience.ErrOutcomeUnknown,
	"ErrResponseTooLarge":  resilience.ErrResponseTooLarge,
	"ErrMalformedResponse": resilience.ErrMalformedResponse,
	"ErrBlocked":           resilience.ErrBlocked,
	"ErrNotReady":          resilience.ErrNotReady,
	"ErrNotModified":       resilience.ErrNotModified,
	"context.Canceled":     context.Canceled,
	"DeadlineExceeded":     context.DeadlineExceeded,
}

// isExactly checks that err Is each of the named sentinels and none of the others.
func isExactly(t testing.TB, err error, names ...string) {
	t.Helper()
	for _, n := range names {
		if sentinels[n] == nil {
			t.Fatalf("there is no sentinel %q", n)
		}
	}
	for n, s := range sentinels {
		if got, want := errors.Is(err, s), slices.Contains(names, n); got != want {
			t.Errorf("errors.Is(err, %s) = %v, want %v: %v", n, got, want, err)
		}
	}
}

// errorOf returns the *Error that every failed call must be.
func errorOf(t testing.TB, err error) *resilience.Error {
	t.Helper()
	var e *resilience.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want an *Error", err, err)
	}
	return e
}

// act is what a stage does with one request.
type act struct {
	Status int
	Header http.Header
	Body   string
	Err    error

	Wait       time.Duration // before the headers; ends early with the request's context
	BodyErr    error         // in place of the body's end
	BodyStall  bool          // the body does not end until the request's context does
	Untyped    bool          // no Content-Type of its own accord
	Trace      string        // hooks of net/http that are called: "asked", "got"
	LeaveBody  bool          // the request's body is not read (it is closed)
	NoResponse bool          // neither an answer nor an error

	CloseDelimited bool // the body's end is the connection's
}

// seen is a request as it arrived.
type seen struct {
	Method, URL, Body string
	Header            http.Header
	At                time.Time
	Deadline          time.Time
	Length            int64
	GetBody           bool
}

// stage is a RoundTripper that plays acts, one for each request, and the last
// one for ever. It obeys the request's context, for the body as well.
type stage struct {
	mu   sync.Mutex
	acts []act
	got  []seen
}

func playing(acts ...act) *stage { return &stage{acts: acts} }

func (s *stage) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	deadline, _ := ctx.Deadline()
	r := seen{
		Method: req.Method, URL: req.URL.String(), Header: req.Header.Clone(), At: time.Now(),
		Deadline: deadline, Length: req.ContentLength, GetBody: req.GetBody != nil,
	}
	s.mu.Lock()
	a := s.acts[min(len(s.got), len(s.acts)-1)]
	s.got = append(s.got, r)
	n := len(s.got) - 1
	s.mu.Unlock()
	if req.Body != nil {
		defer req.Body.Close()
		if !a.LeaveBody {
			b, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, fmt.Errorf("sending the body: %w", err)
			}
			s.mu.Lock()
			s.got[n].Body = string(b)
			s.mu.Unlock()
		}
	}
	traced(ctx, a.Trace)
	if a.Wait > 0 {
		t := time.NewTimer(a.Wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if a.Err != nil {
		return nil, a.Err
	}
	if a.NoResponse {
		return nil, nil
	}
	return a.response(req), nil
}

func (a act) response(req *http.Request) *http.Response {
	h := a.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h["Content-Type"] == nil && !a.Untyped {
		h.Set("Content-Type", "application/json")
		if a.Status >= 400 {
			h.Set("Content-Type", "application/problem+json")
		}
	}
	length := int64(len(a.Body))
	if a.BodyErr != nil || a.BodyStall || a.CloseDelimited {
		length = -1
	}
	return &http.Response{
		StatusCode: a.Status, Status: fmt.Sprint(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, ContentLength: length, Request: req,
		Body: &actBody{Reader: strings.NewReader(a.Body), a: a, ctx: req.Context()},
	}
}

type actBody struct {
	io.Reader
	a   act
	ctx context.Context
}

func (b *actBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	if b.a.BodyStall {
		<-b.ctx.Done()
		return n, b.ctx.Err()
	}
	if b.a.BodyErr != nil {
		return n, b.a.BodyErr
	}
	return n, io.EOF
}

func (b *actBody) Close() error { return nil }

// requests returns what has arrived so far.
func (s *stage) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *stage) count() int { return len(s.requests()) }

// What most tests talk to: an API of one operation for each safety.

const origin = "https://api.carrier.example"

var okJSON = []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}}

// safeties are the four, in the order of the tables.
var safeties = []string{"read", "idempotent", "keyed", "unsafe"}

// opOf is an operation of a safety.
func opOf(safety string) *resilience.Operation {
	switch safety {
	case "read":
		return &resilience.Operation{ID: "getThing", Method: "GET", Path: "/things/{id}", Success: okJSON}
	case "idempotent":
		return &resilience.Operation{ID: "putThing", Method: "PUT", Path: "/things/{id}", Success: okJSON}
	case "keyed":
		return &resilience.Operation{ID: "makeThing", Method: "POST", Path: "/things", KeyHeader: "Idempotency-Key", Success: okJSON}
	case "unsafe":
		return &resilience.Operation{ID: "pokeThing", Method: "POST", Path: "/things/{id}/poke", Success: okJSON}
	}
	panic("no safety " + safety)
}

// requestOf is a request for one of these operations.
func requestOf(op *resilience.Operation) *resilience.Request {
	r := &resilience.Request{Path: strings.ReplaceAll(op.Path, "{id}", "a1")}
	if op.Method != "GET" {
		r.Body, r.ContentType = []byte(`{"n":1}`), "application/json"
	}
	return r
}

// bodyKey is where a context carries another body for the requests.
type bodyKey struct{}

func requestFor(ctx context.Context, op *resilience.Operation) *resilience.Request {
	r := requestOf(op)
	if body, ok := ctx.Value(bodyKey{}).([]byte); ok {
		r.Body, r.ContentType = body, "application/octet-stream"
	}
	return r
}

// httpRequestOf is the same for Do.
func httpRequestOf(ctx context.Context, base string, op *resilience.Operation) *http.Request {
	r := requestFor(ctx, op)
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, op.Method, base+r.Path, body)
	if err != nil {
		panic(err)
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	return req
}

// doerFor makes a Doer that is closed at the end of the test.
func doerFor(t testing.TB, opts ...resilience.Option) *resilience.Doer {
	t.Helper()
	d, err := resilience.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// onStage is a Doer whose requests go to s. Waits have no jitter, and neither
// budget nor breaker get in the way, unless an option says otherwise.
func onStage(t testing.TB, s *stage, opts ...resilience.Option) *resilience.Doer {
	t.Helper()
	return doerFor(t, append([]resilience.Option{
		resilience.WithBaseURL(origin + "/v1"), resilience.WithTransport(s),
		resilience.WithoutBreaker(), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
		resilience.WithRetry(resilience.RetryPolicy{Jitter: resilience.NoJitter}),
	}, opts...)...)
}

func callThing(ctx context.Context, d *resilience.Doer, op *resilience.Operation, opts ...resilience.CallOption) error {
	_, err := resilience.CallJSON[map[string]any](ctx, d, op, requestOf(op), opts...)
	return err
}

// traced calls the hooks that net/http's transport would have called: of a
// connection that was asked for, and of one that was got.
func traced(ctx context.Context, what string) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil || what == "" {
		return
	}
	trace.GetConn("api.carrier.example:443")
	if what == "got" {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}
