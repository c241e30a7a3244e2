package mockcarrier_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestProtocols(t *testing.T) {
	for name, tc := range map[string]struct {
		opts          []mockcarrier.Option
		scheme, proto string
	}{
		"HTTP 1.1":     {nil, "http://", "HTTP/1.1"},
		"HTTP 1.1 TLS": {[]mockcarrier.Option{mockcarrier.WithTLS()}, "https://", "HTTP/1.1"},
		"HTTP 2":       {[]mockcarrier.Option{mockcarrier.WithHTTP2()}, "http://", "HTTP/2.0"},
		"HTTP 2 TLS":   {[]mockcarrier.Option{mockcarrier.WithTLS(), mockcarrier.WithHTTP2()}, "https://", "HTTP/2.0"},
	} {
		check := func(t *testing.T, s *mockcarrier.Server) {
			a := newAPI(s)
			if r := a.get(t, "/tracking/BK1001TR"); r.StatusCode != 200 || r.Proto != tc.proto {
				t.Errorf("got %s over %s", r.Status, r.Proto)
			}
			if !strings.HasPrefix(s.URL, tc.scheme) || !strings.HasSuffix(s.URL, "/v1") {
				t.Errorf("the URL is %s", s.URL)
			}
			url := a.buy(t, "k", order).want(t, 201)["labels"].([]any)[0].(map[string]any)["url"].(string)
			if !strings.HasPrefix(url, s.URL) {
				t.Errorf("the label is at %s", url)
			}
			if (s.CertPool() != nil) != (tc.scheme == "https://") {
				t.Error("the certificate pool does not fit")
			}
		}
		t.Run(name+"/TCP", func(t *testing.T) { check(t, mockcarrier.Start(t, tc.opts...)) })
		t.Run(name+"/in memory", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, mockcarrier.StartInMemory(t, tc.opts...)) })
		})
	}
}

func TestClientReachesNoOtherHost(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		s := start(t)
		for _, url := range []string{"http://carrier.example/v1/status", "http://127.0.0.1:1/v1/status", strings.Replace(s.URL, "://", "://x.", 1) + "/status"} {
			_, err := s.Client().Get(url)
			if err == nil || !strings.Contains(err.Error(), "this client reaches only the mock carrier at") {
				t.Errorf("%s: %v", url, err)
			}
		}
		s.Inject(mockcarrier.Redirect(307, "http://elsewhere.example/").Times(1))
		if _, err := newAPI(s).try("GET", "/status", ""); err == nil || !strings.Contains(err.Error(), "refused to reach elsewhere.example") {
			t.Errorf("redirected: %v", err)
		}
		if _, err := s.DialContext(t.Context(), "tcp", "elsewhere.example:80"); err == nil || !strings.Contains(err.Error(), "refused to reach") {
			t.Errorf("dialled: %v", err)
		}
	})
}

func TestAfterClose(t *testing.T) {
	onBothNetworks(t, func(t *testing.T, start func(testing.TB, ...mockcarrier.Option) *mockcarrier.Server) {
		s := start(t)
		a := newAPI(s)
		a.get(t, "/status").want(t, 200)
		s.Close()
		s.Close()
		if _, err := a.try("GET", "/status", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want ECONNREFUSED", err)
		}
		if len(s.Requests()) != 1 {
			t.Errorf("the journal is %v", s.Requests())
		}
	})
}

