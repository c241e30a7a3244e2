package mockcarrier_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// wire is what a bare connection gets after it has sent one request.
type wire struct {
	bytes string
	end   error         // io.EOF, a reset, or a timeout if it stays open
	took  time.Duration // until the last byte
}

const (
	moment   = 25 * time.Millisecond // how long it is watched whether more comes
	wink     = 10 * moment           // how long is waited for what never comes, where requests must get through first
	patience = 10 * time.Second      // how long what must come may take
)

// speak sends a request on a connection of its own, and reads until the
// connection ends, or all has come that will and nothing more does.
func speak(t *testing.T, s *mockcarrier.Server, request string, all func(wire) bool) wire {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1")
	conn, err := s.DialContext(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var w wire
	buf := make([]byte, 2<<20)
	for w.end == nil {
		wait := patience
		if all(w) {
			wait = moment
		}
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		var n int
		n, w.end = conn.Read(buf)
		w.bytes += string(buf[:n])
		if n > 0 {
			w.took = time.Since(start)
		}
	}
	return w
}

// whole says whether a whole answer has come.
func (w wire) whole() bool {
	r := bufio.NewReader(strings.NewReader(w.bytes))
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return false
		}
		if resp.StatusCode < 200 {
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err == nil && !resp.Close
	}
}

func rawGet(path string) string {
	return "GET /v1" + path + " HTTP/1.1\r\nHost: carrier.test\r\nX-Api-Key: " + mockcarrier.APIKey + "\r\n\r\n"
}

func rawBuy(key string) string {
	return fmt.Sprintf("POST /v1/shipments HTTP/1.1\r\nHost: carrier.test\r\nX-Api-Key: %s\r\nIdempotency-Key: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", mockcarrier.APIKey, key, len(order), order)
}

// parts splits an answer into its head and its body.
func (w wire) parts() (head, body string) {
	head, body, _ = strings.Cut(w.bytes, "\r\n\r\n")
	return head + "\r\n", body
}

var (
	open  = os.ErrDeadlineExceeded
	reset = error(syscall.ECONNRESET)
)

