package resilience_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// rawServer hands each connection that it accepts to serve, with its number
// from 1 on, and closes it afterwards.
func rawServer(t testing.TB, serve func(n int, c *net.TCPConn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				serve(n, c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// serveRaw is for servers that read a request and then say what they say.
func serveRaw(say string, then func(c *net.TCPConn)) func(int, *net.TCPConn) {
	return func(_ int, c *net.TCPConn) {
		if readRequest(bufio.NewReader(c)) != nil {
			_, _ = io.WriteString(c, say)
			then(c)
		}
	}
}

// readRequest reads a request with its body; nil at the connection's end.
func readRequest(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return req
}

// What a server can do with a connection in the end.
func closes(*net.TCPConn) {}

func resets(c *net.TCPConn) { _ = c.SetLinger(0) } // and a close follows

func waits(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1)) }

// network is one fault: on a real socket, and as a RoundTripper shows it.
type network struct {
	serve  func(n int, c *net.TCPConn)
	scheme string // default http
	adjust func(*http.Transport)
	trace  *httptrace.ClientTrace // of the caller's
	limit  time.Duration          // of an attempt, where that is what ends it; default limitOfAttempt

	act act
}

const limitOfAttempt = 100 * time.Millisecond

func networkFaults(t *testing.T) map[string]network {
	t.Helper()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	dialing := func(err error) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, err }
		}
	}
	noHost := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.carrier.example", IsNotFound: true}}
	noServer := &net.DNSError{Err: "server misbehaving", Name: "api.carrier.example", IsTemporary: true}
	limited := func(tr *http.Transport) { tr.TLSHandshakeTimeout = 20 * time.Millisecond }
	trusting := func(name string) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.TLSClientConfig = &tls.Config{RootCAs: certificates(t), ServerName: name}
		}
	}
	gone, read := make(chan struct{}, 2), make(chan struct{}, 2)
	html := http.Header{"Content-Type": {"text/html"}}

	return map[string]network{
		"no such host":      {adjust: dialing(noHost), act: act{Trace: "asked", Err: noHost}},
		"name server fails": {adjust: dialing(noServer), act: act{Trace: "asked", Err: noServer}},
		"dial refused":      {adjust: dialing(refused), act: act{Trace: "asked", Err: refused}},
		"dial time limit of the transport": {
			adjust: dialing(&net.OpError{Op: "dial", Net: "tcp", Err: timeLimit{}}),
			act:    act{Trace: "asked", Err: timeLimit{}},
		},
		"dial hangs": {
			adjust: func(tr *http.Transport) {
				tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			},
			limit: 20 * time.Millisecond, act: act{Trace: "asked", Wait: time.Hour},
		},
		"TLS to plaintext": {
			scheme: "https", serve: func(_ int, c *net.TCPConn) {
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			},
			act: act{Trace: "asked", Err: errors.New("http: server gave HTTP response to HTTPS client")},
		},
		"TLS to another protocol": {
			scheme: "https", serve: func(_ int, c *net.TCPConn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n") },
			act: act{Trace: "asked", Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}},
		},
		"untrusted certificate": {
			scheme: "https", serve: handshakes(t),
			act: act{Trace: "asked", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		},
		"certificate of another name": {
			scheme: "https", serve: handshakes(t), adjust: trusting("other.example"),
			act: act{Trace: "asked", Err: x509.HostnameError{Certificate: new(x509.Certificate), Host: "other.example"}},
		},
		"TLS handshake cut": {
			scheme: "https", serve: func(_ int, c *net.TCPConn) { _, _ = c.Read(make([]byte, 4096)) },
			act: act{Trace: "asked", Err: io.EOF},
		},
		"TLS handshake time limit": {
			scheme: "https", serve: func(_ int, c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }, adjust: limited,
			act: act{Trace: "asked", Err: timeLimit{}},
		},
		"TLS handshake hangs": {
			scheme: "https", serve: func(_ int, c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) },
			limit: 20 * time.Millisecond, act: act{Trace: "asked", Wait: time.Hour},
		},
		"fresh connection reset before a byte": {
			// The request is held back until the reset has arrived.
			serve: func(_ int, c *net.TCPConn) {
				_ = c.SetLinger(0)
				_ = c.Close()
				gone <- struct{}{}
			},
			trace: whenGot(func() {
				<-gone
				time.Sleep(10 * time.Millisecond) // the kernel may deliver it late
			}),
			act: act{Trace: "got", Err: reset},
		},
		"request read, then closed":        {serve: serveRaw("", closes), act: act{Trace: "got", Err: io.EOF}},
		"request read, then reset":         {serve: serveRaw("", resets), act: act{Trace: "got", Err: reset}},
		"reset in the middle of an upload": {serve: readsPart("", resets), act: act{Trace: "got", Err: reset}},
		"no answer within the attempt":     {serve: serveRaw("", waits), act: act{Trace: "got", Wait: time.Hour}},
		"header time limit of the transport": {
			serve: serveRaw("", waits), adjust: func(tr *http.Transport) { tr.ResponseHeaderTimeout = 20 * time.Millisecond },
			act: act{Trace: "got", Err: timeLimit{}},
		},
		"malformed status line": {serve: serveRaw("SSH-2.0-OpenSSH_9.9\r\n", closes), act: act{Trace: "got", Err: errors.New(`malformed HTTP response "SSH-2.0-OpenSSH_9.9"`)}},
		"cut within the headers": {
			serve: serveRaw("HTTP/1.1 200 OK\r\nContent-Ty", closes), act: act{Trace: "got", Err: io.ErrUnexpectedEOF},
		},
		"103, then closed": {serve: serveRaw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", closes), act: act{Trace: "got", Err: io.ErrUnexpectedEOF}},
		"200, cut before Content-Length": {
			serve: serveRaw(ok("Content-Length: 100")+`{"a":`, closes), act: act{Status: 200, Body: `{"a":`, BodyErr: io.ErrUnexpectedEOF},
		},
		"200, cut between chunks": {
			serve: serveRaw(ok("Transfer-Encoding: chunked")+"5\r\n{\"a\":\r\n", closes), act: act{Status: 200, Body: `{"a":`, BodyErr: io.ErrUnexpectedEOF},
		},
		"200, cut, its end being the connection's": {
			serve: serveRaw(ok("Connection: close")+`{"a":`, closes), act: act{Status: 200, Body: `{"a":`, CloseDelimited: true},
		},
		"200, reset in the body": {
			// The reset must not take away what the client has not read yet.
			serve: serveRaw(ok("Content-Length: 100")+`{"a":`, func(c *net.TCPConn) { <-read; resets(c) }),
			trace: whenAnswered(func() { read <- struct{}{} }),
			act:   act{Status: 200, Body: `{"a":`, BodyErr: reset},
		},
		"200, stalled body": {
			serve: serveRaw(ok("Content-Length: 100")+`{"a":`, waits), act: act{Status: 200, Body: `{"a":`, BodyStall: true},
		},
		"200 in HTML, cut": {
			serve: serveRaw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<html>", closes),
			act:   act{Status: 200, Header: html, Body: "<html>", BodyErr: io.ErrUnexpectedEOF},
		},
		"503, cut body": {
			serve: serveRaw("HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nso", closes), act: act{Status: 503, Body: "so", BodyErr: io.ErrUnexpectedEOF},
		},
		"404, stalled body": {
			serve: serveRaw("HTTP/1.1 404 No\r\nContent-Length: 100\r\n\r\nso", waits), act: act{Status: 404, Body: "so", BodyStall: true},
		},
		"413 while the upload is under way": {
			serve: readsPart("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", func(c *net.TCPConn) {
				_ = c.CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			}),
			act: act{Status: 413, LeaveBody: true},
		},
	}
}

