package carrier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The fault matrix: what goes wrong between a service and its carrier, each
// case by its name, through the public API. Waits are in virtual time.

func inMemory(t *testing.T, opts ...carrier.Option) (*mockcarrier.Server, *carrier.Client) {
	t.Helper()
	srv := mockcarrier.StartInMemory(t)
	client := newClient(t, srv.URL, append([]carrier.Option{
		carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(srv.Transport()),
	}, opts...)...)
	return srv, client
}

func as(t *testing.T, err error) *carrier.Error {
	t.Helper()
	var e *carrier.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *carrier.Error: %v", err, err)
	}
	return e
}

// holds checks which sentinels an error is, and which it is not.
func holds(t *testing.T, err error, yes []error, no ...error) {
	t.Helper()
	for _, target := range yes {
		if !errors.Is(err, target) {
			t.Errorf("not %q: %v", target, err)
		}
	}
	for _, target := range no {
		if errors.Is(err, target) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

// keys are the idempotency keys of all requests that arrived, each once.
func keys(srv *mockcarrier.Server) map[string]int {
	m := map[string]int{}
	for _, r := range srv.Requests() {
		m[r.Key]++
	}
	return m
}

func TestFault503Always(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.Status(503))
		_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
		e := as(t, err)
		holds(t, err, []error{carrier.ErrUnavailable, carrier.ErrOutcomeUnknown}, carrier.ErrTimeout, carrier.ErrInvalidRequest)
		if e.StatusCode != 503 || e.Attempts != 3 || e.Outcome != carrier.OutcomeUnknown || e.RequestID == "" || e.IdempotencyKey == "" {
			t.Errorf("%#v: status %d, attempts %d, outcome %v", e, e.StatusCode, e.Attempts, e.Outcome)
		}
		if k := keys(srv); len(k) != 1 || k[e.IdempotencyKey] != 3 {
			t.Errorf("keys: %v", k)
		}
	})
}

func TestFaultResetAfterThePOSTWasProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.ResetAfter().Times(1))
		var info carrier.CallInfo
		s, err := client.CreateShipment(t.Context(), smallestOrder("order-1"), carrier.WithCallInfo(&info))
		if err != nil {
			t.Fatal(err)
		}
		if !info.Replayed || info.StatusCode != 201 {
			t.Errorf("not the replay of what was bought: %+v", info)
		}
		if l := srv.Ledger(); len(l) != 1 || l[0].ShipmentID != s.ID {
			t.Errorf("bought %d times: %v", len(l), l)
		}
	})
}

func TestFaultResetAfterThePOSTWasProcessedAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.ResetAfter())
		order := smallestOrder("order-1")
		key := carrier.DeriveIdempotencyKey("createShipment", "order-1", 1)
		_, err := client.CreateShipment(t.Context(), order, carrier.WithIdempotencyKey(key))
		holds(t, err, []error{carrier.ErrOutcomeUnknown, carrier.ErrUnavailable}, context.Canceled, context.DeadlineExceeded)
		if e := as(t, err); e.IdempotencyKey != key || e.StatusCode != 0 {
			t.Errorf("%+v", e)
		}
		srv.ClearFaults()
		if _, err := client.CreateShipment(t.Context(), order, carrier.WithIdempotencyKey(key)); err != nil {
			t.Fatal(err)
		}
		if n := len(srv.Ledger()); n != 1 {
			t.Errorf("bought %d times", n)
		}
	})
}

func TestFault429WithRetryAfterPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.Status(429).RetryAfter(3600))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := client.GetTracking(ctx, "BK1001TR")
		holds(t, err, []error{carrier.ErrRateLimited}, carrier.ErrTimeout, context.DeadlineExceeded, carrier.ErrOutcomeUnknown)
		if e := as(t, err); e.RetryAfter != time.Hour || e.StatusCode != 429 || e.Attempts != 1 || e.Outcome != carrier.OutcomeRejected {
			t.Errorf("%+v", e)
		}
		if d := time.Since(begun); d > 5*time.Millisecond {
			t.Errorf("waited %s for what cannot come in time", d)
		}
		if n := len(srv.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestFault400WithHTML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.HTML(400))
		_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
		e := as(t, err)
		holds(t, err, []error{carrier.ErrInvalidRequest}, carrier.ErrOutcomeUnknown)
		if e.StatusCode != 400 || e.Problem != nil || e.Attempts != 1 || e.Outcome != carrier.OutcomeRejected || len(e.Body) == 0 || len(e.Body) > 4096 {
			t.Errorf("%+v", e)
		}
		if strings.Contains(err.Error(), "<") {
			t.Errorf("the page is in the text: %v", err)
		}
	})
}

