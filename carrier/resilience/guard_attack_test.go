package resilience_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// stranger is a server of another origin. It notes all that reaches it.
type stranger struct {
	*httptest.Server
	handler http.HandlerFunc

	mu   sync.Mutex
	seen []strangersRequest
}

type strangersRequest struct {
	method string
	header http.Header
	body   string
}

func newStranger(t *testing.T, handler http.HandlerFunc) *stranger {
	t.Helper()
	s := &stranger{handler: handler}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, strangersRequest{r.Method, r.Header.Clone(), string(body)})
		s.mu.Unlock()
		if s.handler != nil {
			s.handler(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) requests() []strangersRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *stranger) port() uint16 {
	u, _ := url.Parse(s.URL)
	p, _ := strconv.Atoi(u.Port())
	return uint16(p)
}

// welcome is a policy that lets links lead to strangers on loopback.
func welcome(strangers ...*stranger) resilience.EgressPolicy {
	p := resilience.EgressPolicy{
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		PlainHTTP: true,
	}
	for _, s := range strangers {
		p.Ports = append(p.Ports, s.port())
	}
	return p
}

const attackKey = "ck_live_5up3r-s3cret/key+=="

// everySecret is a client's that has all there is to lose.
func everySecret() []resilience.Option {
	return []resilience.Option{
		resilience.WithCredential("X-Api-Key", attackKey),
		resilience.WithTokenSource(func(context.Context) (resilience.Token, error) {
			return resilience.Token{Value: "token-" + attackKey}, nil
		}),
		resilience.WithHeader("X-Tenant", "tenant-"+attackKey),
		resilience.WithSigner(func(r *http.Request) error {
			r.Header.Set("X-Signature", "signed-"+attackKey)
			return nil
		}),
	}
}

// A link of another origin carries nothing of what the API gets: not on the
// first attempt, not on a retry, not where a stream goes on.
func TestForeignLinkCarriesNothing(t *testing.T) {
	document := string(patternBytes(200 << 10))
	attempts := 0
	s := newStranger(t, nil)
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		attempts++
		switch {
		case attempts == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Header.Get("Range") == "":
			w.Header().Set("Accept-Ranges", "bytes")
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", strconv.Itoa(len(document)))
			_, _ = io.WriteString(w, document[:100<<10])
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("ETag", `"1"`)
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(document))
		}
	}
	d := connectTo(t, "https://api.carrier.example/v1", append(everySecret(),
		resilience.WithLinkGuard(welcome(s)), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))...)
	stream, err := d.Fetch(t.Context(), s.URL+"/label.pdf?sig=1",
		resilience.WithHeader("Accept", "application/pdf"), resilience.WithHeader("X-Caller", attackKey))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); err != nil || string(got) != document {
		t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(document))
	}
	got := s.requests()
	if len(got) != 3 {
		t.Fatalf("%d requests arrived, want 3", len(got))
	}
	allowed := []string{"Accept", "User-Agent", "Accept-Encoding", "Range", "If-Range"}
	for i, r := range got {
		if r.method != http.MethodGet || r.body != "" {
			t.Errorf("request %d: %s with %d bytes of a body", i+1, r.method, len(r.body))
		}
		for name, values := range r.header {
			if !slices.Contains(allowed, name) || strings.Contains(strings.Join(values, ""), "s3cret") {
				t.Errorf("request %d has %s: %q", i+1, name, values)
			}
		}
		if accept := r.header.Get("Accept"); accept != "application/pdf" {
			t.Errorf("request %d: Accept is %q, want that of the call", i+1, accept)
		}
	}
}

