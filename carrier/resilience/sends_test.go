package resilience_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// counted are the requests that a raw server has read in full.
type counted struct {
	mu   sync.Mutex
	seen []seen
}

func (c *counted) add(r *http.Request) int {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, seen{Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: string(body), Length: r.ContentLength})
	return len(c.seen)
}

func (c *counted) all() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

// dropsReused answers every request but the second on its first connection:
// that one it reads in full, and closes.
func (c *counted) dropsReused(n int, conn *net.TCPConn) {
	r := bufio.NewReader(conn)
	for i := 1; ; i++ {
		req := readRequest(r)
		if req == nil {
			return
		}
		c.add(req)
		if n == 1 && i == 2 {
			return
		}
		_, _ = io.WriteString(conn, ok("Content-Length: 2")+"{}")
	}
}

// resend is an operation whose request meets a connection that breaks, and what
// must become of it: how often it arrives, and whose doing a second time is.
type resend struct {
	name     string
	op       resilience.Operation
	body     string
	key      string
	attempts int
	sends    int
	unknown  bool
}

var resends = []resend{
	{name: "a GET that reads", op: resilience.Operation{Method: "GET"}, attempts: 1, sends: 2},
	{name: "a GET that acts", op: resilience.Operation{Method: "GET", Safety: resilience.SafetyUnsafe}, attempts: 1, sends: 1, unknown: true},
	{name: "a HEAD that acts", op: resilience.Operation{Method: "HEAD", Safety: resilience.SafetyUnsafe}, attempts: 1, sends: 1, unknown: true},
	{name: "a GET that is keyed", op: resilience.Operation{Method: "GET", Safety: resilience.SafetyKeyed, KeyHeader: "Idempotency-Key"}, key: "Idempotency-Key", attempts: 1, sends: 2},
	{name: "a POST that reads", op: resilience.Operation{Method: "POST", Safety: resilience.SafetyRead}, body: "{}", attempts: 2, sends: 2},
	{name: "a PUT", op: resilience.Operation{Method: "PUT"}, body: "{}", attempts: 2, sends: 2},
	{name: "a DELETE", op: resilience.Operation{Method: "DELETE"}, attempts: 2, sends: 2},
	{name: "a DELETE that is unsafe", op: resilience.Operation{Method: "DELETE", Safety: resilience.SafetyUnsafe}, attempts: 1, sends: 1, unknown: true},
	{name: "a keyed POST", op: resilience.Operation{Method: "POST", KeyHeader: "idempotency-key"}, body: `{"a":1}`, key: "Idempotency-Key", attempts: 1, sends: 2},
	{name: "a keyed POST without a body", op: resilience.Operation{Method: "POST", KeyHeader: "X-Idempotency-Key"}, key: "X-Idempotency-Key", attempts: 1, sends: 2},
	{name: "a POST with another header for its key", op: resilience.Operation{Method: "POST", KeyHeader: "X-Carrier-Once"}, body: `{"a":1}`, key: "X-Carrier-Once", attempts: 2, sends: 2},
	{name: "a POST", op: resilience.Operation{Method: "POST"}, body: `{"a":1}`, attempts: 1, sends: 1, unknown: true},
	{name: "a POST without a body", op: resilience.Operation{Method: "POST"}, attempts: 1, sends: 1, unknown: true},
	{name: "a POST for a stream", op: resilience.Operation{Method: "POST", Stream: true}, attempts: 1, sends: 1, unknown: true},
	{name: "a PATCH", op: resilience.Operation{Method: "PATCH"}, body: `{"a":1}`, attempts: 1, sends: 1, unknown: true},
	{name: "a POST that takes a key and is not keyed", op: resilience.Operation{Method: "POST", Safety: resilience.SafetyUnsafe, KeyHeader: "Idempotency-Key"}, body: `{"a":1}`, attempts: 1, sends: 1, unknown: true},
	{name: "a POST that is keyed and has no header", op: resilience.Operation{Method: "POST", Safety: resilience.SafetyKeyed}, body: `{"a":1}`, attempts: 1, sends: 1, unknown: true},
}

// send makes the call in one of the ways.
func (r resend) send(ctx context.Context, way string, d *resilience.Doer, base string, options ...resilience.CallOption) error {
	op := r.op
	op.ID, op.Path = r.name, "/once"
	if way == "Call" {
		req := &resilience.Request{Path: "/once"}
		if r.body != "" {
			req.Body, req.ContentType = []byte(r.body), "application/json"
		}
		return d.Call(ctx, &op, req, nil, options...)
	}
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(resilience.WithCall(ctx, options...), op.Method, base+"/once", body)
	if err != nil {
		return err
	}
	resp, err := d.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func (r resend) doer(t *testing.T, base string, options ...resilience.Option) *resilience.Doer {
	t.Helper()
	op := r.op
	op.ID, op.Path = r.name, "/once"
	return doerFor(t, append(options, resilience.WithBaseURL(base), resilience.WithOperations(&op),
		resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))...)
}