// goroutines waits for those that are ending, and returns how many are left.
func goroutines(most int) int {
	n := runtime.NumGoroutine()
	for range 200 {
		if n <= most {
			break
		}
		time.Sleep(time.Millisecond)
		n = runtime.NumGoroutine()
	}
	return n
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := goroutines(0)
	for i := range 1000 {
		start, opts := mockcarrier.StartInMemory, []mockcarrier.Option(nil)
		switch {
		case i%20 == 0:
			opts = []mockcarrier.Option{mockcarrier.WithHTTP2(), mockcarrier.WithTLS()}
		case i%5 == 0:
			start = mockcarrier.Start
		}
		tb := &recordingTB{}
		s := start(tb, opts...)
		a := newAPI(s)
		if r, err := a.try("GET", "/status", ""); err != nil || r.StatusCode != 200 {
			t.Fatalf("server %d: %v", i, err)
		}
		if i%10 == 0 { // one that is held when the server closes
			s.Inject(mockcarrier.Stall())
			started := make(chan struct{})
			go func() {
				close(started)
				_, _ = a.try("GET", "/status", "")
			}()
			<-started
		}
		s.ClearFaults()
		s.Close()
	}
	if after := goroutines(before); after > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

func TestHandlerInAnyServer(t *testing.T) {
	c := mockcarrier.New()
	defer c.Close()
	rec := newRecorder()
	req, _ := http.NewRequest("GET", "/v1/tracking/BK1001TR", http.NoBody)
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	c.ServeHTTP(rec, req)
	if rec.status != 200 || !strings.Contains(rec.body.String(), "in_transit") {
		t.Errorf("got %d %s", rec.status, rec.body.String())
	}
	if entry := c.Requests()[0]; entry.Connection != 0 || entry.Nth != 0 {
		t.Errorf("got %+v", entry)
	}
	// A connection that cannot be had is aborted, as far as the handler can.
	c.Inject(mockcarrier.ResetBefore())
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("not aborted")
			}
		}()
		c.ServeHTTP(newRecorder(), req)
	}()
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func TestVerdictAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []mockcarrier.Option
		test func(a api)
		want []string // parts of the failure; none if the test passes
	}{
		"all is well": {test: func(a api) {
			a.Inject(mockcarrier.Status(503).Times(1))
			_, _ = a.try("GET", "/status", "")
		}},
		"a fault that never struck": {
			test: func(a api) {
				a.Inject(mockcarrier.Status(503).RetryAfter(1).On("createShipment").Times(2))
				a.Inject(mockcarrier.ResetAfter().EveryNth(3))
				a.Inject(mockcarrier.Delay(time.Second).On("getStatus"))
				a.ClearFaults()
				_, _ = a.try("GET", "/status", "")
			},
			want: []string{
				"mockcarrier: 3 injected faults never struck:\n",
				"  fault                       for                      requests that matched  struck\n",
				"  status 503, Retry-After: 1  createShipment, first 2  0                      0\n",
				"  reset after processing      all requests, every 3    0                      0\n",
				"requests that came: getStatus 1",
			},
		},
		"a fault that may not strike": {test: func(a api) { a.Inject(mockcarrier.Status(503).MayNotFire()) }},
		"requests that match nothing": {
			test: func(a api) {
				_, _ = a.try("GET", "/trackin/BK1001TR", "")
				_, _ = a.try("PUT", "/shipments", "{}")
			},
			want: []string{
				"mockcarrier: 2 requests matched no operation:\n",
				"  1  GET     /v1/trackin/BK1001TR  404       getTracking: GET /v1/tracking/{trackingNumber}\n",
				"  2  PUT     /v1/shipments         405       ",
			},
		},
		"requests that may match nothing": {
			opts: []mockcarrier.Option{mockcarrier.WithUnmatchedAllowed()},
			test: func(a api) { _, _ = a.try("GET", "/nowhere", "") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			tb := &recordingTB{}
			a := newAPI(mockcarrier.StartInMemory(tb, tc.opts...))
			tc.test(a)
			tb.finish()
			got := strings.Join(tb.errors, "\n")
			if len(tc.want) == 0 && got != "" {
				t.Errorf("it failed: %s", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(got, part) {
					t.Errorf("no %q in:\n%s", part, got)
				}
			}
			if _, err := a.try("GET", "/status", ""); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("the server goes on: %v", err)
			}
		})
	}
	t.Run("a test that has failed already is only told", func(t *testing.T) {
		tb := &recordingTB{}
		mockcarrier.StartInMemory(tb).Inject(mockcarrier.Status(503))
		tb.Error("stopped early")
		tb.finish()
		if len(tb.errors) != 1 || len(tb.logs) != 1 || !strings.Contains(tb.logs[0], "never struck") {
			t.Errorf("errors %q, logs %q", tb.errors, tb.logs)
		}
	})
}

func TestTransportCanBeHadAgain(t *testing.T) {
	s := mockcarrier.StartInMemory(t)
	one, other := s.Transport(), s.Transport()
	if one == other {
		t.Error("two callers share a transport")
	}
	for _, transport := range []http.RoundTripper{one, other} {
		req, _ := http.NewRequest("GET", s.URL+"/status", nil)
		req.Header.Set("X-Api-Key", mockcarrier.APIKey)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if journal := s.Requests(); journal[0].Connection == journal[1].Connection {
		t.Error("two transports share a connection")
	}
}
