package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// A purchase that has only looked when the service is told to stop buys all the
// same, and is answered: the client is closed after the server.
func TestStoppedDuringACall(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Delay(time.Second))
		s := open(t, mock)
		got := make(chan answer, 1)
		go func() { got <- s.post(purchase1001) }()
		synctest.Wait()
		if n := asked(mock, "listShipments"); n != 1 || len(mock.Requests()) != 1 {
			t.Fatalf("the carrier has %d requests", len(mock.Requests()))
		}
		s.stop()
		synctest.Wait()
		if _, err := s.try(t.Context(), http.MethodGet, "/livez", "", nil); err == nil {
			t.Error("it takes new requests")
		}
		select {
		case <-s.ended:
			t.Fatal("it ended before the request")
		default:
		}
		boughtOnce(t, mock, s.expect(201, <-got))
		<-s.ended
		if s.err != nil {
			t.Error(s.err)
		}
	})
}

// While it drains it works, and says that it is about to stop.
func TestDrain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		s := open(t, mock, "-drain", "10s")
		s.expect(200, s.do(http.MethodGet, "/readyz", ""))
		s.stop()
		synctest.Wait()
		if a, err := s.try(t.Context(), http.MethodGet, "/readyz", "", nil); err != nil || a.status != 503 || !strings.Contains(a.body, "stopping") {
			t.Errorf("got %d %s, %v", a.status, a.body, err)
		}
		s.expect(200, s.get("/api/shipments/BK1001TR"))
		if took := elapsed(func() { <-s.ended }); took < 9*time.Second {
			t.Errorf("it drained for %v", took)
		}
	})
}

func TestServerLimits(t *testing.T) {
	cfg, err := parse(nil, environment, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(cfg, nil, newLogger(new(logLines)))
	if server.WriteTimeout <= server.ReadTimeout+longest(cfg) {
		t.Errorf("WriteTimeout is %v, and a request may take %v after up to %v of reading", server.WriteTimeout, longest(cfg), server.ReadTimeout)
	}
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.IdleTimeout <= 0 {
		t.Error("a client may hold a connection for ever")
	}
}

func TestOtherRoutes(t *testing.T) {
	for request, want := range map[string]struct {
		status int
		allow  string
	}{
		"GET /":                            {404, ""},
		"GET /api/orders":                  {404, ""},
		"POST /api/shipments/BK1001TR":     {405, "GET, HEAD"},
		"PUT " + purchase1001:              {405, "GET, HEAD, POST"},
		"DELETE /readyz":                   {405, "GET, HEAD"},
		"GET /api/../api/orders/x/nothing": {404, ""},
	} {
		t.Run(request, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				s := open(t, mock)
				method, path, _ := strings.Cut(request, " ")
				a := s.expect(want.status, s.do(method, path, ada))
				if got := a.header.Get("Allow"); got != want.allow {
					t.Errorf("Allow: %q", got)
				}
			})
		})
	}
}

func TestBodies(t *testing.T) {
	for name, tc := range map[string]struct{ size, status, charges int }{
		"at the limit":   {maxBody, 201, 1},
		"over the limit": {maxBody + 1, 413, 0},
		"far over it":    {1 << 20, 413, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
				s := open(t, mock)
				a, err := s.try(t.Context(), http.MethodPost, purchase1001, ada, bytes.NewReader(make([]byte, tc.size)))
				if err != nil {
					t.Fatal(err)
				}
				s.checkAnswer(s.expect(tc.status, a))
				if n := len(mock.Ledger()); n != tc.charges {
					t.Errorf("%d charges", n)
				}
			})
		})
	}
}

func TestRequestIDs(t *testing.T) {
	for given, kept := range map[string]bool{
		"desk-3.17_a": true, "": false, "a b": false, "é": false, strings.Repeat("x", 65): false, "<script>": false,
	} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(requestIDHeader, given)
		var inside string
		withRequestID(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { inside = visitOf(r.Context()).id })).ServeHTTP(rec, r)
		told := rec.Header().Get(requestIDHeader)
		if told != inside || told == "" || (told == given) != kept {
			t.Errorf("%q: the handler has %q, the client %q", given, inside, told)
		}
	}
}

// The retries of a request are found by its id.
func TestLogOfARequest(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, mock *mockcarrier.Server) {
		mock.Inject(mockcarrier.Status(503).Times(2))
		s := open(t, mock)
		a := s.expect(200, s.get("/api/shipments/BK1001TR"))
		s.expect(200, s.get("/api/shipments/BK1002TR"))
		id, lines := a.header.Get(requestIDHeader), map[string]int{}
		for _, line := range s.log.read(t, "") {
			if line.RequestID == id && line.User == "ada" {
				lines[line.Message]++
			}
		}
		if lines["retrying"] != 2 || lines["request"] != 1 || len(lines) != 2 {
			t.Errorf("got %v", lines)
		}
	})
}

func TestPanics(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		status  int // 0: the connection is cut
		logged  int
	}{
		"before the answer": {func(http.ResponseWriter, *http.Request) { panic("10.0.0.7 " + adaToken[:3]) }, 500, 1},
		"within the answer": {func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, 1); panic("late") }, 0, 1},
		"on purpose":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(logLines)
			s := &shop{log: newLogger(log)}
			server := httptest.NewUnstartedServer(withRequestID(s.logRequests(s.recoverPanics(tc.handler))))
			server.Start()
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			switch {
			case tc.status == 0 && err == nil:
				var body bytes.Buffer
				if _, err := body.ReadFrom(resp.Body); err == nil {
					t.Errorf("a whole answer: %s", &body)
				}
				_ = resp.Body.Close()
			case tc.status != 0 && err != nil:
				t.Fatal(err)
			case tc.status != 0:
				var body bytes.Buffer
				_, _ = body.ReadFrom(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != tc.status || strings.Contains(body.String(), "10.0.0.7") {
					t.Errorf("got %s %s", resp.Status, &body)
				}
			}
			server.Close()
			if lines := log.read(t, "panic"); len(lines) != tc.logged {
				t.Errorf("logged %+v", lines)
			}
			log.check(t)
		})
	}
}

func TestProgram(t *testing.T) {
	logs := new(logLines)
	ctx, stop := context.WithCancel(t.Context())
	status := make(chan int)
	go func() { status <- run(ctx, []string{"-addr", "127.0.0.1:0"}, environment, logs) }()
	for len(logs.read(t, "listening")) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if got := <-status; got != 0 || len(logs.read(t, "stopped")) != 1 {
		t.Errorf("exit status %d, and the log has %+v", got, logs.read(t, ""))
	}
}