// The same link at the own origin is a call like any other.
func TestOwnLinkCarriesCredentials(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a label") })
	d := connectTo(t, s.URL+"/v1", everySecret()...)
	for _, link := range []string{s.URL + "/v1/x", "/v1/x", "x", strings.Replace(s.URL, "http", "HTTP", 1) + "/v1/x"} {
		var info resilience.CallInfo
		stream, err := d.Fetch(t.Context(), link, resilience.WithCallInfo(&info))
		if err != nil {
			t.Fatalf("%s: %v", link, err)
		}
		_ = stream.Close()
		got := s.requests()
		last := got[len(got)-1]
		for name, want := range map[string]string{
			"X-Api-Key": attackKey, "Authorization": "Bearer token-" + attackKey,
			"X-Tenant": "tenant-" + attackKey, "X-Signature": "signed-" + attackKey,
		} {
			if v := last.header.Get(name); v != want {
				t.Errorf("%s: %s is %q, want %q", link, name, v, want)
			}
		}
		if info.StatusCode != 200 || info.Attempts != 1 {
			t.Errorf("%s: CallInfo is %+v", link, info)
		}
	}
}

// A link to an operation of the API is that operation: its breaker, and its answers.
func TestOwnLinkIsItsOperation(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{}`)
	})
	d := connectTo(t, s.URL+"/v1")
	_, err := d.Fetch(t.Context(), "/v1/shipments/s1/label?format=pdf")
	is(t, err, resilience.ErrNotReady)
	if e := failureOf(t, err); e.Operation != "getLabel" || e.RetryAfter != 7*time.Second {
		t.Errorf("got %s, retry after %s; want getLabel, 7s", e.Operation, e.RetryAfter)
	}
}

// What leads to where nobody should go is refused, and the refusal is free: no
// retry, no failure to a breaker, no token of a budget.
func TestInternalLinksAreBlocked(t *testing.T) {
	var rows []struct{ Base, Link, Leads string }
	raw, err := os.ReadFile("testdata/guard_urls.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	d := connectTo(t, "https://api.carrier.example/v1", append(everySecret(), resilience.WithRetry(resilience.RetryPolicy{
		OnRetry: func(_ resilience.Attempt, wait time.Duration) { waits = append(waits, wait) },
	}))...)
	blocked := 0
	for _, r := range rows {
		if r.Leads != "blocked" || r.Base != "" {
			continue
		}
		blocked++
		_, err := d.Fetch(t.Context(), r.Link)
		is(t, err, resilience.ErrBlocked)
		isNot(t, err, resilience.ErrUnavailable, resilience.ErrInvalidRequest, resilience.ErrOutcomeUnknown)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Attempts != 0 || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%q: %v, %d attempts: %q", r.Link, e.Outcome, e.Attempts, err)
		}
	}
	if blocked < 40 {
		t.Errorf("%d links were tried, want at least 40", blocked)
	}
	if waits != nil {
		t.Errorf("%d retries", len(waits))
	}
}

// A name is judged by the address it leads to.
func TestNameOfLoopbackIsBlocked(t *testing.T) {
	s := newStranger(t, nil)
	p := resilience.EgressPolicy{Ports: []uint16{s.port()}, PlainHTTP: true}
	d := connectTo(t, "https://api.carrier.example/v1", resilience.WithLinkGuard(p))
	_, err := d.Fetch(t.Context(), fmt.Sprintf("http://localhost:%d/x", s.port()))
	is(t, err, resilience.ErrBlocked)
	isNot(t, err, resilience.ErrUnavailable)
	if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Attempts != 1 {
		t.Errorf("%v, %d attempts; want not sent, 1", e.Outcome, e.Attempts)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// The base URL is under the guard if the user says so, by name and by address.
func TestGuardedBaseURL(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	})
	byName := fmt.Sprintf("http://localhost:%d/v1", s.port())
	open := resilience.EgressPolicy{Ports: []uint16{s.port()}, PlainHTTP: true}

	for name, base := range map[string]string{
		"an internal address": s.URL + "/v1", "metadata": "https://169.254.169.254/latest", "a number": "https://2130706433/v1",
		"a port": "https://api.carrier.example:8443", "plain http": "http://api.carrier.example",
	} {
		_, err := resilience.New(resilience.WithBaseURL(base), resilience.WithEgressGuard(resilience.EgressPolicy{}))
		if is(t, err, resilience.ErrInvalidRequest, resilience.ErrBlocked); err == nil {
			t.Errorf("%s: %s is accepted", name, base)
		}
	}

	t.Run("blocked when connecting", func(t *testing.T) {
		retries := 0
		var changes []resilience.BreakerState
		d := connectTo(t, byName, resilience.WithEgressGuard(open),
			resilience.WithRetry(resilience.RetryPolicy{OnRetry: func(resilience.Attempt, time.Duration) { retries++ }}),
			resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 2, Refill: -1}),
			resilience.WithBreaker(resilience.BreakerPolicy{ConsecutiveFailures: 1, OnStateChange: func(_ string, _, to resilience.BreakerState) {
				changes = append(changes, to)
			}}))
		for range 20 {
			_, err := ship(t.Context(), d, `{}`)
			is(t, err, resilience.ErrBlocked)
			isNot(t, err, resilience.ErrUnavailable, resilience.ErrCircuitOpen, resilience.ErrBudgetExhausted, resilience.ErrOutcomeUnknown)
			if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Attempts != 1 {
				t.Fatalf("%v, %d attempts; want not sent, 1", e.Outcome, e.Attempts)
			}
		}
		if retries != 0 || changes != nil || len(s.requests()) != 0 {
			t.Errorf("%d retries, %v, %d requests arrived", retries, changes, len(s.requests()))
		}
	})
	t.Run("allowed by policy", func(t *testing.T) {
		d := connectTo(t, byName, append(everySecret(), resilience.WithEgressGuard(welcome(s)))...)
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := s.requests(); got[len(got)-1].header.Get("X-Api-Key") != attackKey {
			t.Error("the credentials did not arrive")
		}
	})
	t.Run("Do is under it", func(t *testing.T) {
		d := connectTo(t, byName, resilience.WithEgressGuard(welcome(s)))
		for _, target := range []string{"http://169.254.169.254/x", "http://[::1]:1/x", "https://user@api.carrier.example/x"} {
			body := &closing{Reader: strings.NewReader("{}")}
			req, _ := http.NewRequest("POST", target, body)
			_, err := d.Do(req)
			if is(t, err, resilience.ErrBlocked); body.closed != 1 {
				t.Errorf("%s: the body was closed %d times", target, body.closed)
			}
		}
	})
	t.Run("with a copy of the user's transport", func(t *testing.T) {
		mine := &http.Transport{}
		defer mine.CloseIdleConnections()
		d := connectTo(t, byName, resilience.WithEgressGuard(welcome(s)), resilience.WithTransport(mine))
		if _, err := track(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d = connectTo(t, byName, resilience.WithEgressGuard(open), resilience.WithTransport(mine))
		_, err := track(t.Context(), d)
		is(t, err, resilience.ErrBlocked)
		if mine.DialContext != nil || mine.Proxy != nil {
			t.Error("the user's transport was changed")
		}
	})
	t.Run("not with another RoundTripper", func(t *testing.T) {
		for name, rt := range map[string]http.RoundTripper{
			"a RoundTripper": always(200, `{}`),
			"no transport":   (*http.Transport)(nil),
			"a transport that speaks TLS itself": &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, io.EOF
			}},
		} {
			_, err := resilience.New(resilience.WithBaseURL(byName), resilience.WithEgressGuard(open), resilience.WithTransport(rt))
			if is(t, err, resilience.ErrInvalidRequest); err == nil {
				t.Errorf("%s is accepted", name)
			}
		}
	})
}

// A RoundTripper that cannot be guarded is not gone around, unless the user says so.
func TestForeignLinkWithUnguardableTransport(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a label") })
	rt := always(200, `{}`)
	d := connect(t, rt)
	_, err := d.Fetch(t.Context(), s.URL+"/x")
	is(t, err, resilience.ErrBlocked)
	if !strings.Contains(err.Error(), "WithLinkGuard") {
		t.Errorf("the error does not say what to do: %v", err)
	}

	d = connect(t, rt, resilience.WithLinkGuard(welcome(s)))
	stream, err := d.Fetch(t.Context(), s.URL+"/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Close()
	if rt.requests() != 0 || len(s.requests()) != 1 {
		t.Errorf("%d requests went through the RoundTripper, %d arrived", rt.requests(), len(s.requests()))
	}
}

// No redirect is followed, wherever to, and no body, key or credential goes after it.
func TestRedirectsAreNotFollowed(t *testing.T) {
	target := newStranger(t, nil)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for name, to := range map[string]string{
			"another origin": target.URL + "/steal?q=1", "the same origin": "/v1/other",
			"metadata": "http://169.254.169.254/latest/", "nowhere": "", "nonsense": "http://[::bad",
		} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				api := newStranger(t, func(w http.ResponseWriter, _ *http.Request) {
					if to != "" {
						w.Header()["Location"] = []string{to}
					}
					w.WriteHeader(status)
				})
				d := connectTo(t, api.URL+"/v1", everySecret()...)
				_, get := track(t.Context(), d)
				_, post := ship(t.Context(), d, `{"body":"`+attackKey+`"}`)
				_, link := d.Fetch(t.Context(), "/v1/x")
				for call, err := range map[string]error{"GET": get, "POST": post, "Fetch": link} {
					var r *resilience.RedirectError
					e := failureOf(t, err)
					if !errors.As(err, &r) || e.StatusCode != status || e.Attempts != 1 {
						t.Fatalf("%s: %v", call, err)
					}
					isNot(t, err, resilience.ErrUnavailable)
					valid := name != "nowhere" && name != "nonsense"
					if (r.Location != "") != valid || r.SameOrigin != (name == "the same origin") {
						t.Errorf("%s: %q, same origin %v", call, r.Location, r.SameOrigin)
					}
					for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err), fmt.Sprintf("%v %+v %#v", r, r, r)} {
						if strings.Contains(text, "steal") || strings.Contains(text, "latest") {
							t.Errorf("%s: the text shows the target: %s", call, text)
						}
					}
				}
				is(t, post, resilience.ErrOutcomeUnknown)
				if n := len(api.requests()); n != 3 {
					t.Errorf("%d requests arrived, want 3", n)
				}
			})
		}
	}
	if n := len(target.requests()); n != 0 {
		t.Errorf("%d requests arrived at the target", n)
	}
}

// A redirect that is followed on purpose goes as any link does.
func TestRedirectFollowedOnPurpose(t *testing.T) {
	store := newStranger(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a label") })
	api := newStranger(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, store.URL+"/label", http.StatusFound)
	})
	d := connectTo(t, api.URL+"/v1", append(everySecret(), resilience.WithLinkGuard(welcome(store)))...)
	_, err := d.Fetch(t.Context(), "/v1/x")
	var r *resilience.RedirectError
	if !errors.As(err, &r) {
		t.Fatal(err)
	}
	stream, err := d.Fetch(t.Context(), r.Location)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(stream)
	_ = stream.Close()
	got := store.requests()
	if string(body) != "a label" || len(got) != 1 || got[0].header.Get("X-Api-Key")+got[0].header.Get("Authorization") != "" {
		t.Errorf("got %q, and %v arrived", body, got)
	}
}

// A sick host of links opens its own breaker and spends its own budget.
func TestForeignLinksAreApart(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	d := connect(t, always(200, `{}`), resilience.WithLinkGuard(welcome(s)), resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))
	open := false
	for range 20 {
		_, err := d.Fetch(t.Context(), s.URL+"/x")
		is(t, err, resilience.ErrUnavailable)
		open = open || errors.Is(err, resilience.ErrCircuitOpen)
	}
	if !open {
		t.Error("20 failures did not open the breaker of links")
	}
	if _, err := track(t.Context(), d); err != nil {
		t.Error(err)
	}
}

// What a stranger sends is bounded.
func TestForeignLinkIsBounded(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 80 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	d := connectTo(t, "https://api.carrier.example/v1", resilience.WithLinkGuard(welcome(s)))
	stream, err := d.Fetch(t.Context(), s.URL+"/x")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	n, err := io.Copy(io.Discard, stream)
	var limit *resilience.LimitError
	if is(t, err, resilience.ErrResponseTooLarge); !errors.As(err, &limit) || n != 64<<20 || limit.Limit != 64<<20 || limit.What != "stream" {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

func TestFetchJSON(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"at":%q,"next":"?cursor=2"}`, r.URL.String())
	})
	d := connectTo(t, s.URL+"/v1", everySecret()...)
	page, err := resilience.FetchJSON[document](t.Context(), d, "/v1/items?cursor=1")
	if err != nil || (*page)["at"] != "/v1/items?cursor=1" {
		t.Errorf("got %v, %v", page, err)
	}
	_, err = resilience.FetchJSON[document](t.Context(), d, "http://10.0.0.1/items?cursor=1")
	is(t, err, resilience.ErrBlocked)
	_, err = resilience.FetchJSON[document](t.Context(), d, "/v1/items", resilience.WithIdempotencyKey("k"))
	is(t, err, resilience.ErrInvalidRequest)
	s.handler = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	page, err = resilience.FetchJSON[document](t.Context(), d, "/v1/items")
	if is(t, err, resilience.ErrNotFound); page != nil {
		t.Errorf("got %v with the error", page)
	}
}

