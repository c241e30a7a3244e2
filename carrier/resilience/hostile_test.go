package resilience_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// hostileServer answers each request on loopback by whatever respond writes.
type hostileServer struct {
	url string

	mu    sync.Mutex
	seen  []*http.Request
	conns []net.Conn
}

// serveHostile starts one. After respond has returned the connection is closed,
// unless it returned true.
func serveHostile(t *testing.T, respond func(w net.Conn, r *http.Request) (goOn bool)) *hostileServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hostileServer{url: "http://" + listener.Addr().String()}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					s.mu.Lock()
					s.seen = append(s.seen, r)
					s.mu.Unlock()
					if !respond(conn, r) {
						return
					}
				}
			})
		}
	})
	return s
}

func (s *hostileServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.seen...)
}

// silence turns the standard logger off for a test: net/http tells the world of
// bytes that nobody asked for.
func silence(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}

// forever writes p until the other side has enough.
func forever(w io.Writer, p string) {
	block := []byte(strings.Repeat(p, 1+(16<<10)/len(p)))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// allocated returns how many bytes f allocates, whatever becomes of them.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const jsonHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// Answers that never end, or that are none, are failures like any other:
// bounded in time and memory, told by their class, and retried.
func TestHostileAnswers(t *testing.T) {
	write := func(s string) func(net.Conn) { return func(w net.Conn) { _, _ = io.WriteString(w, s) } }
	endless := func(head, rest string) func(net.Conn) {
		return func(w net.Conn) {
			_, _ = io.WriteString(w, head)
			forever(w, rest)
		}
	}
	packed := gzipped(`{"title":"a"}`)
	wrongSum := packed[:len(packed)-8] + "\x00\x00\x00\x00" + packed[len(packed)-4:]
	wrongBlock := packed[:10] + "\xff" + packed[11:]
	unpackable := func(body string) func(net.Conn) {
		return write(jsonHead + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(body)) + body)
	}
	tests := []struct {
		name     string
		respond  func(net.Conn)
		is       error
		outcome  resilience.Outcome
		status   int
		attempts int
	}{
		{"endless header lines", endless("HTTP/1.1 200 OK\r\n", "X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"), resilience.ErrResponseTooLarge, resilience.OutcomeUnknown, 0, 1},
		{"one endless header", endless("HTTP/1.1 200 OK\r\nX-A: ", "a"), resilience.ErrResponseTooLarge, resilience.OutcomeUnknown, 0, 1},
		{"endless status line", endless("HTTP/1.1 200 ", "a"), resilience.ErrResponseTooLarge, resilience.OutcomeUnknown, 0, 1},
		{"endless 100s", endless("", "HTTP/1.1 100 Continue\r\n\r\n"), resilience.ErrResponseTooLarge, resilience.OutcomeUnknown, 0, 1},
		{"endless 103s", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), resilience.ErrResponseTooLarge, resilience.OutcomeUnknown, 0, 1},
		{"101", write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), nil, resilience.OutcomeUnknown, 101, 1},
		{"no HTTP", write("SSH-2.0-OpenSSH_9.9\r\n"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"another HTTP", write("HTTP/9.9 200 OK\r\n\r\n"), nil, resilience.OutcomeUnknown, -1, 0},
		{"no status", write("HTTP/1.1 \r\n\r\n"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"status of four digits", write("HTTP/1.1 2000 OK\r\n\r\n"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"negative length", write(jsonHead + "Content-Length: -1\r\n\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"two lengths", write(jsonHead + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"header without a name", write(jsonHead + ": x\r\n\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"nothing", write(""), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},
		{"half of the headers", write("HTTP/1.1 200 OK\r\nContent-Ty"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 0, 3},

		{"length too long", write(jsonHead + "Content-Length: 3\r\n\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"length too short", write(jsonHead + "Content-Length: 1\r\n\r\n{}"), resilience.ErrMalformedResponse, resilience.OutcomeDone, 200, 1},
		{"bad chunk", write(jsonHead + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"chunk beyond all numbers", write(jsonHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"chunk of 2^63", write(jsonHead + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"endless chunk extension", endless(jsonHead+"Transfer-Encoding: chunked\r\n\r\n2;", "a"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"endless trailers", endless(jsonHead+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "X-A: aaaa\r\n"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"cut before the last chunk", write(jsonHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"cut of unknown length", write(jsonHead + "Connection: close\r\n\r\n{\"a\":"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"gzip with a wrong header", unpackable(`{"title":"a"}`), resilience.ErrMalformedResponse, resilience.OutcomeDone, 200, 1},
		{"gzip with a wrong sum", unpackable(wrongSum), resilience.ErrMalformedResponse, resilience.OutcomeDone, 200, 1},
		{"gzip with a flaw within", unpackable(wrongBlock), resilience.ErrMalformedResponse, resilience.OutcomeDone, 200, 1},
		{"gzip that ends too soon", write(jsonHead + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), resilience.ErrUnavailable, resilience.OutcomeDone, 200, 3},
		{"endless body", endless(jsonHead+"\r\n", `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`), resilience.ErrResponseTooLarge, resilience.OutcomeDone, 200, 1},
		{"endless chunks", endless(jsonHead+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"), resilience.ErrResponseTooLarge, resilience.OutcomeDone, 200, 1},
		{"2 GB that do not come", write(jsonHead + "Content-Length: 2000000000\r\n\r\n"), resilience.ErrResponseTooLarge, resilience.OutcomeDone, 200, 1},
		{"error of 2 GB that do not come", write("HTTP/1.1 503 No\r\nContent-Length: 2000000000\r\n\r\n"), resilience.ErrUnavailable, resilience.OutcomeUnknown, 503, 3},
		{"endless error", endless("HTTP/1.1 500 No\r\nContent-Type: application/json\r\n\r\n", `{"a":`), resilience.ErrUnavailable, resilience.OutcomeUnknown, 500, 3},
		{"JSON as deep as it gets", write(jsonHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat("[", 100_000)), nil, resilience.OutcomeDone, 200, 1},
	}
	silence(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
				tt.respond(w)
				return false
			})
			d := connectTo(t, server.url, resilience.WithMaxResponseBytes(1<<20), resilience.WithoutBreaker(),
				resilience.WithRetry(resilience.RetryPolicy{BaseDelay: time.Millisecond}))
			start := time.Now()
			var err error
			bytes := allocated(func() { _, err = track(t.Context(), d) })
			if bytes > 32<<20 {
				t.Errorf("%d MiB were allocated", bytes>>20)
			}
			if took := time.Since(start); took > 25*time.Second {
				t.Errorf("took %v", took)
			}
			e := failureOf(t, err)
			if len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\r\n") || len(e.Body) > 4<<10 {
				t.Errorf("the error has %d characters, %d bytes of body", len(err.Error()), len(e.Body))
			}
			if tt.status < 0 {
				return // it only has to end
			}
			if tt.is != nil {
				is(t, err, tt.is)
			}
			isNot(t, err, resilience.ErrOutcomeUnknown, resilience.ErrInvalidRequest, resilience.ErrTimeout)
			if e.Outcome != tt.outcome || e.StatusCode != tt.status || e.Attempts != tt.attempts {
				t.Errorf("%v, status %d, %d attempts; want %v, %d, %d (%v)", e.Outcome, e.StatusCode, e.Attempts, tt.outcome, tt.status, tt.attempts, err)
			}
			if n := len(server.requests()); n != tt.attempts {
				t.Errorf("%d requests, want %d", n, tt.attempts)
			}
		})
	}
}

// An error answer that is too large keeps its status, and its beginning.
func TestHostileLargeErrorKeepsItsBeginning(t *testing.T) {
	for name, head := range map[string]string{
		"unknown length": "", "length": fmt.Sprintf("Content-Length: %d\r\n", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
				_, _ = io.WriteString(w, "HTTP/1.1 404 No\r\nContent-Type: text/plain\r\nX-Request-Id: r1\r\n"+head+"\r\n"+strings.Repeat("x", 1<<20))
				return false
			})
			_, err := track(t.Context(), connectTo(t, server.url))
			is(t, err, resilience.ErrNotFound)
			isNot(t, err, resilience.ErrResponseTooLarge)
			e := failureOf(t, err)
			if e.RequestID != "r1" || string(e.Body) != strings.Repeat("x", 4<<10) {
				t.Errorf("request %q, %d bytes of body", e.RequestID, len(e.Body))
			}
		})
	}
}

// With no limit on the answer, a Content-Length that lies costs no memory.
func TestHostileLengthWithoutALimit(t *testing.T) {
	server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(w, jsonHead+"Content-Length: 2000000000000\r\n\r\n{}")
		return false
	})
	d := connectTo(t, server.url, resilience.WithMaxResponseBytes(-1), resilience.WithoutRetry())
	var err error
	bytes := allocated(func() { _, err = track(t.Context(), d) })
	is(t, err, resilience.ErrUnavailable)
	if bytes > 4<<20 {
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
}

// The limit counts decompressed bytes: a small answer can be a large one.
func gzipped(s string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func TestHostileGzip(t *testing.T) {
	var bomb bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	for range 12 {
		_, _ = zw.Write(make([]byte, 1<<20))
	}
	_ = zw.Close()
	head := fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb.Len())
	server := serveHostile(t, func(w net.Conn, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/tracking") {
			_, _ = io.WriteString(w, jsonHead+head+bomb.String())
		} else if strings.HasSuffix(r.URL.Path, "/label") {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n"+head+bomb.String())
		} else {
			_, _ = io.WriteString(w, "HTTP/1.1 500 No\r\nContent-Type: application/json\r\n"+head+bomb.String())
		}
		return false
	})
	d := connectTo(t, server.url, resilience.WithoutRetry())
	t.Run("result", func(t *testing.T) {
		for _, limit := range []int64{1, 1000, 1 << 20, 0} {
			var err error
			n := allocated(func() { _, err = track(t.Context(), d, resilience.WithMaxResponseBytes(limit)) })
			is(t, err, resilience.ErrResponseTooLarge)
			if most := 8*uint64(limit) + 1<<20; limit > 0 && n > most {
				t.Errorf("limit %d: %d bytes were allocated", limit, n)
			}
			if n > 64<<20 {
				t.Errorf("limit %d: %d MiB were allocated", limit, n>>20)
			}
		}
	})
	t.Run("error", func(t *testing.T) {
		var err error
		n := allocated(func() { _, err = ship(t.Context(), d, `{}`) })
		is(t, err, resilience.ErrUnavailable)
		if e := failureOf(t, err); e.StatusCode != 500 || n > 4<<20 {
			t.Errorf("status %d, %d bytes were allocated", e.StatusCode, n)
		}
	})
	t.Run("stream", func(t *testing.T) {
		s, err := label(t.Context(), d, resilience.WithMaxResponseBytes(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if s.Size != -1 {
			t.Errorf("size %d: that is of the compressed bytes", s.Size)
		}
		n, err := io.Copy(io.Discard, s)
		is(t, err, resilience.ErrResponseTooLarge)
		if n != 1<<20 {
			t.Errorf("%d bytes", n)
		}
	})
}

// A body that comes byte by byte does not outlive the attempt.
func TestHostileDrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{200, 500} {
			carrier := &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) {
				resp := newAnswer(status, ``)
				resp.Body, resp.ContentLength = io.NopCloser(dripUntil{r.Context(), time.Second}), -1
				return resp, nil
			}}
			start := time.Now()
			_, err := track(t.Context(), connect(t, carrier), resilience.WithoutRetry())
			e := failureOf(t, err)
			if took := time.Since(start); took != 10*time.Second || e.StatusCode != status || e.Timeout != 10*time.Second {
				t.Errorf("after %v, status %d, Timeout %v: %v", took, e.StatusCode, e.Timeout, err)
			}
		}
	})
}

// dripUntil gives a byte now and then until its context ends.
type dripUntil struct {
	ctx   context.Context
	every time.Duration
}

func (d dripUntil) Read(p []byte) (int, error) {
	t := time.NewTimer(d.every)
	defer t.Stop()
	select {
	case <-t.C:
		p[0] = ' '
		return 1, nil
	case <-d.ctx.Done():
		return 0, context.Cause(d.ctx)
	}
}

// So it is with headers, over a socket.
func TestHostileDripOfHeaders(t *testing.T) {
	server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nX-A: ")
		for {
			if _, err := io.WriteString(w, "a"); err != nil {
				return false
			}
			time.Sleep(time.Millisecond)
		}
	})
	start := time.Now()
	_, err := track(t.Context(), connectTo(t, server.url), resilience.WithoutRetry(), resilience.WithAttemptTimeout(300*time.Millisecond))
	is(t, err, resilience.ErrTimeout)
	if e := failureOf(t, err); e.Outcome != resilience.OutcomeUnknown || e.Timeout != 300*time.Millisecond || time.Since(start) > 2*time.Second {
		t.Errorf("%v, Timeout %v, after %v", e.Outcome, e.Timeout, time.Since(start))
	}
}