func ok(header string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + header + "\r\n\r\n"
}

// readsPart reads the beginning of a request only.
func readsPart(say string, then func(*net.TCPConn)) func(int, *net.TCPConn) {
	return func(_ int, c *net.TCPConn) {
		if n, _ := io.ReadFull(c, make([]byte, 64)); n > 0 {
			_, _ = io.WriteString(c, say)
			then(c)
		}
	}
}

// timeLimit is a time limit of the transport's own.
type timeLimit struct{}

func (timeLimit) Error() string   { return "i/o timeout" }
func (timeLimit) Timeout() bool   { return true }
func (timeLimit) Temporary() bool { return true }
func (timeLimit) Is(target error) bool {
	return target == context.DeadlineExceeded // as some of net/http's are
}

// whenGot and whenAnswered run f at these moments of each attempt.
func whenGot(f func()) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { f() }}
}

func whenAnswered(f func()) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotFirstResponseByte: f}
}

var (
	certificateOnce sync.Once
	certificate     tls.Certificate
	authority       *x509.CertPool
)

func certificates(t testing.TB) *x509.CertPool {
	t.Helper()
	certificateOnce.Do(func() {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		certificate = s.TLS.Certificates[0]
		authority = x509.NewCertPool()
		authority.AddCert(s.Certificate())
		s.Close()
	})
	return authority
}