func TestFaultsOnTheWire(t *testing.T) {
	const healthy = `(?s)^HTTP/1\.1 200 OK\r\n.*Content-Type: application/json\r\n`
	for name, tc := range map[string]struct {
		fault  mockcarrier.Fault
		buy    bool   // a shipment, or else the tracking of BK1001TR
		head   string // a pattern; "" if no byte is to come
		length int    // of the body; -1 if the case looks itself
		end    error
		bought int
		also   func(t *testing.T, w wire, whole string)
	}{
		"none": {fault: mockcarrier.Status(500).On("getStatus").MayNotFire(), head: healthy, length: -1, end: open},
		"status": {
			fault: mockcarrier.Status(503).RetryAfter(7), length: -1, end: open,
			head: `(?s)^HTTP/1\.1 503 Service Unavailable\r\n.*Content-Type: application/problem\+json\r\n.*Retry-After: 7\r\n`,
		},
		"status with a body": {
			fault: mockcarrier.Status(429).WithBody("slow down").WithHeader("X-A", "1"), length: 9, end: open,
			head: `(?s)^HTTP/1\.1 429 Too Many Requests\r\n.*Content-Length: 9\r\nContent-Type: text/plain; charset=utf-8\r\n.*X-A: 1\r\n`,
		},
		"status after": {
			fault: mockcarrier.Status(503).AfterProcessing(), buy: true, length: -1, end: open, bought: 1,
			head: `^HTTP/1\.1 503 `,
		},
		"204": {fault: mockcarrier.Status(204), length: 0, end: open, head: `^HTTP/1\.1 204 No Content\r\n`},
		"delay": {
			fault: mockcarrier.Delay(10 * time.Millisecond), head: healthy, length: -1, end: open,
			also: func(t *testing.T, w wire, _ string) {
				if w.took < 10*time.Millisecond {
					t.Errorf("it took %v", w.took)
				}
			},
		},
		"stall":        {fault: mockcarrier.Stall(), buy: true, end: open},
		"stall after":  {fault: mockcarrier.StallAfter(), buy: true, end: open, bought: 1},
		"stall body":   {fault: mockcarrier.StallBody(20), buy: true, head: `(?s)^HTTP/1\.1 201 .*Content-Length: \d{3}\r\n`, length: 20, end: open, bought: 1},
		"stall headed": {fault: mockcarrier.StallBody(0), head: healthy, length: 0, end: open},
		"drip": {
			fault: mockcarrier.Drip(200, 2*time.Millisecond), head: healthy, length: -1, end: open,
			also: func(t *testing.T, w wire, whole string) {
				if _, body := w.parts(); body != whole {
					t.Errorf("got %q, want %q", body, whole)
				}
				if least := time.Duration((len(whole)+199)/200) * 2 * time.Millisecond; w.took < least {
					t.Errorf("it took %v, less than %v", w.took, least)
				}
			},
		},
		"truncated by length": {
			fault: mockcarrier.Truncate(30, mockcarrier.ByLength), buy: true, length: 30, end: io.EOF, bought: 1,
			head: `(?s)^HTTP/1\.1 201 .*Content-Length: \d{3}\r\n`,
		},
		"truncated in chunks": {
			fault: mockcarrier.Truncate(30, mockcarrier.ByChunks), length: -1, end: io.EOF,
			head: `(?s)^HTTP/1\.1 200 .*Transfer-Encoding: chunked\r\n`,
			also: func(t *testing.T, w wire, whole string) {
				if _, body := w.parts(); body != fmt.Sprintf("%x\r\n%s", len(whole), whole[:30]) {
					t.Errorf("got %q", body)
				}
			},
		},
		"truncated by close": {
			fault: mockcarrier.Truncate(30, mockcarrier.ByClose), length: 30, end: io.EOF,
			head: `(?s)^HTTP/1\.1 200 .*Connection: close\r\n`,
			also: func(t *testing.T, w wire, _ string) {
				if head, _ := w.parts(); strings.Contains(head, "Content-Length") || strings.Contains(head, "chunked") {
					t.Errorf("the length is told: %s", head)
				}
			},
		},
		"truncated beyond the end": {
			fault: mockcarrier.Truncate(1<<40, ""), head: healthy, length: -1, end: io.EOF,
			also: func(t *testing.T, w wire, whole string) {
				if _, body := w.parts(); body != whole[:len(whole)-1] {
					t.Errorf("got %q", body)
				}
			},
		},
		"reset before":        {fault: mockcarrier.ResetBefore(), buy: true, end: reset},
		"reset after":         {fault: mockcarrier.ResetAfter(), buy: true, end: reset, bought: 1},
		"reset in the body":   {fault: mockcarrier.ResetBody(30), buy: true, head: `^HTTP/1\.1 201 `, length: 30, end: reset, bought: 1},
		"close before":        {fault: mockcarrier.CloseBefore(), buy: true, end: io.EOF},
		"close after":         {fault: mockcarrier.CloseAfter(), buy: true, end: io.EOF, bought: 1},
		"malformed JSON":      {fault: mockcarrier.MalformedJSON(), head: healthy, length: -1, end: open, also: wantJSON(false)},
		"HTML 200":            {fault: mockcarrier.HTML(200), length: -1, end: open, head: `(?s)^HTTP/1\.1 200 OK\r\n.*Content-Type: text/html; charset=utf-8\r\n`, also: wantBody("<h1>OK</h1>")},
		"HTML 502":            {fault: mockcarrier.HTML(502), buy: true, length: -1, end: open, head: `^HTTP/1\.1 502 Bad Gateway\r\n`, also: wantBody("<h1>Bad Gateway</h1>")},
		"HTML 502 after":      {fault: mockcarrier.HTML(502).AfterProcessing(), buy: true, length: -1, end: open, bought: 1, head: `^HTTP/1\.1 502 `},
		"wrong Content-Type":  {fault: mockcarrier.ContentType("text/plain"), length: -1, end: open, head: `Content-Type: text/plain\r\n`, also: wantJSON(true)},
		"no Content-Type":     {fault: mockcarrier.ContentType(""), length: -1, end: open, head: `^HTTP/1\.1 200 `, also: wantNoHeader("Content-Type")},
		"empty 200":           {fault: mockcarrier.EmptyOK(), buy: true, length: 0, end: open, bought: 1, head: `(?s)^HTTP/1\.1 200 OK\r\n.*Content-Length: 0\r\n`},
		"oversize":            {fault: mockcarrier.Oversize(1 << 20), length: -1, end: open, head: `Transfer-Encoding: chunked\r\n`, also: wantSize(1 << 20)},
		"oversize by length":  {fault: mockcarrier.Fault{Kind: mockcarrier.KindOversize, Bytes: 1 << 20, Framing: mockcarrier.ByLength}, length: 1 << 20, end: open, head: `Content-Length: 1048576\r\n`, also: wantJSON(true)},
		"unknown fields":      {fault: mockcarrier.UnknownFields(), head: healthy, length: -1, end: open, also: both(wantJSON(true), wantBody(`"newSince2030":`))},
		"unknown enum values": {fault: mockcarrier.UnknownEnums(), head: healthy, length: -1, end: open, also: both(wantJSON(true), wantBody(`"status":"handed_to_a_drone"`))},
		"times without zones": {
			fault: mockcarrier.ZonelessTimes(), head: healthy, length: -1, end: open,
			also: both(wantJSON(true), func(t *testing.T, w wire, whole string) {
				want := strings.ReplaceAll(whole, `+03:00"`, `"`)
				if _, body := w.parts(); body != want || want == whole {
					t.Errorf("got %s", body)
				}
			}),
		},
		"twice": {
			fault: mockcarrier.Duplicate(), head: healthy, length: -1, end: io.EOF,
			also: func(t *testing.T, w wire, whole string) {
				if half := len(w.bytes) / 2; w.bytes[:half] != w.bytes[half:] || !strings.HasSuffix(w.bytes, whole) {
					t.Errorf("got %q", w.bytes)
				}
			},
		},
		"1xx first": {
			fault: mockcarrier.Informational(103, 2).WithHeader("Link", "</a>"), length: -1, end: open,
			head: `^HTTP/1\.1 103 Early Hints\r\nLink: </a>\r\n`,
			also: func(t *testing.T, w wire, whole string) {
				interim := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
				rest, ok := strings.CutPrefix(w.bytes, interim+interim+"HTTP/1.1 200 OK\r\n")
				if !ok || strings.Contains(rest, "Link:") || !strings.HasSuffix(rest, whole) {
					t.Errorf("got %q", w.bytes)
				}
			},
		},
		"garbage":        {fault: mockcarrier.Garbage(), buy: true, head: `^220 mail\.example ESMTP\r\n$`, length: 0, end: io.EOF, bought: 1},
		"garbage before": {fault: mockcarrier.Garbage().BeforeProcessing().WithBody("\x00\x01"), buy: true, head: `^\x00\x01\r\n$`, length: 0, end: io.EOF},
		"bad chunk": {
			fault: mockcarrier.BadChunk(), length: -1, end: io.EOF, head: `(?s)^HTTP/1\.1 200 .*Transfer-Encoding: chunked\r\n`,
			also: func(t *testing.T, w wire, whole string) {
				if _, body := w.parts(); body != "lots\r\n"+whole+"\r\n0\r\n\r\n" {
					t.Errorf("got %q", body)
				}
			},
		},
		"overlong": {
			fault: mockcarrier.Overlong(), head: healthy, length: -1, end: io.EOF,
			also: func(t *testing.T, w wire, whole string) {
				if head, body := w.parts(); body != whole || !strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", len(whole)/2)) {
					t.Errorf("got %q", w.bytes)
				}
			},
		},
		"large header": {
			fault: mockcarrier.LargeHeader(1 << 20), head: `X-Padding: x{1000}`, length: -1, end: open,
			also: func(t *testing.T, w wire, _ string) {
				if head, _ := w.parts(); len(head) < 1<<20 || len(head) > 1<<20+1000 {
					t.Errorf("a head of %d bytes", len(head))
				}
			},
		},
		"bad gzip": {fault: mockcarrier.BadGzip(), length: -1, end: open, head: `Content-Encoding: gzip\r\n`, also: wantJSON(true)},
		"204 with a body": {
			fault: mockcarrier.NoContentWithBody(), length: -1, end: io.EOF, head: `(?s)^HTTP/1\.1 204 No Content\r\n.*Content-Length: \d{3}\r\n`,
			also: func(t *testing.T, w wire, whole string) {
				if _, body := w.parts(); body != whole {
					t.Errorf("got %q", body)
				}
			},
		},
		"nulls": {fault: mockcarrier.Nulls(), head: healthy, length: -1, end: open, also: both(wantJSON(true), wantBody(`"status":null`))},
		"redirect to itself": {
			fault: mockcarrier.RedirectLoop(308), length: 0, end: open,
			head: `(?s)^HTTP/1\.1 308 Permanent Redirect\r\n.*Location: /v1/tracking/BK1001TR\r\n`,
		},
		"expired token": {
			fault: mockcarrier.ExpiredToken(), length: -1, end: open, also: wantBody(`"code":"token_expired"`),
			head: `(?s)^HTTP/1\.1 401 Unauthorized\r\n.*Www-Authenticate: Bearer realm="carrier", error="invalid_token"`,
		},
		"Retry-After as a date": {
			fault: mockcarrier.Status(429).RetryAfterDate(90 * time.Second), length: -1, end: open, head: `^HTTP/1\.1 429 `,
			also: func(t *testing.T, w wire, _ string) {
				resp, _ := w.parse(t)
				sent, _ := http.ParseTime(resp.Header.Get("Date"))
				if at, err := http.ParseTime(resp.Header.Get("Retry-After")); err != nil || at.Sub(sent) != 90*time.Second {
					t.Errorf("Retry-After %v after %v: %v", at, sent, err)
				}
			},
		},
		"redirect": {
			fault: mockcarrier.Redirect(307, "https://elsewhere.example/"), buy: true, length: 0, end: open,
			head: `(?s)^HTTP/1\.1 307 Temporary Redirect\r\n.*Location: https://elsewhere\.example/\r\n`,
		},
	} {
		check := func(t *testing.T, s *mockcarrier.Server) {
			_, whole := speak(t, s, rawGet("/tracking/BK1001TR"), wire.whole).parts()
			s.Inject(tc.fault)
			request := rawGet("/tracking/BK1001TR")
			if tc.buy {
				request = rawBuy("k")
			}
			all := wire.whole
			switch tc.fault.Kind {
			case mockcarrier.KindStall:
				all = func(wire) bool { return true }
			case mockcarrier.KindStallBody:
				all = func(w wire) bool {
					_, body, headed := strings.Cut(w.bytes, "\r\n\r\n")
					return headed && len(body) >= tc.length
				}
			}
			w := speak(t, s, request, all)
			if !errors.Is(w.end, tc.end) {
				t.Errorf("the connection ended with %v, want %v", w.end, tc.end)
			}
			head, body := w.parts()
			if tc.head == "" && w.bytes != "" {
				t.Errorf("%q came", w.bytes)
			}
			if !regexp.MustCompile(tc.head).MatchString(head) {
				t.Errorf("the head is\n%s", head)
			}
			if tc.length >= 0 && len(body) != tc.length {
				t.Errorf("%d bytes of body came, want %d: %.200q", len(body), tc.length, body)
			}
			if tc.also != nil {
				tc.also(t, w, whole)
			}
			if got := len(s.Ledger()); got != tc.bought {
				t.Errorf("%d bought, want %d", got, tc.bought)
			}
			entry := s.Requests()[1]
			if !tc.fault.Optional && entry.Fault != tc.fault.String() {
				t.Errorf("the journal has the fault %q, want %q", entry.Fault, tc.fault)
			}
			if noAnswer := tc.head == "" || tc.fault.Kind == mockcarrier.KindGarbage; noAnswer != (entry.Status == 0) {
				t.Errorf("the journal has the status %d", entry.Status)
			}
		}
		t.Run(name+"/TCP", func(t *testing.T) {
			t.Parallel()
			check(t, mockcarrier.Start(t))
		})
		t.Run(name+"/in memory", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { check(t, mockcarrier.StartInMemory(t)) })
		})
	}
}