// What stands behind the end of an answer is not the next one's.
func TestHostileGarbageBehindAnAnswer(t *testing.T) {
	for name, garbage := range map[string]string{
		"bytes": "GARBAGE", "line ends": "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			silence(t)
			server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
				_, err := io.WriteString(w, jsonHead+"Content-Length: 10\r\n\r\n{\"ok\":\"y\"}"+garbage)
				return err == nil
			})
			d := connectTo(t, server.url, resilience.WithRetry(resilience.RetryPolicy{BaseDelay: time.Millisecond}), resilience.WithoutBreaker(),
				resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}))
			for range 50 {
				if v, err := track(t.Context(), d); err != nil || v["ok"] != "y" {
					t.Fatalf("%v, %v", v, err)
				}
			}
		})
	}
}

// Of duplicate headers the first holds, or none.
func TestHostileDuplicateHeaders(t *testing.T) {
	server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(w, "HTTP/1.1 503 No\r\nContent-Type: application/problem+json\r\nContent-Type: text/html\r\n"+
			"X-Request-Id: r1\r\nX-Request-Id: r2\r\nRetry-After: 3600\r\nRetry-After: 7200\r\nContent-Length: 12\r\nContent-Length: 12\r\n\r\n{\"code\":\"c\"}")
		return false
	})
	_, err := track(t.Context(), connectTo(t, server.url))
	e := failureOf(t, err)
	if e.RequestID != "r1" || e.RetryAfter != 2*time.Hour || e.Problem == nil || e.Problem.Code != "c" || e.Attempts != 1 {
		t.Errorf("request %q, RetryAfter %v, problem %v, %d attempts", e.RequestID, e.RetryAfter, e.Problem, e.Attempts)
	}
}

