package resilience_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// shelf is a carrier in memory with one label on it, which knows ranges.
type shelf struct {
	content []byte
	header  []string                             // name, value, …
	cut     func(nth int) int                    // bytes of the nth answer; negative: all
	err     error                                // of a cut; io.ErrUnexpectedEOF if nil
	change  func(nth int, r *http.Response)      // of the nth answer, before it is sent
	meet    func(nth int, r *http.Request) error // takes the place of the nth answer if it is not nil

	mu     sync.Mutex
	ranges []string // "Range If-Range" of each request
}

func (s *shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	s.mu.Lock()
	s.ranges = append(s.ranges, r.Header.Get("Range")+" "+r.Header.Get("If-Range"))
	nth := len(s.ranges)
	s.mu.Unlock()
	if s.meet != nil {
		if err := s.meet(nth, r); err != nil {
			return nil, err
		}
	}
	resp := newAnswer(200, "", append([]string{"Content-Type", "application/pdf"}, s.header...)...)
	from := 0
	if span, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		from, _ = strconv.Atoi(strings.TrimSuffix(span, "-"))
		resp.StatusCode = 206
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.content)-1, len(s.content)))
	}
	rest := s.content[from:]
	resp.ContentLength = int64(len(rest))
	if s.cut != nil {
		if n := s.cut(nth); n >= 0 && n < len(rest) {
			err := s.err
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			resp.Body = cutBody{bytes.NewReader(rest[:n]), err}
		}
	}
	if _, isCut := resp.Body.(cutBody); !isCut {
		resp.Body = io.NopCloser(bytes.NewReader(rest))
	}
	if s.change != nil {
		s.change(nth, resp)
	}
	if h, ok := resp.Body.(haltingBody); ok {
		h.ctx = r.Context()
		resp.Body = h
	}
	return resp, nil
}

func (s *shelf) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ranges)
}

// resumable is what a server says of something that can be had in parts.
var resumable = []string{"Accept-Ranges", "bytes", "ETag", `"v1"`}

// cutOnce cuts the first answer after n bytes.
func cutOnce(n int) func(int) int {
	return func(nth int) int {
		if nth == 1 {
			return n
		}
		return -1
	}
}

// halts makes an answer stop after n bytes, until its context ends.
func halts(r *http.Response, n int64) {
	r.Body = haltingBody{Reader: io.LimitReader(r.Body, n)}
}

// A stream is handed over at its headers, with all that they say.
func TestStreamIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := patternBytes(1000)
		d := connect(t, &shelf{content: content, header: []string{"X-Request-Id", "r1"}, change: func(_ int, r *http.Response) { halts(r, 10) }})
		var info resilience.CallInfo
		s, err := label(t.Context(), d, resilience.WithCallInfo(&info))
		if err != nil {
			t.Fatal(err)
		}
		if s.Size != 1000 || s.ContentType != "application/pdf" || s.Header.Get("X-Request-Id") != "r1" {
			t.Errorf("size %d, type %q, header %v", s.Size, s.ContentType, s.Header)
		}
		if info.StatusCode != 200 || info.RequestID != "r1" || info.Attempts != 1 {
			t.Errorf("%+v", info)
		}
		got := make([]byte, 10)
		if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, content[:10]) {
			t.Errorf("%v, %x", err, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The total time limit and the attempt's end at the headers.
func TestStreamTimeLimitsEndAtTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := patternBytes(600)
		d := connect(t, &shelf{content: content, change: func(_ int, r *http.Response) {
			r.Body = io.NopCloser(&drip{r.Body, 20 * time.Second})
		}})
		start := time.Now()
		s, err := label(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
		if took := time.Since(start); took < 3*time.Hour {
			t.Errorf("took %v", took)
		}
		// Before the headers both hold.
		d = connect(t, &memoryCarrier{answer: func(_ int, r *http.Request) (*http.Response, error) { return nil, hang(r) }}, resilience.WithoutRetry())
		start = time.Now()
		_, err = label(t.Context(), d)
		is(t, err, resilience.ErrTimeout)
		if e := failureOf(t, err); e.Timeout != 10*time.Second || time.Since(start) != 10*time.Second {
			t.Errorf("Timeout %v after %v", e.Timeout, time.Since(start))
		}
		start = time.Now()
		_, err = label(t.Context(), d, resilience.WithTimeout(3*time.Second))
		if e := failureOf(t, err); e.Timeout != 3*time.Second || time.Since(start) != 3*time.Second {
			t.Errorf("Timeout %v after %v", e.Timeout, time.Since(start))
		}
	})
}

// drip gives one byte at a time.
type drip struct {
	io.Reader
	every time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	time.Sleep(d.every)
	return d.Reader.Read(p[:1])
}

// The idle limit bounds each wait for the next bytes, and nothing else.
func TestStreamIdle(t *testing.T) {
	tests := []struct {
		name   string
		client []resilience.Option
		call   []resilience.CallOption
		want   time.Duration // 0: never
	}{
		{"default", nil, nil, 30 * time.Second},
		{"client's", []resilience.Option{resilience.WithIdleTimeout(time.Minute)}, nil, time.Minute},
		{"call's", []resilience.Option{resilience.WithIdleTimeout(time.Minute)}, []resilience.CallOption{resilience.WithIdleTimeout(time.Second)}, time.Second},
		{"off", nil, []resilience.CallOption{resilience.WithIdleTimeout(-1)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				content := patternBytes(100)
				d := connect(t, &shelf{content: content, change: func(_ int, r *http.Response) { halts(r, 60) }}, tt.client...)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				s, err := label(ctx, d, tt.call...)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				// The reader takes its time: that does not count.
				buf := make([]byte, 20)
				for range 3 {
					time.Sleep(2 * time.Hour)
					if _, err := io.ReadFull(s, buf); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				n, err := s.Read(buf)
				took := time.Since(start)
				is(t, err, resilience.ErrTimeout)
				e := failureOf(t, err)
				if n != 0 || e.Outcome != resilience.OutcomeDone || e.StatusCode != 200 || e.Operation != "getLabel" || e.Attempts != 1 {
					t.Errorf("%d bytes, %v, status %d, %q, %d attempts", n, e.Outcome, e.StatusCode, e.Operation, e.Attempts)
				}
				if tt.want == 0 {
					is(t, err, context.DeadlineExceeded) // the caller's
					return
				}
				isNot(t, err, context.DeadlineExceeded, resilience.ErrUnavailable)
				if took != tt.want || e.Timeout != tt.want || !strings.Contains(e.Error(), "60 bytes") {
					t.Errorf("after %v, Timeout %v, %q", took, e.Timeout, e)
				}
				if _, again := s.Read(buf); again != err {
					t.Errorf("then %v: the error does not last", again)
				}
			})
		})
	}
}