func (r resend) check(t *testing.T, err error, info resilience.CallInfo, got []seen) {
	t.Helper()
	if len(got) != r.sends || info.Attempts != r.attempts || info.Sends != r.sends {
		t.Errorf("it arrived %d times, in %d attempts and %d sends by CallInfo; want %d, in %d attempts", len(got), info.Attempts, info.Sends, r.sends, r.attempts)
	}
	if r.unknown {
		isExactly(t, err, "ErrOutcomeUnknown", "ErrUnavailable")
	} else if err != nil {
		t.Error(err)
	}
	for _, g := range got {
		keys := 0
		for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Carrier-Once"} {
			keys += len(g.Header[name])
		}
		if g.Body != r.body || g.Method != r.op.Method || len(g.Header[http.CanonicalHeaderKey("Transfer-Encoding")]) != 0 {
			t.Errorf("%s %q arrived, want %s %q", g.Method, g.Body, r.op.Method, r.body)
		}
		if want := map[bool]int{true: 1}[r.key != ""]; keys != want || r.key != "" && g.Header.Get(r.key) != info.IdempotencyKey {
			t.Errorf("keys in %v, want %q once, as %s", g.Header, info.IdempotencyKey, r.key)
		}
	}
}

// A reused connection that breaks after the request was read: net/http sends
// some requests again by itself. That is counted, and never done with those
// whose repetition is not safe.
func TestResendsOnReusedConnection(t *testing.T) {
	for _, r := range resends {
		for way := range ways {
			t.Run(r.name+"/"+way, func(t *testing.T) {
				var server counted
				base := "http://" + rawServer(t, server.dropsReused)
				d := r.doer(t, base)
				if err := d.Call(t.Context(), &resilience.Operation{ID: "warm", Method: "GET", Path: "/warm"}, &resilience.Request{Path: "/warm"}, nil); err != nil {
					t.Fatal(err)
				}
				var info resilience.CallInfo
				err := r.send(t.Context(), way, d, base, resilience.WithCallInfo(&info))
				r.check(t, err, info, server.all()[1:])
			})
		}
	}
}

// An idle connection that the server closed is noticed before it is used, or by
// the first byte that cannot be written: a new one is dialled, for any operation.
func TestIdleConnectionClosedByServer(t *testing.T) {
	for _, safety := range safeties {
		t.Run(safety, func(t *testing.T) {
			var server counted
			base := "http://" + rawServer(t, func(n int, c *net.TCPConn) {
				if req := readRequest(bufio.NewReader(c)); req != nil {
					server.add(req)
					_, _ = io.WriteString(c, ok("Content-Length: 2")+"{}")
				}
			})
			closed := make(chan struct{}, 3)
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &notedConn{Conn: conn, closed: closed}, err
			}}
			defer transport.CloseIdleConnections()
			d := doerFor(t, resilience.WithBaseURL(base), resilience.WithTransport(transport))
			for i := range 3 {
				var info resilience.CallInfo
				if err := callThing(t.Context(), d, opOf(safety), resilience.WithCallInfo(&info)); err != nil || info.Attempts != 1 {
					t.Errorf("call %d: %v after %d attempts", i, err, info.Attempts)
				}
				<-closed // the end of the connection was seen
			}
			if n := len(server.all()); n != 3 {
				t.Errorf("%d requests arrived, want 3", n)
			}
		})
	}
}

// notedConn tells of its close.
type notedConn struct {
	net.Conn
	closed chan<- struct{}
	once   sync.Once
}

func (c *notedConn) Close() error {
	c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

// Nor is a request whose answer would be a stream.
func TestStreamIsNotResentOnReusedConnection(t *testing.T) {
	for name, test := range map[string]struct {
		safety resilience.Safety
		sends  int
	}{"unsafe": {resilience.SafetyUnsafe, 1}, "keyed": {resilience.SafetyKeyed, 2}} {
		t.Run(name, func(t *testing.T) {
			var server counted
			base := "http://" + rawServer(t, server.dropsReused)
			d := doerFor(t, resilience.WithBaseURL(base), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))
			if err := d.Call(t.Context(), &resilience.Operation{ID: "warm", Method: "GET", Path: "/warm"}, &resilience.Request{Path: "/warm"}, nil); err != nil {
				t.Fatal(err)
			}
			op := &resilience.Operation{ID: "print", Method: "POST", Path: "/once", Safety: test.safety, Stream: true}
			if test.safety == resilience.SafetyKeyed {
				op.KeyHeader = "Idempotency-Key"
			}
			var info resilience.CallInfo
			s, err := resilience.CallStream(t.Context(), d, op, &resilience.Request{Path: "/once"}, resilience.WithCallInfo(&info))
			if err == nil {
				_ = s.Close()
			}
			if n := len(server.all()) - 1; n != test.sends || info.Sends != test.sends || info.Attempts != 1 {
				t.Errorf("it arrived %d times, in %d attempts and %d sends by CallInfo; want %d", n, info.Attempts, info.Sends, test.sends)
			}
			if test.safety == resilience.SafetyUnsafe {
				isExactly(t, err, "ErrOutcomeUnknown", "ErrUnavailable")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