// Redirects are not followed: no credential, no key and no body arrive
// elsewhere, and nothing goes round in circles.
func TestHostileRedirects(t *testing.T) {
	var arrived []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived = append(arrived, r.Method+" "+r.URL.Path)
	}))
	defer elsewhere.Close()
	locations := map[string]string{
		"other host": elsewhere.URL + "/steal", "scheme-relative": "//" + strings.TrimPrefix(elsewhere.URL, "http://") + "/steal",
		"itself": "/tracking/BK1001TR", "relative": "x", "none": "",
		"does not parse": "http://[::1", "not ASCII": "http://\xff\xfe/", "file": "file:///etc/passwd",
	}
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for name, location := range locations {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
					head := fmt.Sprintf("HTTP/1.1 %d Moved\r\nContent-Length: 0\r\n", status)
					if location != "" {
						head += "Location: " + location + "\r\n"
					}
					_, _ = io.WriteString(w, head+"\r\n")
					return true
				})
				d := connectTo(t, server.url, resilience.WithCredential("X-Api-Key", "secret"), resilience.WithoutBreaker())

				_, err := track(t.Context(), d)
				e := failureOf(t, err)
				if e.StatusCode != status || e.Outcome != resilience.OutcomeRejected || e.Attempts != 1 {
					t.Errorf("Call: status %d, %v, %d attempts: %v", e.StatusCode, e.Outcome, e.Attempts, err)
				}
				_, err = ship(t.Context(), d, `{"order":1}`)
				is(t, err, resilience.ErrOutcomeUnknown)
				if e := failureOf(t, err); e.StatusCode != status || e.Outcome != resilience.OutcomeUnknown || e.Attempts != 1 {
					t.Errorf("Call: status %d, %v, %d attempts: %v", e.StatusCode, e.Outcome, e.Attempts, err)
				}
				for way, do := range map[string]func(*http.Request) (*http.Response, error){"Do": d.Do, "HTTPClient": d.HTTPClient().Do} {
					req, _ := http.NewRequestWithContext(t.Context(), "POST", server.url+"/shipments", strings.NewReader(`{}`))
					resp, err := do(req)
					if err != nil {
						t.Errorf("%s: %v", way, err)
						continue
					}
					if got := resp.Header.Get("Location"); resp.StatusCode != status || got != location && way == "Do" {
						t.Errorf("%s: status %d, Location %q", way, resp.StatusCode, got)
					}
					_ = resp.Body.Close()
				}
				if n := len(server.requests()); n != 4 {
					t.Errorf("%d requests, want 4", n)
				}
			})
		}
	}
	if len(arrived) > 0 {
		t.Errorf("arrived elsewhere: %q", arrived)
	}
}