// handshakes goes through a TLS handshake, and no further.
func handshakes(t testing.TB) func(int, *net.TCPConn) {
	certificates(t)
	return func(_ int, c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}})
		_ = s.Handshake()
		_, _ = io.Copy(io.Discard, s)
	}
}

// bigBody is more than the sockets' buffers hold.
var bigBody = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("x"), 8<<20) })

type networkCase struct {
	Name
	Status int `json:"status"` // of the answer, where there was one
	verdictData
	Retry       []string `json:"retry"`
	Timeout     bool     `json:"timeout"`     // Error.Timeout is the attempt's
	Transport   string   `json:"transport"`   // the outcome with a RoundTripper that counts no bytes, if another
	DecoderOnly bool     `json:"decoderOnly"` // only the decoder sees it: for Do it is a success
	Big         bool     `json:"big"`         // with a body of 8 MiB
	Answers     bool     `json:"answers"`     // a whole answer: Do returns it
}

func (c networkCase) verdict(safety, outcome string) verdictData {
	v := verdictData{Outcome: outcome, Is: c.Is}
	if outcome == "unknown" && safety != "read" {
		v.Is = append(slices.Clone(v.Is), "ErrOutcomeUnknown")
	}
	return v
}

// Every failure that a network can produce, on a real socket and with a
// RoundTripper that shows it, for every safety, through Call and Do.
func TestNetworkFailures(t *testing.T) {
	written := map[string]bool{}
	for name := range networkFaults(t) {
		written[name] = true
	}
	for _, c := range casesOf[networkCase](t, "network.json") {
		if !written[c.Name.Name] {
			t.Fatalf("the fault %q is not written", c.Name.Name)
		}
		delete(written, c.Name.Name)
		for _, safety := range safeties {
			for way := range ways {
				t.Run(strings.Join([]string{c.Name.Name, safety, way, "socket"}, "/"), func(t *testing.T) {
					t.Parallel()
					fault := networkFaults(t)[c.Name.Name]
					base := "http://127.0.0.1:1"
					if fault.serve != nil {
						base = cmp.Or(fault.scheme, "http") + "://" + rawServer(t, fault.serve)
					}
					options := []resilience.Option{}
					if fault.adjust != nil {
						tr := http.DefaultTransport.(*http.Transport).Clone()
						fault.adjust(tr)
						t.Cleanup(tr.CloseIdleConnections)
						options = append(options, resilience.WithTransport(tr))
					}
					testFault(t, c, c.Outcome, safety, way, base, cmp.Or(fault.limit, limitOfAttempt), fault.trace, options...)
				})
				t.Run(strings.Join([]string{c.Name.Name, safety, way, "transport"}, "/"), func(t *testing.T) {
					fault := networkFaults(t)[c.Name.Name]
					synctest.Test(t, func(t *testing.T) {
						testFault(t, c, cmp.Or(c.Transport, c.Outcome), safety, way, origin, limitOfAttempt, nil, resilience.WithTransport(playing(fault.act)))
					})
				})
			}
		}
	}
	for name := range written {
		t.Errorf("the fault %q is in no case", name)
	}
}

