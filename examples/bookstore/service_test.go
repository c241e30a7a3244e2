package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const (
	adaToken = "ada-token-for-tests" // staff
	bobToken = "bob-token-for-tests" // a customer
	ada      = "Bearer " + adaToken
	bob      = "Bearer " + bobToken
)

func environment(name string) string {
	return map[string]string{
		"CARRIER_API_KEY":  mockcarrier.APIKey,
		"BOOKSTORE_TOKENS": "ada:staff:" + adaToken + ",bob:customer:" + bobToken,
	}[name]
}

// service is a bookstore that runs, with the carrier behind it.
type service struct {
	t      *testing.T
	mock   *mockcarrier.Server
	client *http.Client
	log    *logLines
	stop   func()        // begins to stop it
	ended  chan struct{} // closed when it has
	err    error         // of serve, once ended is closed
}

// inVirtualTime runs a test in a bubble of testing/synctest, in which nothing
// really waits, and which fails for a goroutine that is left.
func inVirtualTime(t *testing.T, test func(t *testing.T, mock *mockcarrier.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, mockcarrier.StartInMemory(t))
	})
}

// open starts a bookstore on a network in memory, and stops it when the test ends.
func open(t *testing.T, mock *mockcarrier.Server, flags ...string) *service {
	t.Helper()
	listener := newPipeListener()
	front := &http.Transport{DialContext: listener.dial}
	return openWith(t, mock, listener, front, environment, append([]string{"-carrier-url", mock.URL}, flags...)...)
}

func openWith(t *testing.T, mock *mockcarrier.Server, listener net.Listener, front *http.Transport, getenv func(string) string, args ...string) *service {
	t.Helper()
	cfg, err := parse(args, getenv, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &service{t: t, mock: mock, client: &http.Client{Transport: front}, log: new(logLines), stop: stop, ended: make(chan struct{})}
	back := &http.Transport{DialContext: mock.DialContext, MaxIdleConnsPerHost: 64}
	go func() {
		defer close(s.ended)
		s.err = serve(ctx, cfg, listener, newLogger(s.log), carrier.WithTransport(back))
		back.CloseIdleConnections()
	}()
	t.Cleanup(func() {
		stop()
		front.CloseIdleConnections()
		<-s.ended
		if s.err != nil {
			t.Errorf("serve: %v", s.err)
		}
		s.log.check(t)
	})
	return s
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Errorf("%v in %s", err, a.body)
	}
}

// try sends one request, as whom Authorization says.
func (s *service) try(ctx context.Context, method, path, authorization string, body io.Reader) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://bookstore.test"+path, body)
	if err != nil {
		return answer{}, err
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// do is try for an answer that must come. It must not tell what is nobody's
// business, and an error must be problem details.
func (s *service) do(method, path, authorization string) answer {
	s.t.Helper()
	a, err := s.try(context.Background(), method, path, authorization, nil)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return a
	}
	s.checkAnswer(a)
	return a
}

func (s *service) get(path string) answer  { s.t.Helper(); return s.do(http.MethodGet, path, ada) }
func (s *service) post(path string) answer { s.t.Helper(); return s.do(http.MethodPost, path, ada) }

// expect is do for what must be answered with one status.
func (s *service) expect(status int, a answer) answer {
	s.t.Helper()
	if a.status != status {
		s.t.Errorf("got %d %s, want %d", a.status, a.body, status)
	}
	return a
}

// secrets are what no answer and no log may show.
var secrets = []string{mockcarrier.APIKey, adaToken, bobToken}

func (s *service) checkAnswer(a answer) {
	s.t.Helper()
	var head strings.Builder
	_ = a.header.Write(&head)
	whole := head.String() + a.body
	host, _, _ := strings.Cut(strings.TrimPrefix(s.mock.URL, "http://"), "/")
	for _, hidden := range append([]string{host, "/v1", "goroutine", "connection"}, secrets...) {
		if strings.Contains(whole, hidden) {
			s.t.Errorf("the answer shows %q:\n%s", hidden, whole)
		}
	}
	if a.status < 400 {
		return
	}
	var p problem
	a.decode(s.t, &p)
	if a.header.Get("Content-Type") != "application/problem+json" || p.Status != a.status || p.Title == "" || p.Code == "" ||
		p.RequestID == "" || p.RequestID != a.header.Get(requestIDHeader) {
		s.t.Errorf("%d is no problem: %s", a.status, whole)
	}
}

// code is the problem's word for what happened.
func (a answer) code() string {
	var p problem
	_ = json.Unmarshal([]byte(a.body), &p)
	return p.Code
}

// asked counts the requests of one operation that have reached the carrier.
func asked(mock *mockcarrier.Server, operation string) (n int) {
	for _, r := range mock.Requests() {
		if r.Operation == operation {
			n++
		}
	}
	return n
}

// noneLeft holds if the carrier has seen each request end, by its answer or by
// the caller's leaving.
func noneLeft(t *testing.T, mock *mockcarrier.Server) {
	t.Helper()
	for _, r := range mock.Requests() {
		if r.Status == 0 && r.Duration == 0 {
			t.Errorf("request %d, %s, is still at the carrier", r.Seq, r.Operation)
		}
	}
}

// logLines is the log of a service.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

type logLine struct {
	Level     string `json:"level"`
	Message   string `json:"msg"`
	RequestID string `json:"request_id"`
	User      string `json:"user"`
	Path      string `json:"path"`
	Status    int    `json:"status"`
	Error     struct {
		Message string `json:"message"`
		Outcome string `json:"outcome"`
	} `json:"error"`
}

// read returns the lines with a message.
func (l *logLines) read(t *testing.T, message string) (lines []logLine) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range strings.Lines(l.buf.String()) {
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Errorf("%v in the log line %s", err, text)
		}
		if line.Message == message || message == "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// check holds for every log: each line has a request id, unless it is about the
// process as a whole, and none has a secret.
func (l *logLines) check(t *testing.T) {
	t.Helper()
	ofTheProcess := []string{"listening", "stopping", "stopped", "circuit breaker changed"}
	for _, line := range l.read(t, "") {
		if (line.RequestID == "-" || line.RequestID == "") && !slices.Contains(ofTheProcess, line.Message) {
			t.Errorf("no request id on %+v", line)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, secret := range secrets {
		if bytes.Contains(l.buf.Bytes(), []byte(secret)) {
			t.Errorf("the log shows %q", secret)
		}
	}
}

// pipeListener is a network in memory with one listener.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

var errRefused = errors.New("connection refused")

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// elapsed is the virtual time that f takes.
func elapsed(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}