// A request to another origin, through Do, has no credential with it.
func TestHostileOrigin(t *testing.T) {
	var mu sync.Mutex
	var got []http.Header
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Clone())
		mu.Unlock()
	})
	carrier, elsewhere := httptest.NewServer(handler), httptest.NewServer(handler)
	defer carrier.Close()
	defer elsewhere.Close()
	d := connectTo(t, carrier.URL, resilience.WithCredential("X-Api-Key", "secret"), resilience.WithCredential("Authorization", "Bearer secret"))
	for _, target := range []string{carrier.URL + "/any", elsewhere.URL + "/tracking/BK1001TR", strings.Replace(carrier.URL, "127.0.0.1", "localhost", 1) + "/any"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", target, nil)
		resp, err := d.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for i, want := range []string{"secret", "", ""} {
		if key, auth := got[i].Get("X-Api-Key"), got[i].Get("Authorization"); key != want || (auth == "") != (want == "") {
			t.Errorf("request %d: %q, %q", i, key, auth)
		}
	}
}

// Nothing that a caller hands in can add a header or a line to a request.
func TestHostileInjection(t *testing.T) {
	values := []string{"a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\x00b", "a\x7fb", "a\x1bb"}
	names := []string{"", " ", "X A", "X:A", "X-A\r\nX-Evil", "X-Ä", "X(A)", "X\x00A"}
	server := serveHostile(t, func(w net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(w, jsonHead+"Content-Length: 2\r\n\r\n{}")
		return true
	})
	refused := func(t *testing.T, err error) {
		t.Helper()
		is(t, err, resilience.ErrInvalidRequest)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Attempts > 1 {
			t.Errorf("%v, %d attempts", e.Outcome, e.Attempts)
		}
		if strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Errorf("%q", err)
		}
	}
	d := connectTo(t, server.url)
	for _, v := range values {
		t.Run(fmt.Sprintf("value %q", v), func(t *testing.T) {
			_, err := track(t.Context(), d, resilience.WithHeader("X-A", v))
			refused(t, err)
			for _, o := range []resilience.Option{
				resilience.WithHeader("X-A", v), resilience.WithUserAgent(v), resilience.WithCredential("X-Api-Key", v), resilience.WithBaseURL("http://h/" + v),
			} {
				_, err := resilience.New(o)
				refused(t, err)
			}
			_, err = ship(t.Context(), d, `{}`, resilience.WithIdempotencyKey(v))
			refused(t, err)
			call := func(r resilience.Request) error {
				if r.Path == "" {
					r.Path = "/tracking/x"
				}
				return d.Call(t.Context(), readOp, &r, nil)
			}
			refused(t, call(resilience.Request{Header: http.Header{"X-A": {v}}}))
			refused(t, call(resilience.Request{Header: http.Header{"X-A": {"fine", v}}}))
			refused(t, call(resilience.Request{Query: "a=" + v}))
			refused(t, call(resilience.Request{Body: []byte(`{}`), ContentType: v}))
			_, err = resilience.PathSegment("id", v)
			is(t, err, resilience.ErrInvalidRequest)

			req, _ := http.NewRequestWithContext(t.Context(), "GET", server.url+"/tracking/x", nil)
			req.Header["X-A"] = []string{v}
			_, err = d.Do(req)
			refused(t, err)
			req, _ = http.NewRequestWithContext(t.Context(), "GET", server.url+"/tracking/x", nil)
			req.URL.RawQuery = v
			_, err = d.Do(req)
			refused(t, err)
			req, _ = http.NewRequestWithContext(t.Context(), "GET", server.url+"/tracking/x", nil)
			req.Method = v
			_, err = d.Do(req)
			refused(t, err)
		})
	}
	for _, n := range names {
		t.Run(fmt.Sprintf("name %q", n), func(t *testing.T) {
			_, err := track(t.Context(), d, resilience.WithHeader(n, "v"))
			refused(t, err)
			_, err = resilience.New(resilience.WithCredential(n, "v"))
			refused(t, err)
			err = d.Call(t.Context(), readOp, &resilience.Request{Path: "/tracking/x", Header: http.Header{n: {"v"}}}, nil)
			refused(t, err)
		})
	}
	if n := len(server.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if got := d.BreakerState("tracking"); got != closed {
		t.Errorf("our own mistakes made it %s", got)
	}

	// A blank in a query would end it.
	refused(t, d.Call(t.Context(), readOp, &resilience.Request{Path: "/tracking/x", Query: "a=b HTTP/1.1"}, nil))

	// A path is a path, whatever stands in it.
	for path, want := range map[string]string{
		"/tracking/a b":               "/tracking/a%20b",
		"/tracking/a?b=c":             "/tracking/a%3Fb=c",
		"/tracking/a#b":               "/tracking/a%23b",
		"/tracking/a\r\nX-Evil: 1":    "/tracking/a%0D%0AX-Evil:%201",
		"/tracking/a%0d%0aX-Evil:%20": "/tracking/a%0d%0aX-Evil:%20",
		"/tracking/ä":                 "/tracking/%C3%A4",
	} {
		before := len(server.requests())
		if err := d.Call(t.Context(), readOp, &resilience.Request{Path: path}, nil); err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		r := server.requests()[before]
		if r.RequestURI != want || r.Header.Get("X-Evil") != "" {
			t.Errorf("%q became %q", path, r.RequestURI)
		}
	}
}

// A key on an operation that the carrier does not deduplicate would be leave
// for net/http to send it twice, in whatever spelling.
func TestHostileKeysWhereNoneBelong(t *testing.T) {
	carrier := always(200, `{}`)
	d := connect(t, carrier)
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "idempotency-key", "X-IDEMPOTENCY-KEY"} {
		for _, values := range [][]string{{"k"}, {""}, {}, nil} {
			h := http.Header{name: values}
			err := d.Call(t.Context(), unsafeOp, &resilience.Request{Path: "/notices", Header: h}, nil)
			is(t, err, resilience.ErrInvalidRequest)
			req, _ := http.NewRequestWithContext(t.Context(), "POST", memoryURL+"/notices", strings.NewReader(`{}`))
			req.Header = h
			_, err = d.Do(req)
			is(t, err, resilience.ErrInvalidRequest)
		}
	}
	if n := carrier.requests(); n != 0 {
		t.Errorf("%d requests", n)
	}
}