func testFault(t *testing.T, c networkCase, outcome, safety, way, base string, limit time.Duration, trace *httptrace.ClientTrace, options ...resilience.Option) {
	op := opOf(safety)
	if !c.Timeout {
		limit = time.Minute
	}
	d := doerFor(t, append(options,
		resilience.WithBaseURL(base), resilience.WithOperations(op), resilience.WithAttemptTimeout(limit), resilience.WithTimeout(2*time.Minute),
		resilience.WithoutBreaker(), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}),
		resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 2, BaseDelay: -1}))...)
	want, attempts := c.verdict(safety, outcome), 1
	retry := c.Retry
	if outcome == "unknown" && c.Outcome != outcome {
		retry = []string{"read", "idempotent", "keyed"}
	}
	if slices.Contains(retry, safety) {
		attempts = 2
	}

	var info resilience.CallInfo
	ctx := withOptions(t.Context(), resilience.WithCallInfo(&info))
	if trace != nil {
		ctx = httptrace.WithClientTrace(ctx, trace)
	}
	if c.Big && base != origin {
		ctx = context.WithValue(ctx, bodyKey{}, bigBody())
	}
	status, err := ways[way](ctx, d, base, op)
	if way == "Do" && (c.DecoderOnly || c.Answers) {
		if err != nil || status != c.Status || info.Attempts != 1 {
			t.Errorf("Do returned %d, %v after %d attempts; want the answer of the first", status, err, info.Attempts)
		}
		return
	}
	isExactly(t, err, want.Is...)
	e := errorOf(t, err)
	if e.Outcome != outcomeOf(t, want.Outcome) || e.Attempts != attempts || info.Attempts != attempts || e.StatusCode != c.Status {
		t.Errorf("outcome %v after %d attempts (status %d), want %s after %d (%d): %v", e.Outcome, e.Attempts, e.StatusCode, want.Outcome, attempts, c.Status, err)
	}
	if want := map[bool]time.Duration{true: limit}[c.Timeout]; e.Timeout != want {
		t.Errorf("Timeout = %v, want %v", e.Timeout, want)
	}
	if text := err.Error(); strings.ContainsAny(text, "\r\n") || !strings.HasPrefix(text, op.ID+": ") || !strings.Contains(text, fmt.Sprintf("(%d attempt", attempts)) {
		t.Errorf("the text is not one line of operation, reason and attempts: %q", text)
	}
}

// A limit that runs out before a connection was so much as asked for: nothing
// was sent, and it is no fault of the carrier's.
func TestTimeRanOutBeforehand(t *testing.T) {
	server := liveServer(t, false)
	server.play(act{Status: 200, Body: `{}`})
	d := doerFor(t, resilience.WithBaseURL(server.URL), resilience.WithAttemptTimeout(1), resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}), atOnce(resilience.RetryPolicy{}))
	err := callThing(t.Context(), d, opOf("unsafe"))
	isExactly(t, err, "ErrTimeout")
	if e := errorOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Attempts != 3 || len(server.requests()) != 0 || d.BreakerState("") != resilience.BreakerClosed {
		t.Errorf("outcome %v after %d attempts, %d requests, the breaker is %v", e.Outcome, e.Attempts, len(server.requests()), d.BreakerState(""))
	}
}

// What a certificate or a name is refused for would be so again: each of the
// errors is final by itself, also where it comes alone from a user's transport.
func TestFailuresToConnectThatAreFinal(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		attempts int
	}{
		"a certificate":         {&tls.CertificateVerificationError{Err: errors.New("odd")}, 1},
		"an authority":          {x509.UnknownAuthorityError{}, 1},
		"a host name":           {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h.example"}, 1},
		"an expired one":        {x509.CertificateInvalidError{Reason: x509.Expired}, 1},
		"no TLS":                {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, 1},
		"no TLS but HTTP":       {errors.New("http: server gave HTTP response to HTTPS client"), 1},
		"an alert":              {tls.AlertError(40), 1},
		"no such host":          {&net.DNSError{Err: "no such host", IsNotFound: true}, 1},
		"a name server is down": {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, 3},
		"refused":               {errors.New("connection refused"), 3},
	} {
		d := onStage(t, playing(act{Trace: "asked", Err: test.err}), atOnce(resilience.RetryPolicy{}))
		e := errorOf(t, callThing(t.Context(), d, opOf("unsafe")))
		if e.Attempts != test.attempts || e.Outcome != resilience.OutcomeNotSent {
			t.Errorf("%s: %d attempts, %v; want %d, not sent: %v", name, e.Attempts, e.Outcome, test.attempts, e)
		}
	}
}