func TestFault200WithACutBody(t *testing.T) {
	for _, framing := range []mockcarrier.Framing{mockcarrier.ByLength, mockcarrier.ByChunks, mockcarrier.ByClose} {
		t.Run(string(framing), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inMemory(t)
				srv.Inject(mockcarrier.Truncate(20, framing).Times(1))
				got, err := client.GetTracking(t.Context(), "BK1001TR")
				if err != nil || len(got.Events) != 2 {
					t.Fatalf("%v, %v", got, err)
				}
				if n := len(srv.Requests()); n != 2 {
					t.Errorf("%d requests", n)
				}
				srv.Inject(mockcarrier.Truncate(20, framing))
				_, err = client.CreateShipment(t.Context(), smallestOrder("order-1"))
				if e := as(t, err); e.Outcome != carrier.OutcomeDone || e.StatusCode != 201 {
					t.Errorf("outcome %v, status %d: %v", e.Outcome, e.StatusCode, err)
				}
				holds(t, err, []error{carrier.ErrUnavailable}, carrier.ErrOutcomeUnknown)
				if n := len(srv.Ledger()); n != 1 {
					t.Errorf("bought %d times", n)
				}
			})
		})
	}
}

func TestFault307ToAnotherHost(t *testing.T) {
	var arrived atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(other.Close)
	srv := mockcarrier.Start(t)
	client := newClient(t, srv.URL, carrier.WithAPIKey(mockcarrier.APIKey))
	srv.Inject(mockcarrier.Redirect(307, other.URL+"/steal"))
	_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"))
	e := as(t, err)
	if e.StatusCode != 307 || e.Attempts != 1 || e.Outcome != carrier.OutcomeUnknown {
		t.Errorf("%+v", e)
	}
	holds(t, err, []error{carrier.ErrOutcomeUnknown})
	if _, err := client.GetTracking(t.Context(), "BK1001TR"); err == nil {
		t.Error("a redirect is no answer")
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests at the other host", n)
	}
}

func TestFault256MiBOfJSON(t *testing.T) {
	srv := mockcarrier.Start(t)
	client := newClient(t, srv.URL, carrier.WithAPIKey(mockcarrier.APIKey))
	srv.Inject(mockcarrier.Oversize(256 << 20))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err := client.GetTracking(t.Context(), "BK1001TR")
	runtime.ReadMemStats(&after)
	holds(t, err, []error{carrier.ErrResponseTooLarge}, carrier.ErrUnavailable, carrier.ErrTimeout)
	if e := as(t, err); e.Attempts != 1 || e.Outcome != carrier.OutcomeDone || e.StatusCode != 200 {
		t.Errorf("%+v", e)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d MiB were allocated for an answer that may have 8", got>>20)
	}
	if got := client.BreakerState("tracking"); got != carrier.BreakerClosed {
		t.Errorf("breaker %v", got)
	}
}

func TestFault429ThenTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.Status(429).RetryAfter(2).Times(1))
		begun := time.Now()
		if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d < 2*time.Second || d > 2200*time.Millisecond {
			t.Errorf("took %s, and 2 s with up to a tenth more were asked for", d)
		}
		if n := len(srv.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestFaultTheFirstAttemptHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.Stall().Times(1))
		begun := time.Now()
		var info carrier.CallInfo
		if _, err := client.GetTracking(t.Context(), "BK1001TR", carrier.WithAttemptTimeout(700*time.Millisecond), carrier.WithCallInfo(&info)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d < 700*time.Millisecond || d > 900*time.Millisecond {
			t.Errorf("took %s", d)
		}
		if info.Attempts != 2 || info.Sends != 2 {
			t.Errorf("%+v", info)
		}
	})
}

func TestFaultEveryAttemptHangs(t *testing.T) {
	for _, stall := range []struct {
		name  string
		fault mockcarrier.Fault
		done  carrier.Outcome
	}{
		{"before the headers", mockcarrier.Stall(), carrier.OutcomeUnknown},
		{"in the body", mockcarrier.StallBody(10), carrier.OutcomeDone},
	} {
		t.Run(stall.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inMemory(t)
				srv.Inject(stall.fault)
				begun := time.Now()
				_, err := client.CreateShipment(t.Context(), smallestOrder("order-1"), carrier.WithTimeout(5*time.Second), carrier.WithAttemptTimeout(2*time.Second))
				e := as(t, err)
				holds(t, err, []error{carrier.ErrTimeout}, context.DeadlineExceeded, carrier.ErrUnavailable)
				if d := time.Since(begun); d > 5*time.Second+5*time.Millisecond {
					t.Errorf("took %s, and 5 s were given", d)
				}
				if e.Outcome != stall.done || e.Timeout == 0 {
					t.Errorf("outcome %v, timeout %s: %v", e.Outcome, e.Timeout, err)
				}
			})
		})
	}
}

func TestFaultCancelInTheMiddleOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inMemory(t)
		srv.Inject(mockcarrier.Status(503).RetryAfter(5))
		why := errors.New("the shopper closed the tab")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		begun := time.Now()
		_, err := client.CreateShipment(ctx, smallestOrder("order-1"))
		if d := time.Since(begun); d != time.Second {
			t.Errorf("returned after %s, and the caller left after 1 s", d)
		}
		holds(t, err, []error{context.Canceled, why, carrier.ErrUnavailable, carrier.ErrOutcomeUnknown}, carrier.ErrTimeout, context.DeadlineExceeded)
		if e := as(t, err); e.StatusCode != 503 || e.Attempts != 1 {
			t.Errorf("the last attempt does not show: %v", err)
		}
	})
}

// 3,000 calls of 256 callers open no more connections than there are callers,
// though the client is as it comes.
//
// On a machine so busy that net/http's writer is 50 ms late, net/http gives up a
// connection that is sound, and dials another. So the best of some runs counts.
func TestConnectionsOfABusyClient(t *testing.T) {
	if testing.Short() {
		t.Skip("3,000 calls")
	}
	const callers, calls, runs = 256, 3000, 5
	for run := 1; ; run++ {
		n := connectionsOfABusyClient(t, callers, calls)
		t.Logf("%d connections for %d calls of %d callers", n, calls, callers)
		if n <= callers {
			return
		}
		if run == runs {
			t.Fatalf("%d connections for %d callers, in each of %d runs", n, callers, runs)
		}
	}
}

func connectionsOfABusyClient(t *testing.T, callers, calls int) int {
	t.Helper()
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(fourEvents)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	client := newClient(t, srv.URL)
	work := make(chan struct{}, calls)
	for range calls {
		work <- struct{}{}
	}
	close(work)
	errs := make(chan error, callers)
	for range callers {
		go func() {
			var err error
			for range work {
				if _, e := client.GetTracking(t.Context(), "BK1001TR"); e != nil {
					err = e
				}
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	return int(opened.Load())
}

// One connection serves a run of calls in which every fourth answer is an error
// with a body of 50 KB: all of it is read.
func TestOneConnectionThroughErrors(t *testing.T) {
	var opened, requests atomic.Int32
	page := bytes.Repeat([]byte("x"), 50_000)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%4 == 0 {
			w.WriteHeader(503)
			_, _ = w.Write(page)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(fourEvents)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	client := newClient(t, srv.URL, carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: -1}), carrier.WithoutBreaker(),
		carrier.WithRetry(carrier.RetryPolicy{BaseDelay: -1}))
	for range 200 {
		if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A label of 256 MiB goes through at flat memory.
func TestLabelAtFlatMemory(t *testing.T) {
	const size = 256 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		chunk := make([]byte, 64<<10)
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	client := newClient(t, srv.URL)
	label, err := client.GetLabel(t.Context(), "shp_1", carrier.GetLabelParams{})
	if err != nil {
		t.Fatal(err)
	}
	defer label.Close()
	if label.Size != size || label.ContentType != "application/pdf" {
		t.Errorf("size %d, type %s", label.Size, label.ContentType)
	}
	peak := heapGrowth(t, func(look func()) {
		buf := make([]byte, 64<<10)
		var n int64
		for next := int64(0); ; {
			m, err := label.Read(buf)
			n += int64(m)
			if n >= next {
				look()
				next += 32 << 20
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n != size {
			t.Errorf("%d bytes", n)
		}
	})
	if peak > 1<<20 {
		t.Errorf("%d KiB of heap for a stream", peak>>10)
	}
}

// heapGrowth returns by how much the live heap had grown at most, whenever f looked.
func heapGrowth(t *testing.T, f func(look func())) int64 {
	t.Helper()
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, peak := live(), int64(0)
	f(func() { peak = max(peak, live()-before) })
	t.Logf("peak %d KiB", peak>>10)
	return peak
}
