package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// notification is that of some carrier.
type notification struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// desk handles notifications, and remembers them.
type desk struct {
	handled []notification
	fail    error
}

func (d *desk) handle(_ context.Context, n notification) error {
	d.handled = append(d.handled, n)
	return d.fail
}

func newReceiver(t *testing.T, handle func(context.Context, notification) error, opts ...callback.Option) *callback.Receiver[notification] {
	t.Helper()
	opts = append([]callback.Option{callback.WithSecrets(secret), callback.WithClock(func() time.Time { return signedAt })}, opts...)
	r, err := callback.NewReceiver(handle, func(n notification) string { return n.ID }, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// post sends a body, signed unless a header is given.
func post(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("POST", "/callbacks", strings.NewReader(body))
	req.Header["Carrier-Signature"] = header
	if len(header) == 0 {
		req.Header.Set("Carrier-Signature", callback.Sign(signedAt, []byte(body), secret))
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// wantStatus checks an answer: an error is problem details that say no more
// than the status.
func wantStatus(t *testing.T, rec *httptest.ResponseRecorder, status int) {
	t.Helper()
	if rec.Code != status {
		t.Errorf("got %d %s, want %d", rec.Code, rec.Body, status)
	}
	if status < 400 {
		if rec.Body.Len() > 0 {
			t.Errorf("got %s", rec.Body)
		}
		return
	}
	want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d}`+"\n", http.StatusText(status), status)
	if rec.Body.String() != want || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %v %s, want %s", rec.Header(), rec.Body, want)
	}
}

func TestReceiverRefuses(t *testing.T) {
	const well = `{"id":"evt_1","status":"delivered"}`
	sign := func(body string) string { return callback.Sign(signedAt, []byte(body), secret) }
	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"well":               {well, nil, 204},
		"in two lines":       {well, strings.Split(sign(well), ","), 204},
		"unknown members":    {`{"id":"evt_1","colour":"red"}`, nil, 204},
		"no signature":       {well, []string{""}, 401},
		"two signatures":     {well, []string{sign(well), sign(well)}, 401},
		"wrong":              {well, []string{sign(well + " ")}, 401},
		"old":                {well, []string{callback.Sign(signedAt.Add(-6*time.Minute), []byte(well), secret)}, 401},
		"another's":          {well, []string{callback.Sign(signedAt, []byte(well), "another secret")}, 401},
		"no JSON, unsigned":  {`{`, []string{""}, 401},
		"no JSON":            {`{`, nil, 400},
		"nothing":            {``, nil, 400},
		"two documents":      {well + well, nil, 400},
		"of another type":    {`{"id":7}`, nil, 400},
		"no id":              {`{"status":"delivered"}`, nil, 400},
		"an empty id":        {`{"id":""}`, nil, 400},
		"null":               {`null`, nil, 400},
		"an id not of text":  {"{\"id\":\"evt_\xff\"}", nil, 400},
		"half a character":   {`{"id":"evt_\ud800"}`, nil, 400},
		"as large as may be": {`{"id":"` + strings.Repeat("x", 100-9) + `"}`, nil, 204},
		"too large":          {`{"id":"` + strings.Repeat("x", 101-9) + `"}`, nil, 413},
		"too large unsigned": {strings.Repeat("x", 101), []string{""}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			var d desk
			r := newReceiver(t, d.handle, callback.WithMaxBytes(100))
			wantStatus(t, post(r, tc.body, tc.header...), tc.status)
			if taken := len(d.handled) == 1; taken != (tc.status == 204) {
				t.Errorf("handled: %v", d.handled)
			}
		})
	}
}

func TestReceiverTakesPOSTOnly(t *testing.T) {
	r := newReceiver(t, new(desk).handle)
	for _, method := range []string{"GET", "PUT", "DELETE", "HEAD"} {
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, httptest.NewRequest(method, "/callbacks", http.NoBody))
		wantStatus(t, rec, http.StatusMethodNotAllowed)
		if rec.Header().Get("Allow") != "POST" {
			t.Errorf("got %v", rec.Header())
		}
	}
}

// What fails comes again, what is handled does not, and what is refused for good
// ends it.
func TestReceiverHandlesOnce(t *testing.T) {
	const one, two = `{"id":"evt_1"}`, `{"id":"evt_2"}`
	d := desk{fail: errors.New("the database is down")}
	r := newReceiver(t, d.handle)
	wantStatus(t, post(r, one), 500)
	wantStatus(t, post(r, one), 500)
	d.fail = nil
	for range 3 {
		wantStatus(t, post(r, one), 204)
	}
	wantStatus(t, post(r, `{"id":"evt_1","status":"otherwise"}`), 204)
	wantStatus(t, post(r, two), 204)
	d.fail = fmt.Errorf("we have moved: %w", callback.ErrGone)
	wantStatus(t, post(r, `{"id":"evt_3"}`), 410)
	wantStatus(t, post(r, one), 204)
	if got := fmt.Sprint(d.handled); got != "[{evt_1 } {evt_1 } {evt_1 } {evt_2 } {evt_3 }]" {
		t.Errorf("handled: %s", got)
	}
}

func TestReceiverForgetsWhatPanicked(t *testing.T) {
	calls := 0
	r := newReceiver(t, func(context.Context, notification) error {
		if calls++; calls == 1 {
			panic("a bug")
		}
		return nil
	})
	func() {
		defer func() {
			if cause := recover(); cause != "a bug" {
				t.Errorf("got %v", cause)
			}
		}()
		post(r, `{"id":"evt_1"}`)
	}()
	wantStatus(t, post(r, `{"id":"evt_1"}`), 204)
	wantStatus(t, post(r, `{"id":"evt_1"}`), 204)
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// Of two that come at the same time, one is handled; the other is told to come
// again.
func TestReceiverHandlesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcomes, calls := make(chan error), 0
		r := newReceiver(t, func(context.Context, notification) error { calls++; return <-outcomes })
		answers := make(chan *httptest.ResponseRecorder)
		for _, outcome := range []error{errors.New("not now"), nil} {
			go func() { answers <- post(r, `{"id":"evt_1"}`) }()
			synctest.Wait()
			busy := post(r, `{"id":"evt_1"}`)
			wantStatus(t, busy, 409)
			if busy.Header().Get("Retry-After") != "1" {
				t.Errorf("got %v", busy.Header())
			}
			outcomes <- outcome
			wantStatus(t, <-answers, map[bool]int{true: 204, false: 500}[outcome == nil])
		}
		wantStatus(t, post(r, `{"id":"evt_1"}`), 204)
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// store is a Seen that can fail, and that looks at its contexts.
type store struct {
	*callback.Memory
	claim, done, release error
	settled              []error
}

func (s *store) Claim(ctx context.Context, id string) (callback.Claim, error) {
	if s.claim != nil {
		return 0, s.claim
	}
	return s.Memory.Claim(ctx, id)
}

func (s *store) Done(ctx context.Context, id string) error {
	s.settled = append(s.settled, ctx.Err())
	return errors.Join(s.done, s.Memory.Done(ctx, id))
}

func (s *store) Release(ctx context.Context, id string) error {
	s.settled = append(s.settled, ctx.Err())
	return errors.Join(s.release, s.Memory.Release(ctx, id))
}

func TestSeenThatFails(t *testing.T) {
	var log bytes.Buffer
	s := &store{Memory: callback.NewMemory(10)}
	var d desk
	r := newReceiver(t, d.handle, callback.WithSeen(s), callback.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	s.claim = errors.New("no store")
	wantStatus(t, post(r, `{"id":"evt_1"}`), 503)
	if len(d.handled) != 0 {
		t.Errorf("handled: %v", d.handled)
	}
	s.claim, s.done = nil, errors.New("the store has gone")
	wantStatus(t, post(r, `{"id":"evt_1"}`), 204) // it is handled
	d.fail, s.release = errors.New("no database"), errors.New("nor a store")
	wantStatus(t, post(r, `{"id":"evt_2"}`), 500)
	for _, text := range []string{"no store", "the store has gone", "no database", "nor a store", "evt_1", "evt_2"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, log.String())
		}
	}
}

// A carrier that goes away while its notification is handled does not keep it
// from being remembered.
func TestSeenIsToldAfterTheRequestHasEnded(t *testing.T) {
	s := &store{Memory: callback.NewMemory(10)}
	var leave func()
	fail := errors.New("no")
	r := newReceiver(t, func(ctx context.Context, _ notification) error {
		leave()
		if ctx.Err() == nil {
			t.Error("the function is not told that the carrier has gone")
		}
		return fail
	}, callback.WithSeen(s))
	for range 2 {
		const content = `{"id":"evt_1"}`
		req := httptest.NewRequest("POST", "/", strings.NewReader(content))
		req.Header.Set("Carrier-Signature", callback.Sign(signedAt, []byte(content), secret))
		ctx, cancel := context.WithCancel(req.Context())
		leave = cancel
		r.ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
		cancel()
		fail = nil
	}
	if fmt.Sprint(s.settled) != "[<nil> <nil>]" {
		t.Errorf("got %v", s.settled)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	ctx, m := context.Background(), callback.NewMemory(3)
	claim := func(id string) callback.Claim {
		c, err := m.Claim(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if claim("busy") != callback.ClaimNew {
		t.Error("it is known")
	}
	for i := range 10 {
		id := fmt.Sprint(i)
		if claim(id) != callback.ClaimNew {
			t.Errorf("%s is known", id)
		}
		for range 2 {
			if err := m.Done(ctx, id); err != nil {
				t.Error(err)
			}
		}
	}
	for id, want := range map[string]callback.Claim{"9": callback.ClaimHandled, "8": callback.ClaimHandled, "7": callback.ClaimHandled, "busy": callback.ClaimBusy, "6": callback.ClaimNew} {
		if got := claim(id); got != want {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
	if err := m.Release(ctx, "9"); err != nil || claim("9") != callback.ClaimHandled {
		t.Error("what was handled can be given back")
	}
	if err := m.Release(ctx, "busy"); err != nil || claim("busy") != callback.ClaimNew {
		t.Error("what was given back is not new")
	}
}

// What is remembered of an id does not grow with it.
func TestMemoryOfLongIDs(t *testing.T) {
	const ids, size = 100, 1 << 20
	m := callback.NewMemory(ids)
	long := strings.Repeat("x", size)
	for i := range ids {
		id := long + fmt.Sprint(i)
		if claim, err := m.Claim(t.Context(), id); claim != callback.ClaimNew || err != nil {
			t.Fatal(claim, err)
		}
		if err := m.Done(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if claim, _ := m.Claim(t.Context(), id); claim != callback.ClaimHandled {
			t.Errorf("%d is %v", i, claim)
		}
	}
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > ids*size/2 {
		t.Errorf("%d ids of a MiB take %d bytes", ids, after.HeapAlloc)
	}
	runtime.KeepAlive(m)
}

// What ends its goroutine, as t.FailNow does, has not handled it.
func TestReceiverForgetsWhatGivesUp(t *testing.T) {
	calls := 0
	r := newReceiver(t, func(context.Context, notification) error {
		if calls++; calls == 1 {
			runtime.Goexit()
		}
		return nil
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		post(r, `{"id":"evt_1"}`)
	}()
	<-ended
	wantStatus(t, post(r, `{"id":"evt_1"}`), 204)
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// A carrier that signs in another way.
func TestVerifier(t *testing.T) {
	var d desk
	key := func(h http.Header, body []byte, now time.Time) error {
		if h.Get("X-Carrier-Key") != "right" || !bytes.HasPrefix(body, []byte("{")) || !now.Equal(signedAt) {
			return errors.New("not theirs")
		}
		return nil
	}
	r, err := callback.NewReceiver(d.handle, func(n notification) string { return n.ID },
		callback.WithVerifier(key), callback.WithClock(func() time.Time { return signedAt }))
	if err != nil {
		t.Fatal(err)
	}
	for value, status := range map[string]int{"right": 204, "wrong": 401} {
		req := httptest.NewRequest("POST", "/", strings.NewReader(`{"id":"`+value+`"}`))
		req.Header.Set("X-Carrier-Key", value)
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		wantStatus(t, rec, status)
	}
	if fmt.Sprint(d.handled) != "[{right }]" {
		t.Errorf("handled: %v", d.handled)
	}
}

func TestSecretsThatChange(t *testing.T) {
	var d desk
	r := newReceiver(t, d.handle, callback.WithSecrets("whsec_another_secret"), callback.WithHeader("X-Signature"), callback.WithTolerance(time.Second))
	for i, tc := range []struct {
		secret resilience.Secret
		late   time.Duration
		status int
	}{
		{secret, 0, 204}, {"whsec_another_secret", time.Second, 204}, {secret, 2 * time.Second, 401}, {"whsec_a_third_secret", 0, 401},
	} {
		content := fmt.Sprintf(`{"id":"evt_%d"}`, i)
		req := httptest.NewRequest("POST", "/", strings.NewReader(content))
		req.Header.Set("X-Signature", callback.Sign(signedAt.Add(-tc.late), []byte(content), tc.secret))
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		wantStatus(t, rec, tc.status)
	}
}

func TestReceiverShowsNoSecret(t *testing.T) {
	var log bytes.Buffer
	r := newReceiver(t, new(desk).handle, callback.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	post(r, `{"id":"evt_1"}`, "t=1,v1="+good)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "receiver", r)
	shown := fmt.Sprintf("%v %+v %#v %s", r, r, r, r) + log.String()
	if strings.Contains(shown, string(secret)) || !strings.Contains(log.String(), "the signature is wrong") {
		t.Errorf("got %s", shown)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	id, handle := func(n notification) string { return n.ID }, new(desk).handle
	verifier := func(http.Header, []byte, time.Time) error { return nil }
	well := callback.WithSecrets(secret)
	for says, opts := range map[string][]callback.Option{
		"WithSecrets or WithVerifier": nil,
		"WithSecrets needs":           {callback.WithSecrets()},
		"that are not empty":          {callback.WithSecrets(secret, "")},
		"exclude each other":          {well, callback.WithVerifier(verifier)},
		"WithVerifier needs":          {callback.WithVerifier(nil)},
		"WithTolerance needs":         {well, callback.WithTolerance(0)},
		"WithHeader needs":            {well, callback.WithHeader("a b")},
		"WithHeader needs the name":   {well, callback.WithHeader("")},
		"WithMaxBytes needs":          {well, callback.WithMaxBytes(0)},
		"WithSeen needs":              {well, callback.WithSeen(nil)},
		"WithClock needs":             {well, callback.WithClock(nil)},
		"WithLogger needs":            {well, callback.WithLogger(nil)},
		"an option is nil":            {well, nil},
	} {
		if _, err := callback.NewReceiver(handle, id, opts...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want one that says %q", err, says)
		}
	}
	if _, err := callback.NewReceiver(nil, id, well); err == nil {
		t.Error("nobody handles, and it is no error")
	}
	if _, err := callback.NewReceiver(handle, nil, well); err == nil {
		t.Error("nobody tells the id, and it is no error")
	}
}

// Whatever is posted and signed is answered, and handled if it has an id.
func FuzzReceiver(f *testing.F) {
	for _, content := range []string{body, "", "null", `{"id":""}`, `{"id":1}`, strings.Repeat("[", 20_000), "\xff", `{"id":"a","id":"b"}`} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var d desk
		r := newReceiver(t, d.handle)
		rec := post(r, string(content))
		var n notification
		want := json.Unmarshal(content, &n) == nil && n.ID != "" && !strings.ContainsRune(n.ID, utf8.RuneError)
		if got := rec.Code == 204; got != want || got != (len(d.handled) == 1) || !got && rec.Code != 400 {
			t.Errorf("%q: got %d, handled %v", content, rec.Code, d.handled)
		}
		if unsigned := post(r, string(content), "t=1,v1="+good); unsigned.Code != 401 {
			t.Errorf("%q: unsigned, it is answered with %d", content, unsigned.Code)
		}
	})
}