func TestFetchAfterClose(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	d := connectTo(t, "https://api.carrier.example/v1", resilience.WithLinkGuard(welcome(s)))
	stream, err := d.Fetch(t.Context(), s.URL+"/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Fetch(t.Context(), s.URL+"/x")
	is(t, err, resilience.ErrInvalidRequest)
}

// A link is resolved below the base URL, whose path may have escapes of its own.
func TestRelativeLinks(t *testing.T) {
	for _, test := range []struct{ base, link, asked string }{
		{"/v1", "labels/1", "/v1/labels/1"},
		{"/v1", "./labels/1", "/v1/labels/1"},
		{"/v1", "../v2/labels/1", "/v2/labels/1"},
		{"/v1", "/labels/1", "/labels/1"},
		{"/v1", "?page=2", "/v1/?page=2"},
		{"/a%2Fb", "labels/1", "/a%2Fb/labels/1"},
		{"/a%2Fb", "labels/c%3Fd", "/a%2Fb/labels/c%3Fd"},
	} {
		asked := ""
		s := newStranger(t, func(w http.ResponseWriter, r *http.Request) { asked = r.RequestURI })
		stream, err := connectTo(t, s.URL+test.base).Fetch(t.Context(), test.link)
		if err != nil {
			t.Fatalf("%s below %s: %v", test.link, test.base, err)
		}
		_ = stream.Close()
		if asked != test.asked {
			t.Errorf("%s below %s asks for %s, want %s", test.link, test.base, asked, test.asked)
		}
	}
	d, err := resilience.New(allOps)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"", "/labels/1", "labels/1"} {
		_, err = d.Fetch(t.Context(), link)
		is(t, err, resilience.ErrInvalidRequest)
		isNot(t, err, resilience.ErrBlocked)
		if e := failureOf(t, err); e.Outcome != resilience.OutcomeNotSent || e.Operation != "fetch" {
			t.Errorf("%q without a base URL: %v of %s, %v", link, e.Outcome, e.Operation, err)
		}
	}
}

// A link may have 8 KiB, and what a stranger answers with has the limits of any answer.
func TestLimitsOfForeignLinks(t *testing.T) {
	s := newStranger(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big" {
			w.Header().Set("X-Filler", strings.Repeat("x", 300<<10))
		}
		_, _ = io.WriteString(w, "a label")
	})
	d := connectTo(t, "https://api.carrier.example/v1", resilience.WithLinkGuard(welcome(s)), resilience.WithoutRetry())
	link := s.URL + "/"
	link += strings.Repeat("a", 8<<10-len(link))
	stream, err := d.Fetch(t.Context(), link)
	if err != nil {
		t.Fatalf("a link of %d bytes: %v", len(link), err)
	}
	_ = stream.Close()
	_, err = d.Fetch(t.Context(), link+"a")
	is(t, err, resilience.ErrBlocked)
	_, err = d.Fetch(t.Context(), s.URL+"/big")
	over(t, err, "header", 256<<10)
}