func both(checks ...func(*testing.T, wire, string)) func(*testing.T, wire, string) {
	return func(t *testing.T, w wire, whole string) {
		for _, check := range checks {
			check(t, w, whole)
		}
	}
}

func wantJSON(valid bool) func(*testing.T, wire, string) {
	return func(t *testing.T, w wire, _ string) {
		resp, body := w.parse(t)
		if json.Valid(body) != valid || resp.ContentLength != int64(len(body)) {
			t.Errorf("length %d: %.300s", resp.ContentLength, body)
		}
	}
}

func wantBody(part string) func(*testing.T, wire, string) {
	return func(t *testing.T, w wire, _ string) {
		if _, body := w.parse(t); !strings.Contains(string(body), part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
}

func wantNoHeader(name string) func(*testing.T, wire, string) {
	return func(t *testing.T, w wire, _ string) {
		if head, _ := w.parts(); strings.Contains(head, name+":") {
			t.Errorf("%s in %s", name, head)
		}
	}
}

func wantSize(size int) func(*testing.T, wire, string) {
	return func(t *testing.T, w wire, _ string) {
		if _, body := w.parse(t); len(body) != size || !json.Valid(body) {
			t.Errorf("%d bytes: %.100s…", len(body), body)
		}
	}
}

func (w wire) parse(t *testing.T) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(w.bytes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// What net/http makes of each fault, over HTTP/1.1 and HTTP/2, on TCP and in
// memory.
func TestFaultsAsNetHTTPSeesThem(t *testing.T) {
	timeout := errors.New("timeout")
	syntax := errors.New("syntax")
	log.SetOutput(io.Discard) // net/http tells there of bytes behind an answer
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, tc := range map[string]struct {
		fault   mockcarrier.Fault
		h1, h2  error // nil: the answer is whole
		aborted bool  // over HTTP/2 any error will do
	}{
		"stall":               {fault: mockcarrier.Stall(), h1: timeout, h2: timeout},
		"stall body":          {fault: mockcarrier.StallBody(10), h1: timeout, h2: timeout},
		"truncated by length": {fault: mockcarrier.Truncate(30, mockcarrier.ByLength), h1: io.ErrUnexpectedEOF, aborted: true},
		"truncated in chunks": {fault: mockcarrier.Truncate(30, mockcarrier.ByChunks), h1: io.ErrUnexpectedEOF, aborted: true},
		"truncated by close":  {fault: mockcarrier.Truncate(30, mockcarrier.ByClose), h1: syntax, h2: syntax},
		"reset before":        {fault: mockcarrier.ResetBefore(), h1: reset, h2: reset},
		"reset after":         {fault: mockcarrier.ResetAfter(), h1: reset, h2: reset},
		"reset in the body":   {fault: mockcarrier.ResetBody(30), h1: reset, aborted: true},
		"close before":        {fault: mockcarrier.CloseBefore(), h1: io.EOF, aborted: true},
		"close after":         {fault: mockcarrier.CloseAfter(), h1: io.EOF, aborted: true},
		"malformed JSON":      {fault: mockcarrier.MalformedJSON(), h1: syntax, h2: syntax},
		"garbage":             {fault: mockcarrier.Garbage(), aborted: true},
		"bad chunk":           {fault: mockcarrier.BadChunk(), aborted: true},
		"overlong":            {fault: mockcarrier.Overlong(), h1: syntax, aborted: true},
		"204 with a body":     {fault: mockcarrier.NoContentWithBody(), h1: syntax, h2: syntax},
		"large header":        {fault: mockcarrier.LargeHeader(100_000)},
		"HTML":                {fault: mockcarrier.HTML(200), h1: syntax, h2: syntax},
		"empty":               {fault: mockcarrier.EmptyOK(), h1: syntax, h2: syntax},
		"oversize":            {fault: mockcarrier.Oversize(200_000)},
		"1xx first":           {fault: mockcarrier.Informational(103, 3)},
		"drip":                {fault: mockcarrier.Drip(100, time.Millisecond)},
	} {
		see := func(t *testing.T, s *mockcarrier.Server, want error, any bool) {
			s.Inject(tc.fault.On("createShipment"))
			a := newAPI(s)
			a.client.Timeout = patience
			if tc.h1 == timeout {
				a.client.Timeout = wink
			}
			r, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k")
			var netErr net.Error
			switch {
			case err == nil && !json.Valid([]byte(r.body)):
				err = syntax
			case errors.As(err, &netErr) && netErr.Timeout():
				err = timeout
			}
			if any && err == nil || !any && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		for version, opts := range map[string][]mockcarrier.Option{
			"HTTP 1.1": nil, "HTTP 1.1 TLS": {mockcarrier.WithTLS()},
			"HTTP 2": {mockcarrier.WithHTTP2()}, "HTTP 2 TLS": {mockcarrier.WithHTTP2(), mockcarrier.WithTLS()},
		} {
			want, any := tc.h1, tc.h1 == nil && tc.aborted
			if strings.HasPrefix(version, "HTTP 2") {
				want, any = tc.h2, tc.aborted
			}
			t.Run(name+"/"+version+"/TCP", func(t *testing.T) {
				// The kernel tells of a reset once, and HTTP/2's writer may be the one that hears it.
				any := any || want == reset && strings.HasPrefix(version, "HTTP 2")
				see(t, mockcarrier.Start(t, opts...), want, any)
			})
			t.Run(name+"/"+version+"/in memory", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { see(t, mockcarrier.StartInMemory(t, opts...), want, any) })
			})
		}
	}
}

// A stall ends when the client goes away, and when the server closes.
func TestStallsEnd(t *testing.T) {
	for name, fault := range map[string]mockcarrier.Fault{
		"stall": mockcarrier.Stall(), "stall during": mockcarrier.Stall().DuringProcessing(), "stall after": mockcarrier.StallAfter(),
		"stall body": mockcarrier.StallBody(5), "drip": mockcarrier.Drip(1, time.Hour),
	} {
		t.Run(name+", the client goes away", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mockcarrier.StartInMemory(t)
				s.Inject(fault.Times(1))
				a := newAPI(s)
				a.client.Timeout = time.Minute
				_, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k")
				var netErr net.Error
				if !errors.As(err, &netErr) || !netErr.Timeout() {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if entry := s.Requests()[0]; entry.Duration != time.Minute {
					t.Errorf("the carrier had it for %v", entry.Duration)
				}
				if strings.Contains(name, "during") { // its key is free again
					a.buy(t, "k", order).want(t, 201)
				}
			})
		})
		t.Run(name+", the server closes", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mockcarrier.StartInMemory(t)
				s.Inject(fault)
				a := newAPI(s)
				go func() {
					time.Sleep(time.Minute)
					s.Close()
				}()
				start := time.Now()
				if _, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k"); err == nil || time.Since(start) != time.Minute {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			})
		})
	}
	t.Run("a delay goes on when the client has gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := mockcarrier.StartInMemory(t, mockcarrier.WithLatency(time.Hour))
			a := newAPI(s)
			a.client.Timeout = time.Minute
			_, err := a.try("POST", "/shipments", order, "Idempotency-Key", "k")
			if err == nil {
				t.Error("an answer came")
			}
			time.Sleep(time.Hour)
			if len(s.Ledger()) != 1 {
				t.Error("the carrier did not go on")
			}
		})
	})
}

func TestOversizeLabelIsStreamed(t *testing.T) {
	s := mockcarrier.StartInMemory(t)
	a := newAPI(s)
	a.buy(t, "k", order).want(t, 201)
	s.Inject(mockcarrier.Oversize(64 << 20).On("getLabel"))
	req, _ := http.NewRequest("GET", s.URL+"/shipments/shp_2001/label", nil)
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	start := make([]byte, 8)
	_, _ = io.ReadFull(resp.Body, start)
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n+8 != 64<<20 || !bytes.HasPrefix(start, []byte("%PDF-1.")) {
		t.Errorf("%d bytes, %v, begins with %q", n+8, err, start)
	}
}
