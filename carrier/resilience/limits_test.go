package resilience_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// over fails the test unless err is for what is over limit, and was no failure
// of the carrier's.
func over(t *testing.T, err error, what string, limit int64) {
	t.Helper()
	is(t, err, resilience.ErrResponseTooLarge)
	isNot(t, err, resilience.ErrUnavailable, resilience.ErrMalformedResponse)
	var l *resilience.LimitError
	if !errors.As(err, &l) || l.What != what || l.Limit != limit {
		t.Errorf("%v: want %s over %d", err, what, limit)
	}
}

func TestHeaderLimit(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, test := range []struct {
			limit int64
			size  int
			over  int64 // 0: it is not
		}{
			{0, 200 << 10, 0}, {0, 300 << 10, 256 << 10}, {16 << 10, 8 << 10, 0}, {16 << 10, 40 << 10, 16 << 10}, {-1, 900 << 10, 0},
		} {
			t.Run(fmt.Sprint(version, " ", test.limit, " ", test.size), func(t *testing.T) {
				calls := 0
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					calls++
					if r.Proto != version {
						t.Errorf("%s, want %s", r.Proto, version)
					}
					for i := 0; i < test.size; i += 4 << 10 {
						w.Header().Set(fmt.Sprintf("X-Filler-%d", i), strings.Repeat("x", 4<<10))
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{}`)
				}))
				s.EnableHTTP2 = version == "HTTP/2.0"
				s.Config.ErrorLog = newQuietLog()
				s.StartTLS()
				t.Cleanup(s.Close)
				d := connectTo(t, s.URL+"/v1", resilience.WithLimits(resilience.Limits{HeaderBytes: test.limit}),
					resilience.WithRootCAs(s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs),
					resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
				_, err := track(t.Context(), d)
				if test.over == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				over(t, err, "header", test.over)
				if e := failureOf(t, err); e.Attempts != 1 || calls != 1 {
					t.Errorf("%d attempts, %d calls; want 1", e.Attempts, calls)
				}
				if d.BreakerState("tracking") != resilience.BreakerClosed {
					t.Error("the breaker is open")
				}
			})
		}
	}
}

// A small answer that grows when it is decompressed is bounded by what it grows to.
func TestDecompressedBodyLimit(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 12 {
		_, _ = z.Write(chunk)
	}
	_, _ = z.Write([]byte(`{}`))
	_ = z.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "label") {
			w.Header().Set("Content-Type", "application/pdf")
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}))
	t.Cleanup(s.Close)
	d := connectTo(t, s.URL+"/v1")
	_, err := track(t.Context(), d)
	over(t, err, "body", 8<<20)
	stream, err := label(t.Context(), d, resilience.WithMaxResponseBytes(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	n, err := io.Copy(io.Discard, stream)
	over(t, err, "stream", 1<<20)
	if n != 1<<20 {
		t.Errorf("%d bytes were handed over", n)
	}
}

func nested(depth int) string {
	return `{"a":"\"` + strings.Repeat("[{", 50) + `\\","b":` + strings.Repeat(`[`, depth-1) + `1` + strings.Repeat(`]`, depth-1) + `}`
}

func TestJSONDepthLimit(t *testing.T) {
	for _, test := range []struct {
		limit, depth int
		over         int64 // 0: it is not
	}{
		{0, 1, 0}, {0, 100, 0}, {0, 101, 100}, {0, 9000, 100}, {5, 5, 0}, {5, 6, 5}, {-1, 9000, 0},
	} {
		d := connect(t, always(200, nested(test.depth)), resilience.WithLimits(resilience.Limits{JSONDepth: test.limit}),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1}))
		_, err := track(t.Context(), d)
		if test.over == 0 {
			if err != nil {
				t.Errorf("limit %d, depth %d: %v", test.limit, test.depth, err)
			}
			continue
		}
		over(t, err, "JSON depth", test.over)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeDone || e.Attempts != 1 || d.BreakerState("tracking") != resilience.BreakerClosed {
			t.Errorf("%v, %d attempts, breaker %v", e.Outcome, e.Attempts, d.BreakerState("tracking"))
		}
	}
}

var linesOp = &resilience.Operation{
	ID: "exportTrackingEvents", Method: "GET", Path: "/tracking/events", Stream: true,
	Success: []resilience.Success{{Status: 200, ContentTypes: []string{"application/x-ndjson"}}},
}

// openLines returns a stream of body, which comes in pieces of all sizes.
func openLines(t *testing.T, body io.Reader, limits resilience.Limits) *resilience.Stream {
	t.Helper()
	d := connect(t, answering(func(*http.Request) (*http.Response, error) {
		a := newAnswer(200, "", "Content-Type", "application/x-ndjson")
		a.Body, a.ContentLength = io.NopCloser(body), -1
		return a, nil
	}), resilience.WithLimits(limits), resilience.WithoutRetry())
	s, err := resilience.CallStream(t.Context(), d, linesOp, &resilience.Request{Path: "/tracking/events"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, test := range []struct {
		name, body string
		limit      int
		want       []string
		over       int64
	}{
		{"none", "", 0, nil, 0},
		{"one", "a\n", 0, []string{"a"}, 0},
		{"no end", "a\nb", 0, []string{"a", "b"}, 0},
		{"CRLF", "a\r\nb\r\n", 0, []string{"a", "b"}, 0},
		{"empty ones", "\n\na\n\n \r\nb\n\n", 0, []string{"a", "b"}, 0},
		{"long", long + "\n" + long + "\nc", 0, []string{long, long, "c"}, 0},
		{"just short enough", "aaaa\nbb\n", 4, []string{"aaaa", "bb"}, 0},
		{"just short enough, with CR", "aaaa\r\nbb\n", 4, []string{"aaaa", "bb"}, 0},
		{"too long", "aa\nbbbbb\ncc\n", 4, []string{"aa"}, 4},
		{"too long, without an end", "aa\nbbbbb", 4, []string{"aa"}, 4},
		{"too long by far", "a\n" + long + long + "\nc\n", 9_999, []string{"a"}, 9_999},
		{"one mebibyte", strings.Repeat("x", 1<<20) + "\n", 0, []string{strings.Repeat("x", 1<<20)}, 0},
		{"more than one mebibyte", strings.Repeat("x", 1<<20+1) + "\n", 0, nil, 1 << 20},
		{"no limit", strings.Repeat("x", 1<<20+1) + "\n", -1, []string{strings.Repeat("x", 1<<20+1)}, 0},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
		} {
			t.Run(test.name+" "+how, func(t *testing.T) {
				var got []string
				var failed error
				s := openLines(t, reader(strings.NewReader(test.body)), resilience.Limits{LineBytes: test.limit})
				for line, err := range s.Lines() {
					if err != nil {
						failed = err
						continue
					}
					got = append(got, string(line))
				}
				if strings.Join(got, "|") != strings.Join(test.want, "|") {
					t.Errorf("got %d lines, want %d", len(got), len(test.want))
				}
				if test.over == 0 && failed != nil {
					t.Error(failed)
				}
				if test.over > 0 {
					over(t, failed, "line", test.over)
					if e := failureOf(t, failed); e.Operation != "exportTrackingEvents" || e.Outcome != resilience.OutcomeDone {
						t.Errorf("%s, %v", e.Operation, e.Outcome)
					}
					if _, err := s.Read(make([]byte, 1)); !errors.Is(err, resilience.ErrResponseTooLarge) {
						t.Errorf("afterwards Read returns %v", err)
					}
				}
			})
		}
	}
}

func TestLinesOfACutStream(t *testing.T) {
	s := openLines(t, io.MultiReader(strings.NewReader("a\nb\nhalf a li"), iotest.ErrReader(io.ErrUnexpectedEOF)), resilience.Limits{})
	var got []string
	var failed error
	for line, err := range s.Lines() {
		if failed = err; err == nil {
			got = append(got, string(line))
		}
	}
	if strings.Join(got, "|") != "a|b" {
		t.Errorf("got %q: half a line is none", got)
	}
	is(t, failed, resilience.ErrUnavailable, io.ErrUnexpectedEOF)
}

func TestLinesCanBeLeft(t *testing.T) {
	s := openLines(t, strings.NewReader("a\nb\nc\n"), resilience.Limits{})
	for line := range s.Lines() {
		if string(line) == "b" {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDecodeLines(t *testing.T) {
	type event struct{ N int }
	read := func(body string, limits resilience.Limits) (got []int, failed error) {
		for e, err := range resilience.DecodeLines[event](openLines(t, strings.NewReader(body), limits)) {
			if failed = err; err == nil {
				got = append(got, e.N)
			}
		}
		return got, failed
	}
	if got, err := read("{\"n\":1}\n\n{\"n\":2}\n", resilience.Limits{}); err != nil || fmt.Sprint(got) != "[1 2]" {
		t.Errorf("got %v, %v", got, err)
	}
	got, err := read("{\"n\":1}\n{\"n\":\"sec-ret\"}\n{\"n\":3}\n", resilience.Limits{})
	is(t, err, resilience.ErrMalformedResponse)
	isNot(t, err, resilience.ErrUnavailable)
	if e := failureOf(t, err); fmt.Sprint(got) != "[1]" || !strings.Contains(e.Error(), "line 2") || strings.Contains(e.Error(), "sec-ret") {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = read("{\"n\":1}\n"+nested(101)+"\n", resilience.Limits{})
	over(t, err, "JSON depth", 100)
	if fmt.Sprint(got) != "[1]" {
		t.Errorf("got %v", got)
	}
	got = nil
	for e, err := range resilience.DecodeLines[event](openLines(t, strings.NewReader("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"), resilience.Limits{})) {
		if got = append(got, e.N); err != nil || e.N == 2 {
			break
		}
	}
	if fmt.Sprint(got) != "[1 2]" {
		t.Errorf("left after %v, want [1 2]", got)
	}
}

// A Stream can be made of anything that can be read, for the tests of those who use it.
func TestLinesOfAStreamOfTheUsers(t *testing.T) {
	s := &resilience.Stream{ReadCloser: io.NopCloser(strings.NewReader("one\n" + strings.Repeat("x", 2<<20)))}
	var got []string
	var failed error
	for line, err := range s.Lines() {
		if failed = err; err == nil {
			got = append(got, string(line))
		}
	}
	over(t, failed, "line", 1<<20)
	if fmt.Sprint(got) != "[one]" {
		t.Errorf("got %d lines, want the first", len(got))
	}
}

func TestPages(t *testing.T) {
	list := func(max, pages int) (got []int, failed error) {
		for p, err := range resilience.Pages(max, func(cursor string) (int, string, error) {
			n := 1
			_, _ = fmt.Sscanf(cursor, "after-%d", &n)
			if cursor != "" {
				n++
			}
			if n == pages {
				return n, "", nil
			}
			return n, fmt.Sprint("after-", n), nil
		}) {
			if failed = err; err == nil {
				got = append(got, p)
			}
		}
		return got, failed
	}
	if got, err := list(0, 3); err != nil || fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := list(3, 3); err != nil || len(got) != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	got, err := list(2, 3)
	over(t, err, "pages", 2)
	if fmt.Sprint(got) != "[1 2]" {
		t.Errorf("got %v", got)
	}
	got, err = list(0, 0) // without an end
	over(t, err, "pages", resilience.DefaultMaxPages)
	if len(got) != resilience.DefaultMaxPages {
		t.Errorf("%d pages", len(got))
	}
	if got, err = list(-1, 10_005); err != nil || len(got) != 10_005 {
		t.Errorf("%d pages, %v", len(got), err)
	}

	sick := errors.New("sick")
	n := 0
	for _, err := range resilience.Pages(0, func(string) (int, string, error) { n++; return 0, "x", sick }) {
		is(t, err, sick)
	}
	if n != 1 {
		t.Errorf("asked %d times after an error", n)
	}
	n = 0
	for _, err = range resilience.Pages(0, func(string) (int, string, error) { n++; return n, "same", nil }) {
	}
	is(t, err, resilience.ErrMalformedResponse)
	if n != 2 {
		t.Errorf("asked %d times for a page that names itself", n)
	}
	n = 0
	for range resilience.Pages(0, func(string) (int, string, error) { n++; return n, fmt.Sprint(n), nil }) {
		break
	}
	if n != 1 {
		t.Errorf("asked %d times after the caller left", n)
	}
}

func TestTextOfALimit(t *testing.T) {
	for _, test := range []struct {
		err  resilience.LimitError
		want string
	}{
		{resilience.LimitError{What: "body", Limit: 8 << 20}, "body over 8388608 bytes"},
		{resilience.LimitError{What: "JSON depth", Limit: 100}, "JSON depth over 100 levels"},
		{resilience.LimitError{What: "pages", Limit: 10}, "pages over 10 pages"},
	} {
		if got := test.err.Error(); !strings.HasSuffix(got, ": "+test.want) || !errors.Is(&test.err, resilience.ErrResponseTooLarge) {
			t.Errorf("got %q, want it to end in %q", got, test.want)
		}
	}
}

// A transport that is not ours has a limit of its own, which the error names.
func TestHeaderLimitOfTheUsersTransport(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Filler", strings.Repeat("x", 32<<10))
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(s.Close)
	small := &http.Transport{MaxResponseHeaderBytes: 8 << 10}
	t.Cleanup(small.CloseIdleConnections)
	foreign := answering(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("net/http: server response headers exceeded 10485760 bytes; aborted")
	})
	for name, test := range map[string]struct {
		transport http.RoundTripper
		limit     int64
	}{
		"a transport of net/http": {small, 8 << 10},
		"a wrapper around one":    {foreign, 10 << 20},
	} {
		d := connectTo(t, s.URL+"/v1", resilience.WithTransport(test.transport), resilience.WithoutRetry())
		_, err := track(t.Context(), d)
		t.Run(name, func(t *testing.T) { over(t, err, "header", test.limit) })
	}
}

// counting counts what is read of a body.
type counting struct {
	io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// Of an error, no more is read than lets its connection be used again.
func TestErrorBodyLimit(t *testing.T) {
	for _, test := range []struct {
		size int
		opts []resilience.Option
		read int // at most
	}{
		{200 << 10, nil, 200 << 10},
		{4 << 20, nil, 300 << 10},
		{4 << 20, []resilience.Option{resilience.WithStatusErrors()}, 300 << 10},
	} {
		body := &counting{Reader: strings.NewReader(strings.Repeat("x", test.size))}
		d := connect(t, answering(func(*http.Request) (*http.Response, error) {
			a := newAnswer(404, "")
			a.Body, a.ContentLength = io.NopCloser(body), -1
			return a, nil
		}), test.opts...)
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrNotFound)
		if least := min(test.size, 256<<10); body.n < least || body.n > test.read {
			t.Errorf("%d bytes of %d were read, want at least %d and at most %d", body.n, test.size, least, test.read)
		}
	}
}

// What is wide is not deep.
func TestJSONWidth(t *testing.T) {
	for name, body := range map[string]string{
		"objects": `{"a":[` + strings.Repeat(`{"b":1},`, 500) + `{}]}`,
		"lists":   `{"a":[` + strings.Repeat(`[[1]],`, 500) + `[]]}`,
	} {
		if _, err := track(t.Context(), connect(t, always(200, body), resilience.WithLimits(resilience.Limits{JSONDepth: 4}))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
