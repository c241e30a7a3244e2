package resilience_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// memoryCarrier is a carrier without a network. Like net/http's transport it
// reads and closes the request's body, and ends with the request's context.
type memoryCarrier struct {
	answer func(n int, r *http.Request) (*http.Response, error) // n is 1 for the first request

	mu      sync.Mutex
	arrived []time.Time
}

func (m *memoryCarrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, err := io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	m.mu.Lock()
	m.arrived = append(m.arrived, time.Now())
	n := len(m.arrived)
	m.mu.Unlock()
	resp, err := m.answer(n, r)
	if err == nil && r.Context().Err() != nil {
		_ = resp.Body.Close()
		return nil, context.Cause(r.Context())
	}
	return resp, err
}

// requests is how many requests arrived.
func (m *memoryCarrier) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.arrived)
}

// arrivals is when they did, from start on.
func (m *memoryCarrier) arrivals(start time.Time) []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var since []time.Duration
	for _, at := range m.arrived {
		since = append(since, at.Sub(start))
	}
	return since
}

// always answers every request alike.
func always(status int, body string, header ...string) *memoryCarrier {
	return &memoryCarrier{answer: func(int, *http.Request) (*http.Response, error) {
		return newAnswer(status, body, header...), nil
	}}
}

// newAnswer is an answer in JSON, unless header (name, value, …) says otherwise.
func newAnswer(status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Header: h, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// hang waits for the end of the request's context, as a carrier that never answers.
func hang(r *http.Request) error {
	<-r.Context().Done()
	return context.Cause(r.Context())
}

// pause waits, but not beyond the request's context.
func pause(r *http.Request, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
}

// haltingBody gives what it has, and then nothing until ctx ends.
type haltingBody struct {
	io.Reader
	ctx context.Context
}

func (b haltingBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, context.Cause(b.ctx)
}

func (haltingBody) Close() error { return nil }

// cutBody gives what it has, and then err.
type cutBody struct {
	io.Reader
	err error
}

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func (cutBody) Close() error { return nil }

const memoryURL = "https://api.carrier.example/v1"

var (
	readOp = &resilience.Operation{
		ID: "getTracking", Method: "GET", Path: "/tracking/{trackingNumber}", Group: "tracking",
		Success: []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}},
	}
	keyedOp = &resilience.Operation{
		ID: "createShipment", Method: "POST", Path: "/shipments", Group: "shipments", KeyHeader: "Idempotency-Key",
		Success: []resilience.Success{{Status: 201, ContentTypes: []string{"application/json"}}},
	}
	unsafeOp = &resilience.Operation{
		ID: "notify", Method: "POST", Path: "/notices", Group: "notices",
		Success: []resilience.Success{{Status: 200, ContentTypes: []string{"application/json"}}},
	}
	streamOp = &resilience.Operation{
		ID: "getLabel", Method: "GET", Path: "/shipments/{shipmentId}/label", Group: "documents", Stream: true,
		Success: []resilience.Success{
			{Status: 200, ContentTypes: []string{"application/pdf"}},
			{Status: 202, ContentTypes: []string{"application/json"}, Kind: resilience.NotReadyAnswer},
		},
	}
	allOps = resilience.WithOperations(readOp, keyedOp, unsafeOp, streamOp)
)

// connect returns a client of the carrier at rt.
func connect(t *testing.T, rt http.RoundTripper, opts ...resilience.Option) *resilience.Doer {
	t.Helper()
	return connectTo(t, memoryURL, append([]resilience.Option{resilience.WithTransport(rt)}, opts...)...)
}

// connectTo returns a client with a transport of its own.
func connectTo(t *testing.T, baseURL string, opts ...resilience.Option) *resilience.Doer {
	t.Helper()
	d, err := resilience.New(append([]resilience.Option{resilience.WithBaseURL(baseURL), allOps}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

type document map[string]any

// track makes a call that reads.
func track(ctx context.Context, d *resilience.Doer, opts ...resilience.CallOption) (document, error) {
	v, err := resilience.CallJSON[document](ctx, d, readOp, &resilience.Request{Path: "/tracking/BK1001TR"}, opts...)
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// ship makes a call that acts, deduplicated by its key.
func ship(ctx context.Context, d *resilience.Doer, body string, opts ...resilience.CallOption) (document, error) {
	v, err := resilience.CallJSON[document](ctx, d, keyedOp,
		&resilience.Request{Path: "/shipments", Body: []byte(body), ContentType: "application/json"}, opts...)
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// label makes a call whose answer is a stream.
func label(ctx context.Context, d *resilience.Doer, opts ...resilience.CallOption) (*resilience.Stream, error) {
	return resilience.CallStream(ctx, d, streamOp, &resilience.Request{Path: "/shipments/s1/label"}, opts...)
}

// failureOf returns err as an *Error.
func failureOf(t *testing.T, err error) *resilience.Error {
	t.Helper()
	var e *resilience.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *Error", err, err)
	}
	return e
}

// is fails the test unless err Is each of the targets.
func is(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%v: is not %q", err, target)
		}
	}
}

// isNot fails the test if err Is one of the targets.
func isNot(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("%v: is %q", err, target)
		}
	}
}

// patternBytes returns n bytes of which no two stretches look alike.
func patternBytes(n int) []byte {
	b := make([]byte, 0, n+8)
	for x := uint64(1); len(b) < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24), byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56))
	}
	return bytes.Clone(b[:n])
}

// newQuietLog is for servers whose handlers fail on purpose.
func newQuietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// connCounter counts a server's connections.
type connCounter struct {
	mu    sync.Mutex
	open  map[net.Conn]bool
	total int
	most  int // open at the same time
}

func newConnCounter() *connCounter { return &connCounter{open: map[net.Conn]bool{}} }

func (c *connCounter) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
		c.total++
		c.most = max(c.most, len(c.open))
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// opened is how many connections there have been.
func (c *connCounter) opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// wait waits until no more than n connections are open, and returns how many are.
func (c *connCounter) wait(n int) int {
	for pause := time.Millisecond; ; pause *= 2 {
		c.mu.Lock()
		open := len(c.open)
		c.mu.Unlock()
		if open <= n || pause > 2*time.Second {
			return open
		}
		time.Sleep(pause)
	}
}