// A stream is retried before its first byte as any other answer is.
func TestStreamIsRetriedBeforeItsFirstByte(t *testing.T) {
	for name, meet := range map[string]func(*http.Request) error{
		"reset":   func(*http.Request) error { return errNetwork },
		"silence": hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelf := &shelf{content: patternBytes(100), meet: func(nth int, r *http.Request) error {
					if nth < 3 {
						return meet(r)
					}
					return nil
				}}
				d := connect(t, shelf)
				var info resilience.CallInfo
				s, err := label(t.Context(), d, resilience.WithCallInfo(&info))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(s)
				if err != nil || !bytes.Equal(got, shelf.content) || info.Attempts != 3 {
					t.Errorf("%v, %d bytes, %d attempts", err, len(got), info.Attempts)
				}
			})
		})
	}
	t.Run("503", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shelf := &shelf{content: patternBytes(100), change: func(nth int, r *http.Response) {
				if nth < 3 {
					r.StatusCode = 503
				}
			}}
			s, err := label(t.Context(), connect(t, shelf))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, shelf.content) {
				t.Errorf("%v, %d bytes", err, len(got))
			}
		})
	})
}

// What is not the label is an error, and no stream.
func TestStreamOfSomethingElse(t *testing.T) {
	tests := []struct {
		name       string
		answer     *http.Response
		is, isNot  []error
		outcome    resilience.Outcome
		retryAfter time.Duration
		body       string
	}{
		{"HTML with 200", newAnswer(200, `<html>`, "Content-Type", "text/html"),
			[]error{resilience.ErrMalformedResponse}, nil, resilience.OutcomeUnknown, 0, `<html>`},
		{"JSON with 200", newAnswer(200, `{"error":"x"}`),
			[]error{resilience.ErrMalformedResponse}, nil, resilience.OutcomeUnknown, 0, `{"error":"x"}`},
		{"no type with 200", newAnswer(200, `%PDF`, "Content-Type", ""),
			[]error{resilience.ErrMalformedResponse}, nil, resilience.OutcomeUnknown, 0, `%PDF`},
		{"202", newAnswer(202, `{}`, "Retry-After", "7"),
			[]error{resilience.ErrNotReady}, []error{resilience.ErrMalformedResponse}, resilience.OutcomeDone, 7 * time.Second, `{}`},
		{"204", newAnswer(204, ``),
			[]error{resilience.ErrMalformedResponse}, nil, resilience.OutcomeUnknown, 0, ``},
		{"206 that nobody asked for", newAnswer(206, `%PDF`, "Content-Type", "application/pdf"),
			[]error{resilience.ErrMalformedResponse}, nil, resilience.OutcomeUnknown, 0, `%PDF`},
		{"304", newAnswer(304, ``),
			[]error{resilience.ErrNotModified}, nil, resilience.OutcomeDone, 0, ``},
		{"410", newAnswer(410, `{"code":"label_gone"}`),
			[]error{resilience.ErrNotFound}, nil, resilience.OutcomeRejected, 0, `{"code":"label_gone"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			closed := 0
			tt.answer.Body = closeCounter{tt.answer.Body, &closed}
			carrier := &memoryCarrier{answer: func(int, *http.Request) (*http.Response, error) { return tt.answer, nil }}
			s, err := label(t.Context(), connect(t, carrier))
			if s != nil {
				t.Error("a stream")
			}
			is(t, err, tt.is...)
			isNot(t, err, tt.isNot...)
			isNot(t, err, resilience.ErrOutcomeUnknown) // it only reads
			e := failureOf(t, err)
			if e.Outcome != tt.outcome || e.RetryAfter != tt.retryAfter || string(e.Body) != tt.body || e.StatusCode != tt.answer.StatusCode {
				t.Errorf("%v, RetryAfter %v, status %d, body %q", e.Outcome, e.RetryAfter, e.StatusCode, e.Body)
			}
			if carrier.requests() != 1 || closed != 1 {
				t.Errorf("%d requests, body closed %d times", carrier.requests(), closed)
			}
		})
	}
}

type closeCounter struct {
	io.ReadCloser
	n *int
}

func (c closeCounter) Close() error { *c.n++; return c.ReadCloser.Close() }

// Close ends a Read that waits in another goroutine.
func TestStreamCloseEndsARead(t *testing.T) {
	halting := func(nth int, r *http.Response) { halts(r, 10) }
	tests := map[string]*shelf{
		"that waits for bytes":        {change: halting},
		"that waits for a resume":     {change: halting, header: resumable},
		"that waits in a backoff":     {cut: func(int) int { return 0 }, header: resumable},
		"that resumes, no answer yet": {cut: cutOnce(10), header: resumable},
		"that resumes, and is failed": {cut: cutOnce(10), header: resumable},
		"that has resumed":            {cut: cutOnce(10), header: resumable},
	}
	tests["that resumes, no answer yet"].meet = func(nth int, r *http.Request) error {
		if nth > 1 {
			return hang(r)
		}
		return nil
	}
	tests["that resumes, and is failed"].meet = func(nth int, r *http.Request) error {
		if nth > 1 {
			return errNetwork
		}
		return nil
	}
	tests["that has resumed"].change = func(nth int, r *http.Response) {
		if nth > 1 {
			halts(r, 10)
		}
	}
	for name, shelf := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelf.content = patternBytes(100)
				d := connect(t, shelf, resilience.WithRetry(resilience.RetryPolicy{
					BaseDelay: time.Minute, MaxDelay: time.Minute, Jitter: resilience.NoJitter, MaxAttempts: -1,
				}), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1}), resilience.WithTimeout(-1), resilience.WithoutBreaker())
				s, err := label(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				wait := 25 * time.Second
				switch name {
				case "that waits for a resume":
					wait = 35 * time.Second
				case "that resumes, no answer yet", "that resumes, and is failed", "that has resumed":
					wait = 65 * time.Second
				}
				var closedAt time.Time
				time.AfterFunc(wait, func() {
					closedAt = time.Now()
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				_, err = io.Copy(io.Discard, s)
				if err == nil || !strings.Contains(err.Error(), "closed") {
					t.Errorf("Read: %v", err)
				}
				isNot(t, err, context.Canceled, resilience.ErrTimeout)
				if late := time.Since(closedAt); closedAt.IsZero() || late != 0 {
					t.Errorf("Read ended %v after Close", late)
				}
				if _, again := s.Read(make([]byte, 1)); again == nil || !strings.Contains(again.Error(), "closed") {
					t.Errorf("Read after Close: %v", again)
				}
				if err := s.Close(); err != nil {
					t.Errorf("the second Close: %v", err)
				}
			})
		})
	}
}

// Close can come at any point of a resume.
func TestStreamCloseWithinAResume(t *testing.T) {
	for _, point := range []string{"before the first Read", "before the new request", "in the new request"} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *resilience.Stream
				closeAt := func(here string) {
					if here == point {
						if err := s.Close(); err != nil {
							t.Error(err)
						}
					}
				}
				closed := 0
				shelf := &shelf{content: patternBytes(100), header: resumable, cut: cutOnce(10), change: func(nth int, r *http.Response) {
					r.Body = closeCounter{r.Body, &closed}
					if nth == 2 {
						closeAt("in the new request")
					}
				}}
				d := connect(t, shelf, resilience.WithRetry(resilience.RetryPolicy{Rand: func() float64 {
					closeAt("before the new request")
					return 0
				}}))
				var err error
				if s, err = label(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				closeAt("before the first Read")
				n, err := io.Copy(io.Discard, s)
				if err == nil || !strings.Contains(err.Error(), "closed") || n > 10 {
					t.Errorf("%d bytes, %v", n, err)
				}
				got := len(shelf.requests())
				if closed < got {
					t.Errorf("%d bodies of %d were closed", closed, got)
				}
				if got > 1 && point != "in the new request" {
					t.Errorf("%d requests after Close", got-1)
				}
			})
		})
	}
}

func TestStreamReadAfterItsEnd(t *testing.T) {
	for _, size := range []int{0, 10} {
		s, err := label(t.Context(), connect(t, &shelf{content: patternBytes(size)}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(s); err != nil || len(got) != size {
			t.Errorf("%v, %d bytes", err, len(got))
		}
		for range 3 {
			if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%d, %v", n, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("after Close: %d, %v", n, err)
		}
	}
}

// Over a socket: Close ends a Read of a plain and of a gzipped body, and an
// unread stream that is closed gives its connection back or up.
func TestStreamCloseOverASocket(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprintf("zipped %v, read %v", zipped, read), func(t *testing.T) {
				gone := make(chan struct{})
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/shipments/s1/label" {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, `{}`)
						return
					}
					w.Header().Set("Content-Type", "application/pdf")
					var body interface {
						io.Writer
						Flush() error
					} = flusher{w}
					if zipped {
						w.Header().Set("Content-Encoding", "gzip")
						body = gzip.NewWriter(w)
					}
					_, _ = body.Write(patternBytes(1000))
					_ = body.Flush()
					w.(http.Flusher).Flush()
					<-r.Context().Done()
					close(gone)
				}))
				defer server.Close()
				d := connectTo(t, server.URL, resilience.WithMaxConns(1))
				s, err := label(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				if read {
					got := make([]byte, 1000)
					if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, patternBytes(1000)) {
						t.Fatal(err)
					}
					go func() {
						_, err := s.Read(got)
						ended <- err
					}()
					runtime.Gosched()
				} else {
					ended <- io.EOF
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if err := <-ended; err == nil {
					t.Error("Read went on")
				}
				<-gone // the server sees it too
				if _, err := track(t.Context(), d); err != nil {
					t.Errorf("the connection is not free: %v", err)
				}
			})
		}
	}
}

type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) { return f.w.Write(p) }
func (f flusher) Flush() error                { f.w.(http.Flusher).Flush(); return nil }

// Who reads to the end gives the connection back, Close or not.
func TestStreamsReuseTheirConnection(t *testing.T) {
	conns := newConnCounter()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = w.Write(patternBytes(100_000))
	}))
	server.Config.ConnState = conns.note
	server.Start()
	defer server.Close()
	d := connectTo(t, server.URL)
	for range 20 {
		s, err := label(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.opened(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// What is cut goes on where it was, if it is provably still the same.
func TestStreamResume(t *testing.T) {
	const size = 300_000
	date := []string{"Date", "Sun, 29 Nov 2026 18:00:00 GMT"}
	tests := []struct {
		name   string
		header []string
		proof  string // what is expected for If-Range; empty: cannot be resumed
	}{
		{"strong ETag", resumable, `"v1"`},
		{"weak ETag", []string{"Accept-Ranges", "bytes", "ETag", `W/"v1"`}, ""},
		{"ETag without quotes", []string{"Accept-Ranges", "bytes", "ETag", `v1`}, ""},
		{"no ranges", []string{"ETag", `"v1"`}, ""},
		{"ranges refused", []string{"Accept-Ranges", "none", "ETag", `"v1"`}, ""},
		{"old date", append([]string{"Accept-Ranges", "bytes", "Last-Modified", "Sun, 29 Nov 2026 17:59:00 GMT"}, date...), "Sun, 29 Nov 2026 17:59:00 GMT"},
		{"date of just now", append([]string{"Accept-Ranges", "bytes", "Last-Modified", "Sun, 29 Nov 2026 17:59:01 GMT"}, date...), ""},
		{"date without the answer's own", []string{"Accept-Ranges", "bytes", "Last-Modified", "Sun, 29 Nov 2026 17:59:00 GMT"}, ""},
		{"weak ETag and old date", append([]string{"Accept-Ranges", "bytes", "ETag", `W/"v1"`, "Last-Modified", "Sun, 29 Nov 2026 17:59:00 GMT"}, date...), "Sun, 29 Nov 2026 17:59:00 GMT"},
		{"nothing", nil, ""},
	}
	for _, tt := range tests {
		for _, at := range []int{0, 1, 65535, 65536, 200_000, size - 1} {
			t.Run(fmt.Sprint(tt.name, ", cut at ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shelf := &shelf{content: patternBytes(size), header: tt.header, cut: cutOnce(at)}
					s, err := label(t.Context(), connect(t, shelf))
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(s)
					want := []string{" "}
					if tt.proof == "" {
						is(t, err, resilience.ErrUnavailable, io.ErrUnexpectedEOF)
						isNot(t, err, resilience.ErrTimeout)
						if e := failureOf(t, err); e.Outcome != resilience.OutcomeDone || e.StatusCode != 200 {
							t.Errorf("%v, status %d", e.Outcome, e.StatusCode)
						}
						if !bytes.Equal(got, shelf.content[:at]) {
							t.Errorf("%d bytes, want %d", len(got), at)
						}
					} else {
						want = append(want, fmt.Sprintf("bytes=%d- %s", at, tt.proof))
						if err != nil || !bytes.Equal(got, shelf.content) {
							t.Errorf("%v, %d bytes", err, len(got))
						}
					}
					if !slices.Equal(shelf.requests(), want) {
						t.Errorf("requests %q, want %q", shelf.requests(), want)
					}
				})
			})
		}
	}
}

// What comes instead of the rest must never be mixed with what was there.
func TestStreamResumeOfSomethingElse(t *testing.T) {
	const size, at = 300_000, 100_000
	set := func(name, value string) func(int, *http.Response) {
		return func(nth int, r *http.Response) {
			if nth > 1 {
				r.Header.Set(name, value)
			}
		}
	}
	status := func(code int, header ...string) func(int, *http.Response) {
		return func(nth int, r *http.Response) {
			if nth > 1 {
				*r = *newAnswer(code, `{}`, header...)
			}
		}
	}
	whole := func(tag string) func(int, *http.Response) {
		return func(nth int, r *http.Response) {
			if nth > 1 {
				*r = *newAnswer(200, strings.Repeat("x", size), "Content-Type", "application/pdf", "ETag", tag, "Accept-Ranges", "bytes")
			}
		}
	}
	tests := []struct {
		name   string
		change func(int, *http.Response)
		is     error
	}{
		{"it has changed", whole(`"v2"`), nil},
		{"ranges are ignored", whole(`"v1"`), nil},
		{"If-Range is ignored", set("ETag", `"v2"`), nil},
		{"the part does not say of what it is", set("ETag", ``), nil},
		{"a weak ETag", set("ETag", `W/"v1"`), nil},
		{"no Content-Range", set("Content-Range", ""), nil},
		{"Content-Range in other units", set("Content-Range", "lines 100000-299999/300000"), nil},
		{"Content-Range before it", set("Content-Range", "bytes 99999-299999/300000"), nil},
		{"Content-Range after it", set("Content-Range", "bytes 100001-299999/300000"), nil},
		{"Content-Range not to the end", set("Content-Range", "bytes 100000-299998/300000"), nil},
		{"Content-Range of another length", set("Content-Range", "bytes 100000-299999/300001"), nil},
		{"Content-Range of an unknown length", set("Content-Range", "bytes 100000-299999/*"), nil},
		{"Content-Range unsatisfied", set("Content-Range", "bytes */300000"), nil},
		{"malformed Content-Range", set("Content-Range", "bytes"), nil},
		{"several parts", func(nth int, r *http.Response) {
			if nth > 1 {
				r.Header.Del("Content-Range")
				r.Header.Set("Content-Type", "multipart/byteranges; boundary=x")
			}
		}, nil},
		{"416", status(416), nil},
		{"404", status(404), resilience.ErrNotFound},
		{"401", status(401), resilience.ErrUnauthorized},
		{"503s", status(503), resilience.ErrUnavailable},
		{"302", status(302, "Location", "https://elsewhere.example/"), nil},
		{"204", status(204), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened, closed := 0, 0
				shelf := &shelf{content: patternBytes(size), header: resumable, cut: cutOnce(at), change: func(nth int, r *http.Response) {
					tt.change(nth, r)
					opened++
					r.Body = closeCounter{r.Body, &closed}
				}}
				s, err := label(t.Context(), connect(t, shelf))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(s)
				if !bytes.Equal(got, shelf.content[:at]) {
					t.Errorf("%d bytes, want the %d before the cut", len(got), at)
				}
				is(t, err, resilience.ErrUnavailable, io.ErrUnexpectedEOF)
				if tt.is != nil {
					is(t, err, tt.is)
				}
				if e := failureOf(t, err); e.Outcome != resilience.OutcomeDone || e.StatusCode != 200 {
					t.Errorf("%v, status %d", e.Outcome, e.StatusCode)
				}
				if _, again := s.Read(make([]byte, 1)); again != err {
					t.Errorf("then %v", again)
				}
				if closed != opened {
					t.Errorf("%d bodies of %d were closed", closed, opened)
				}
			})
		})
	}
}

// What cannot be asked for twice, or not in parts, is not.
func TestStreamIsNotResumed(t *testing.T) {
	tests := []struct {
		name   string
		op     func(*resilience.Operation)
		change func(*http.Response)
	}{
		{"unknown length", nil, func(r *http.Response) { r.ContentLength = -1 }},
		{"decompressed", nil, func(r *http.Response) { r.Uncompressed = true }},
		{"no 200", nil, func(r *http.Response) { r.StatusCode = 203 }},
		{"no valid Last-Modified", nil, func(r *http.Response) {
			r.Header.Del("Etag")
			r.Header.Set("Last-Modified", "yesterday")
			r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		}},
		{"no valid Date", nil, func(r *http.Response) {
			r.Header.Del("Etag")
			r.Header.Set("Last-Modified", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			r.Header.Set("Date", "today")
		}},
		{"unsafe", func(op *resilience.Operation) { op.Safety = resilience.SafetyUnsafe }, nil},
		{"no GET", func(op *resilience.Operation) { op.Method, op.Safety = "POST", resilience.SafetyRead }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shelf := &shelf{content: patternBytes(300_000), header: resumable, cut: cutOnce(200_000), change: func(nth int, r *http.Response) {
				if nth == 1 && tt.change != nil {
					tt.change(r)
				}
			}}
			op := *streamOp
			op.Success = []resilience.Success{{ContentTypes: []string{"application/pdf"}}}
			if tt.op != nil {
				tt.op(&op)
			}
			s, err := resilience.CallStream(t.Context(), connect(t, shelf), &op, &resilience.Request{Path: "/shipments/s1/label"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(s)
			is(t, err, resilience.ErrUnavailable)
			if len(got) != 200_000 || len(shelf.requests()) != 1 {
				t.Errorf("%d bytes, %q", len(got), shelf.requests())
			}
		})
	}
}

// Headers that come at the very end of the time limit are a stream, or too late.
func TestStreamHeadersAtTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := patternBytes(10)
		d := connect(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second) // whatever becomes of the context
			return newAnswer(200, string(content), "Content-Type", "application/pdf"), nil
		}), resilience.WithoutRetry(), resilience.WithoutBreaker(), resilience.WithAttemptTimeout(time.Second))
		for range 300 {
			s, err := label(t.Context(), d)
			if err != nil {
				is(t, err, resilience.ErrTimeout)
				continue
			}
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%v, %x", err, got)
			}
		}
	})
}

// A part that is longer or shorter than it said is not taken for the whole.
func TestStreamResumeOfAnotherLength(t *testing.T) {
	const size, at = 300_000, 100_000
	t.Run("longer", func(t *testing.T) {
		shelf := &shelf{content: patternBytes(size), header: resumable, cut: cutOnce(at), change: func(nth int, r *http.Response) {
			if nth > 1 {
				r.Body, r.ContentLength = io.NopCloser(io.MultiReader(r.Body, strings.NewReader("more"))), -1
			}
		}}
		s, err := label(t.Context(), connect(t, shelf))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		is(t, err, resilience.ErrMalformedResponse)
		if !bytes.Equal(got, shelf.content) {
			t.Errorf("%d bytes", len(got))
		}
	})
	t.Run("shorter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shelf := &shelf{content: patternBytes(size), header: resumable, cut: cutOnce(at), change: func(nth int, r *http.Response) {
				if nth == 2 {
					r.Body, r.ContentLength = io.NopCloser(io.LimitReader(r.Body, 1000)), -1
				}
			}}
			s, err := label(t.Context(), connect(t, shelf))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, shelf.content) {
				t.Errorf("%v, %d bytes", err, len(got))
			}
			if n := len(shelf.requests()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	})
}

// Resumes are calls like any other: retried, and bounded by their own limits.
func TestStreamResumeIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, at = 300_000, 100_000
		shelf := &shelf{content: patternBytes(size), header: resumable, cut: cutOnce(at), meet: func(nth int, r *http.Request) error {
			switch nth {
			case 2:
				return hang(r)
			case 3:
				return errNetwork
			}
			return nil
		}}
		s, err := label(t.Context(), connect(t, shelf))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, shelf.content) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
		if want := slices.Repeat([]string{`bytes=100000- "v1"`}, 3); !slices.Equal(shelf.requests()[1:], want) {
			t.Errorf("got %q", shelf.requests())
		}
	})
}

// Cuts that bring hardly anything are bounded, by attempts and by the budget;
// those that bring much are not.
func TestStreamCutsWithoutProgress(t *testing.T) {
	tests := []struct {
		name     string
		cut      func(int) int
		opts     []resilience.Option
		requests int
		done     bool
	}{
		{"nothing, default", func(int) int { return 0 }, nil, 3, false},
		{"little, default", func(int) int { return 65535 }, nil, 3, false},
		{"enough", func(int) int { return 65536 }, nil, 16, true},
		{"nothing, five attempts", func(int) int { return 0 },
			[]resilience.Option{resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: 5})}, 5, false},
		{"nothing, no limit but the budget", func(int) int { return 0 },
			[]resilience.Option{resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: -1}), resilience.WithRetryBudget(resilience.BudgetPolicy{Refill: -1, Ratio: -1})}, 5, false},
		{"nothing, but now and then", func(nth int) int { return nth % 2 * 70_000 },
			[]resilience.Option{resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: -1})}, 29, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelf := &shelf{content: patternBytes(1 << 20), header: resumable, cut: tt.cut}
				s, err := label(t.Context(), connect(t, shelf, tt.opts...))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(s)
				if n := len(shelf.requests()); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				if tt.done != (err == nil) || tt.done != bytes.Equal(got, shelf.content) {
					t.Errorf("%v, %d bytes", err, len(got))
				}
				if !tt.done {
					is(t, err, resilience.ErrUnavailable, io.ErrUnexpectedEOF)
				}
			})
		})
	}
}

// Without retries there is no second request for a stream either.
func TestStreamWithoutRetryIsNotResumed(t *testing.T) {
	shelf := &shelf{content: patternBytes(300_000), header: resumable, cut: cutOnce(200_000)}
	s, err := label(t.Context(), connect(t, shelf), resilience.WithoutRetry())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	is(t, err, resilience.ErrUnavailable)
	if len(got) != 200_000 || len(shelf.requests()) != 1 {
		t.Errorf("%d bytes, %q", len(got), shelf.requests())
	}
}

// A stall is a cut.
func TestStreamResumeAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &shelf{content: patternBytes(300_000), header: resumable, change: func(nth int, r *http.Response) {
			if nth < 3 {
				halts(r, 100_000)
			}
		}}
		start := time.Now()
		s, err := label(t.Context(), connect(t, shelf))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, shelf.content) || time.Since(start) != time.Minute {
			t.Errorf("%v, %d bytes, after %v", err, len(got), time.Since(start))
		}
	})
}

// The caller's cancel ends everything at once: the body, the wait, the resume.
func TestStreamCallerLeaves(t *testing.T) {
	type files = shelf
	tests := map[string]struct {
		shelf func() *files // anew for each test
		at    time.Duration
	}{
		"in the body": {func() *files { return &files{change: func(_ int, r *http.Response) { halts(r, 10) }} }, 3 * time.Second},
		"in the wait": {func() *files { return &files{cut: func(int) int { return 0 }, header: resumable} }, 30 * time.Second},
		"in a resume": {func() *files {
			return &files{cut: cutOnce(10), header: resumable, meet: func(nth int, r *http.Request) error {
				if nth > 1 {
					return hang(r)
				}
				return nil
			}}
		}, 63 * time.Second},
		"in what was resumed": {func() *files {
			return &files{cut: cutOnce(10), header: resumable, change: func(nth int, r *http.Response) {
				if nth > 1 {
					halts(r, 10)
				}
			}}
		}, 63 * time.Second},
	}
	for name, tt := range tests {
		for _, deadline := range []bool{false, true} {
			t.Run(fmt.Sprint(name, deadline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shelf := tt.shelf()
					shelf.content = patternBytes(100)
					reason := errors.New("shutting down")
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if deadline {
						var stop context.CancelFunc
						ctx, stop = context.WithTimeout(ctx, tt.at)
						defer stop()
					} else {
						time.AfterFunc(tt.at, func() { cancel(reason) })
					}
					d := connect(t, shelf, resilience.WithRetry(resilience.RetryPolicy{
						BaseDelay: time.Minute, MaxDelay: time.Minute, Jitter: resilience.NoJitter,
					}))
					start := time.Now()
					s, err := label(ctx, d)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					_, err = io.ReadAll(s)
					if took := time.Since(start); took != tt.at {
						t.Errorf("ended after %v, want %v", took, tt.at)
					}
					e := failureOf(t, err)
					if e.Outcome != resilience.OutcomeDone || e.StatusCode != 200 {
						t.Errorf("%v, status %d", e.Outcome, e.StatusCode)
					}
					if deadline {
						is(t, err, context.DeadlineExceeded, resilience.ErrTimeout)
						if e.Timeout != tt.at {
							t.Errorf("Timeout %v", e.Timeout)
						}
						return
					}
					is(t, err, context.Canceled, reason)
					isNot(t, err, resilience.ErrTimeout, resilience.ErrUnavailable)
				})
			})
		}
	}
}

// WithMaxResponseBytes bounds a stream only if its call is given it.
func TestStreamMaxBytes(t *testing.T) {
	const size = 100_000
	tests := []struct {
		name   string
		client []resilience.Option
		call   []resilience.CallOption
		want   int
	}{
		{"client's", []resilience.Option{resilience.WithMaxResponseBytes(10)}, nil, size},
		{"call's, less", nil, []resilience.CallOption{resilience.WithMaxResponseBytes(size - 1)}, size - 1},
		{"call's, just enough", nil, []resilience.CallOption{resilience.WithMaxResponseBytes(size)}, size},
		{"call's, one byte", nil, []resilience.CallOption{resilience.WithMaxResponseBytes(1)}, 1},
	}
	for _, tt := range tests {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.name, known), func(t *testing.T) {
				shelf := &shelf{content: patternBytes(size), change: func(_ int, r *http.Response) {
					if !known {
						r.ContentLength = -1
					}
				}}
				s, err := label(t.Context(), connect(t, shelf, tt.client...), tt.call...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(s)
				if !bytes.Equal(got, shelf.content[:tt.want]) {
					t.Errorf("%d bytes, want %d", len(got), tt.want)
				}
				if tt.want == size {
					if err != nil {
						t.Error(err)
					}
					return
				}
				is(t, err, resilience.ErrResponseTooLarge)
				isNot(t, err, resilience.ErrUnavailable)
				if e := failureOf(t, err); e.Outcome != resilience.OutcomeDone || !strings.Contains(err.Error(), fmt.Sprint(tt.want)) {
					t.Errorf("%v, %q", e.Outcome, err)
				}
			})
		}
	}
	t.Run("the operation's", func(t *testing.T) {
		op := *streamOp
		op.MaxBody = 1000
		d := connect(t, &shelf{content: patternBytes(size)})
		s, err := resilience.CallStream(t.Context(), d, &op, &resilience.Request{Path: "/shipments/s1/label"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		is(t, err, resilience.ErrResponseTooLarge)
		if len(got) != 1000 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Through Do a stream is the body of the answer.
func TestStreamThroughDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &shelf{content: patternBytes(300_000), header: resumable, cut: cutOnce(150_000)}
		d := connect(t, shelf)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", memoryURL+"/shipments/s1/label", nil)
		resp, err := d.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ContentLength != 300_000 || resp.StatusCode != 200 {
			t.Errorf("length %d, status %d", resp.ContentLength, resp.StatusCode)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, shelf.content) || len(shelf.requests()) != 2 {
			t.Errorf("%v, %d bytes, %q", err, len(got), shelf.requests())
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A caller may ask for a part itself.
func TestStreamOfAPart(t *testing.T) {
	const size = 300_000
	part := func(s *resilience.Stream, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return io.ReadAll(s)
	}
	for name, call := range map[string]func(*resilience.Doer) ([]byte, error){
		"WithHeader": func(d *resilience.Doer) ([]byte, error) {
			return part(label(t.Context(), d, resilience.WithHeader("Range", "bytes=100000-")))
		},
		"Request.Header": func(d *resilience.Doer) ([]byte, error) {
			return part(resilience.CallStream(t.Context(), d, streamOp, &resilience.Request{
				Path: "/shipments/s1/label", Header: http.Header{"Range": {"bytes=100000-"}}}))
		},
		"Do": func(d *resilience.Doer) ([]byte, error) {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", memoryURL+"/shipments/s1/label", nil)
			req.Header.Set("Range", "bytes=100000-")
			resp, err := d.Do(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			shelf := &shelf{content: patternBytes(size), header: resumable}
			got, err := call(connect(t, shelf))
			if err != nil || !bytes.Equal(got, shelf.content[100_000:]) {
				t.Errorf("%v, %d bytes", err, len(got))
			}
			// A part that is cut is not resumed.
			shelf.cut = func(int) int { return 150_000 }
			got, err = call(connect(t, shelf))
			is(t, err, resilience.ErrUnavailable)
			if !bytes.Equal(got, shelf.content[100_000:250_000]) {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
	t.Run("of a server that knows no ranges, cut", func(t *testing.T) {
		shelf := &shelf{content: patternBytes(size), header: resumable, cut: cutOnce(150_000)}
		d := connect(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("If-Range") == "" {
				r = r.Clone(r.Context())
				r.Header.Del("Range")
			}
			return shelf.RoundTrip(r)
		}))
		got, err := part(label(t.Context(), d, resilience.WithHeader("Range", "bytes=100000-")))
		if err != nil || !bytes.Equal(got, shelf.content) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	})
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// CallStream of an operation that is no stream by the spec streams, and Call of
// one that is does not: nothing is left open.
func TestStreamIsTheCallersWish(t *testing.T) {
	closed := 0
	carrier := &memoryCarrier{answer: func(int, *http.Request) (*http.Response, error) {
		r := newAnswer(200, `%PDF`, "Content-Type", "application/pdf")
		r.Body = closeCounter{r.Body, &closed}
		return r, nil
	}}
	d := connect(t, carrier)
	r, err := resilience.CallBytes(t.Context(), d, streamOp, &resilience.Request{Path: "/shipments/s1/label"})
	if err != nil || string(r.Body) != `%PDF` || closed != 1 {
		t.Errorf("%v, %v, closed %d times", err, r, closed)
	}
	s, err := resilience.CallStream(t.Context(), connect(t, always(200, `{}`)), readOp, &resilience.Request{Path: "/tracking/x"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || string(got) != `{}` {
		t.Errorf("%v, %q", err, got)
	}
}

// To the breaker a stream has succeeded at its headers.
func TestStreamsAndTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &shelf{content: patternBytes(100), cut: func(int) int { return 10 }}
		d := connect(t, shelf, resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 2}), resilience.WithoutRetry())
		for range 5 {
			s, err := label(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(s)
			is(t, err, resilience.ErrUnavailable)
		}
		shelf.meet = func(_ int, r *http.Request) error { return hang(r) }
		for range 2 {
			_, err := label(t.Context(), d)
			is(t, err, resilience.ErrTimeout)
		}
		if got := d.BreakerState("documents"); got != open {
			t.Error(got)
		}
	})
}

// sheet is content of any length that is not held in memory.
const sheetSize = 1<<20 + 7 // not a power of two: a shift by a buffer's length shows

type sheet struct{ page []byte }

func (s sheet) writeTo(w io.Writer, from, to int64) error {
	for from < to {
		at := from % sheetSize
		n := min(to-from, sheetSize-at)
		if _, err := w.Write(s.page[at : at+n]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// heap is what the live heap has grown by since before.
func heap(before uint64) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) - int64(before)
}

// 64 MiB with ten cuts, over a socket: byte-identical, at flat memory.
func TestStreamResumesALongBodyOverASocket(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 64 MiB")
	}
	const size, cuts = 64 << 20, 10
	content := sheet{patternBytes(sheetSize)}
	var mu sync.Mutex
	var ranges []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		nth := len(ranges)
		ranges = append(ranges, r.Header.Get("Range"))
		mu.Unlock()
		h := w.Header()
		h.Set("Content-Type", "application/pdf")
		h.Set("Accept-Ranges", "bytes")
		h.Set("ETag", `"v1"`)
		var from int64
		status := http.StatusOK
		if span, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == `"v1"` {
			from, _ = strconv.ParseInt(strings.TrimSuffix(span, "-"), 10, 64)
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, int64(size-1), int64(size)))
			status = http.StatusPartialContent
		}
		h.Set("Content-Length", strconv.FormatInt(size-from, 10))
		w.WriteHeader(status)
		if nth < cuts {
			_ = content.writeTo(w, from, int64(nth+1)*size/(cuts+1)+int64(nth)*977)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_ = content.writeTo(w, from, size)
	}))
	server.Config.ErrorLog = newQuietLog()
	defer server.Close()

	want := sha256.New()
	_ = content.writeTo(want, 0, size)
	d := connectTo(t, server.URL)
	growth := readFlat(t, d, size, want.Sum(nil))
	if n := len(ranges); n != cuts+1 {
		t.Errorf("%d requests, want %d", n, cuts+1)
	}
	t.Logf("the heap grew by %d KiB at the most", growth>>10)
}

// So it is over HTTP/2, where a cut is the reset of a stream.
func TestStreamResumesOverHTTP2(t *testing.T) {
	const size, cuts = 4 << 20, 3
	content := patternBytes(size)
	var requests atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nth := requests.Add(1)
		if r.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", r.ProtoMajor)
		}
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("ETag", `"v1"`)
		if nth <= cuts {
			w = &cutWriter{w, 1 << 20}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	server.Config.ErrorLog = newQuietLog()
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	d := connectTo(t, server.URL, resilience.WithTransport(server.Client().Transport))
	s, err := label(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, content) || requests.Load() != cuts+1 {
		t.Errorf("%v, %d bytes, %d requests", err, len(got), requests.Load())
	}

	// Close ends a Read that waits.
	requests.Store(0)
	if s, err = label(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, s)
		ended <- err
	}()
	runtime.Gosched()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// cutWriter breaks the answer off after n bytes.
type cutWriter struct {
	http.ResponseWriter
	n int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) < w.n {
		w.n -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.n])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// 256 MiB through, at flat memory.
func TestStreamOfAVeryLongBody(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 256 MiB")
	}
	const size = 256 << 20
	content := sheet{patternBytes(sheetSize)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_ = content.writeTo(w, 0, size)
	}))
	defer server.Close()
	want := sha256.New()
	_ = content.writeTo(want, 0, size)
	growth := readFlat(t, connectTo(t, server.URL), size, want.Sum(nil))
	t.Logf("the heap grew by %d KiB at the most", growth>>10)
}

// readFlat reads a label of size bytes, compares its hash, and fails if the
// live heap grows by a MiB on the way. It returns by how much it grew.
func readFlat(t *testing.T, d *resilience.Doer, size int64, hash []byte) int64 {
	t.Helper()
	buf := make([]byte, 64<<10)
	got := sha256.New()
	before := uint64(heap(0))
	s, err := label(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var n, most int64
	for {
		m, err := s.Read(buf)
		got.Write(buf[:m])
		if n>>23 != (n+int64(m))>>23 { // every 8 MiB
			most = max(most, heap(before))
		}
		n += int64(m)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n != size || !bytes.Equal(got.Sum(nil), hash) {
		t.Errorf("%d bytes of %d, or not the same", n, size)
	}
	if most > 1<<20 {
		t.Errorf("the heap grew by %d bytes", most)
	}
	return most
}

// Without time limits the headers may take as long as they like.
func TestStreamWithoutTimeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := patternBytes(100)
		d := connect(t, &shelf{content: content, change: func(_ int, r *http.Response) { time.Sleep(time.Hour) }},
			resilience.WithTimeout(-1), resilience.WithAttemptTimeout(-1), resilience.WithIdleTimeout(-1))
		begun := time.Now()
		s, err := label(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if took := time.Since(begun); err != nil || !bytes.Equal(got, content) || took != time.Hour {
			t.Errorf("%d bytes after %v, %v; want %d after an hour", len(got), took, err, len(content))
		}
	})
}

// What ends a stream that cannot be resumed is told as it was.
func TestStreamEndsAsItWasCut(t *testing.T) {
	for name, test := range map[string]struct {
		cut  error
		want error
	}{
		"an end too soon": {io.EOF, io.ErrUnexpectedEOF},
		"a broken pipe":   {errNetwork, errNetwork},
	} {
		s, err := label(t.Context(), connect(t, &shelf{content: patternBytes(1000), cut: cutOnce(100), err: test.cut}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		is(t, err, resilience.ErrUnavailable, test.want)
		if isNot(t, err, io.EOF); len(got) != 100 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// A transport of the user's may leave the length as it is in an empty answer.
func TestStreamOfNoLength(t *testing.T) {
	content := patternBytes(1000)
	s, err := label(t.Context(), connect(t, &shelf{content: content, change: func(_ int, r *http.Response) { r.ContentLength = 0 }}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes of %d, %v", len(got), len(content), err)
	}
}

// By a Last-Modified, a part is of the same thing if it says so, or nothing.
func TestStreamResumeByLastModified(t *testing.T) {
	const modified = "Mon, 02 Nov 2026 10:00:00 GMT"
	header := []string{"Accept-Ranges", "bytes", "Last-Modified", modified, "Date", "Mon, 02 Nov 2026 11:00:00 GMT"}
	for says, resumes := range map[string]bool{modified: true, "": true, "Mon, 02 Nov 2026 10:00:01 GMT": false} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelf := &shelf{content: patternBytes(300_000), header: header, cut: cutOnce(100_000), change: func(nth int, r *http.Response) {
					if nth > 1 {
						r.Header.Set("Last-Modified", says)
					}
				}}
				s, err := label(t.Context(), connect(t, shelf))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(s)
				if (err == nil) != resumes || bytes.Equal(got, shelf.content) != resumes {
					t.Errorf("%d bytes, %v; want to be resumed: %v", len(got), err, resumes)
				}
				if want := "bytes=100000- " + modified; shelf.requests()[1] != want {
					t.Errorf("asked for %q, want %q", shelf.requests()[1], want)
				}
			})
		})
	}
}
