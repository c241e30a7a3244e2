package carrier_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// The secrets of this test, of which some look odd once they are escaped.
var secrets = map[string]string{
	"API key":       `ck_live/7f3a+9c"e1<22>==`,
	"password":      "pa55:word with spaces",
	"bearer token":  "bearer-8d2f~eyJhbGciOi.J9",
	"client secret": "cs/9b1d+secret of client",
	"token 1":       "at_1-5c0ffee-0f-the-first",
	"token 2":       "at_2-5c0ffee-0f-the-second",
	"signature":     "sig-0a1b2c3d4e5f",
	"header":        "gateway-33aa44bb",
}

// forms are the ways in which a server may say a secret again.
func forms(secret string) []string {
	inJSON, _ := json.Marshal(secret)
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`).Replace(secret) // as PHP does
	return []string{
		secret, strings.Trim(string(inJSON), `"`), url.QueryEscape(secret), url.PathEscape(secret),
		escaped,
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

// outputs collects all that can be read of a run.
type outputs struct {
	mu    sync.Mutex
	texts map[string]string // text: where it came from
}

func (o *outputs) add(where, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts[text] = where
}

// Write makes it the sink of a log.
func (o *outputs) Write(p []byte) (int, error) {
	o.add("log", string(p))
	return len(p), nil
}

// show prints v in every way that there is.
func (o *outputs) show(where string, v any) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		o.add(where+" by "+verb, fmt.Sprintf(verb, v))
	}
	if b, err := json.Marshal(v); err == nil {
		o.add(where+" as JSON", string(b))
	}
	slog.New(slog.NewTextHandler(o, nil)).Info("shown", "value", v)
	slog.New(slog.NewJSONHandler(o, nil)).Info("shown", "value", v)
}

// showError prints an error, its fields, and everything that it wraps.
func (o *outputs) showError(where string, err error) {
	if err == nil {
		return
	}
	o.show(where, err)
	o.show(where, struct{ Err error }{err})
	var e *carrier.Error
	if errors.As(err, &e) {
		for name, v := range map[string]any{
			"Problem": e.Problem, "Header": e.Header, "Body": string(e.Body), "RequestID": e.RequestID, "fields": *e,
		} {
			o.show(where+", "+name, v)
		}
	}
	for _, inner := range wrapped(err) {
		o.show(where+", inner "+fmt.Sprintf("%T", inner), inner)
	}
}

func wrapped(err error) []error {
	var all []error
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		all = x.Unwrap()
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			all = []error{inner}
		}
	}
	for _, inner := range slices.Clone(all) {
		all = append(all, wrapped(inner)...)
	}
	return all
}

// echo is a carrier that says everything again that it was sent, where and as
// the path's first part wants.
type echo struct {
	mu    sync.Mutex
	said  map[string]bool // secrets that were really echoed
	token int
}

func (s *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		s.mu.Lock()
		s.token = min(s.token+1, 2)
		token := secrets[fmt.Sprint("token ", s.token)]
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer","expires_in":3600}`, token)
		return
	}
	var heard []string
	for _, name := range []string{"X-Api-Key", "Authorization", "X-Signature", "X-Gateway"} {
		for _, v := range r.Header.Values(name) {
			heard = append(heard, v)
			if _, token, ok := strings.Cut(v, " "); ok {
				heard = append(heard, token)
				if pair, err := base64.StdEncoding.DecodeString(token); err == nil {
					_, password, _ := strings.Cut(string(pair), ":")
					heard = append(heard, string(pair), password)
				}
			}
		}
	}
	s.mu.Lock()
	for name, secret := range secrets {
		if slices.Contains(heard, secret) {
			s.said[name] = true
		}
	}
	s.mu.Unlock()
	var all []string
	for _, h := range heard {
		all = append(all, forms(h)...)
	}
	said := strings.Join(all, " ")
	quoted, _ := json.Marshal(said)

	h := w.Header()
	for i, v := range all {
		h.Set(fmt.Sprint("X-Echo-", i), strings.Map(headerRune, v))
	}
	h.Set("X-Request-Id", strings.Map(headerRune, heard[len(heard)-1]))
	h.Set("Www-Authenticate", `Bearer error="invalid_token", error_description=`+strings.Map(headerRune, string(quoted)))
	h.Set("Set-Cookie", "session="+url.QueryEscape(heard[0]))
	kind := r.URL.Query().Get("kind")
	if kind == "" {
		kind = r.Header.Get("X-Kind")
	}
	name, number, _ := strings.Cut(kind, "-")
	status := 0
	_, _ = fmt.Sscan(number, &status)
	problem := fmt.Sprintf(`{"type":"/problems?x=%s","title":%s,"detail":%s,"instance":%s,"code":%s,"requestId":%s,"errors":[{"pointer":%s,"code":%s,"message":%s}],"other":{"deep":[%s]}}`,
		url.QueryEscape(heard[0]), quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted)
	switch name {
	case "problem":
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, problem)
	case "foreign":
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"code":%s,"message":%s}}`, quoted, quoted)
	case "escaped": // by an encoder that escapes everything
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		var b strings.Builder
		for _, c := range heard[0] {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		_, _ = fmt.Fprintf(w, `{"detail":"%s","title":"%s","other":"%s"}`, b.String(), b.String(), b.String())
	case "html":
		h.Set("Content-Type", "text/html; echo="+url.QueryEscape(heard[0]))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>"+said)
	case "long": // so that a cut falls into a secret
		w.WriteHeader(status)
		for i := range 64 {
			_, _ = io.WriteString(w, strings.Repeat("x", 61+i)+heard[0])
		}
	case "cut":
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", "100000")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"detail":`+string(quoted)+heard[0][:len(heard[0])-1])
		panic(http.ErrAbortHandler)
	case "redirect":
		h.Set("Location", "https://evil.example/?key="+url.QueryEscape(said))
		w.WriteHeader(status)
	case "malformed":
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"trackingNumber":`+said)
	case "stream":
		h.Set("Content-Type", "application/pdf")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said)
	case "streamcut":
		h.Set("Content-Type", "application/pdf")
		h.Set("Content-Length", "100000")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said)
		panic(http.ErrAbortHandler)
	default:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = fmt.Fprintf(w, `{"trackingNumber":%s}`, quoted)
	}
}

func headerRune(c rune) rune {
	if c < ' ' || c > '~' {
		return -1
	}
	return c
}

// saying is a RoundTripper whose errors say what it was to send.
type saying struct{}

func (saying) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	var all []string
	for _, values := range r.Header {
		all = append(all, values...)
	}
	return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errors.New(strings.Repeat("x", 280) + strings.Join(all, ","))}
}

// No secret can be read anywhere, whatever goes wrong, and though the carrier
// says all of them again.
func TestNoSecretIsEverShown(t *testing.T) {
	server := &echo{said: map[string]bool{}}
	srv := httptest.NewUnstartedServer(server)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	o := &outputs{texts: map[string]string{}}
	base := srv.URL + "/v1"

	hooks := carrier.RetryPolicy{
		MaxAttempts: 2, BaseDelay: -1, MaxRetryAfter: -1,
		OnRetry: func(a carrier.Attempt, _ time.Duration) {
			o.show("OnRetry", a)
			o.showError("OnRetry", a.Err)
		},
		Retryable: func(a carrier.Attempt) bool {
			o.show("Retryable", a)
			o.showError("Retryable", a.Err)
			return true
		},
	}
	common := []carrier.Option{
		carrier.WithRetry(hooks), carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: -1}),
		carrier.WithBreaker(carrier.BreakerPolicy{ConsecutiveFailures: 1, FailureRatio: -1, OpenFor: time.Nanosecond,
			OnStateChange: func(group string, from, to carrier.BreakerState) { o.show("OnStateChange", []any{group, from, to}) }}),
	}
	credentials := map[string]carrier.Option{
		"API key":    carrier.WithAPIKey(secrets["API key"]),
		"basic":      resilience.WithBasicAuth("shop", secrets["password"]),
		"bearer":     carrier.WithBearerToken(secrets["bearer token"]),
		"OAuth2":     carrier.WithOAuth2("shop", secrets["client secret"]),
		"signer":     carrier.WithSigner(func(r *http.Request) error { r.Header.Set("X-Signature", secrets["signature"]); return nil }),
		"any header": resilience.WithCredential("X-Gateway", secrets["header"]),
	}
	var kinds []string
	for _, kind := range []string{"problem", "foreign", "escaped", "html", "long"} {
		for _, status := range []string{"401", "503"} {
			kinds = append(kinds, kind+"-"+status)
		}
	}
	kinds = append(kinds, "problem-403", "problem-404", "problem-409", "problem-422", "problem-429",
		"cut-200", "cut-500", "redirect-307", "malformed-200", "html-200", "long-200", "stream-200", "streamcut-200", "ok")

	for name, credential := range credentials {
		debug := &slog.HandlerOptions{Level: slog.LevelDebug}
		log := slog.New(slog.NewMultiHandler(slog.NewTextHandler(o, debug), slog.NewJSONHandler(o, debug)))
		client := newClient(t, base, append([]carrier.Option{credential, carrier.WithLogger(log)}, common...)...)
		o.show("Client", client)
		o.show("Doer", client.Doer())
		o.show("option "+name, credential)
		for _, kind := range kinds {
			runSecret(t, o, client, base, name+", "+kind, kind)
		}
		o.showError("a link", second(client.Fetch(t.Context(), "https://user:"+url.QueryEscape(secrets["API key"])+"@evil.example/")))

		client = newClient(t, base, append([]carrier.Option{credential, carrier.WithTransport(saying{})}, common...)...)
		_, err := client.GetTracking(t.Context(), "BK1001TR")
		o.showError(name+", a transport that says everything", err)
		_, err = client.CreateShipment(t.Context(), smallestOrder("order-1"))
		o.showError(name+", a transport that says everything", err)
	}

	// What hooks panic with is seen by whoever recovers.
	client := newClient(t, base, carrier.WithAPIKey(secrets["API key"]), carrier.WithRetry(carrier.RetryPolicy{
		Retryable: func(a carrier.Attempt) bool { panic(a) },
	}))
	func() {
		defer func() { o.show("panic", recover()) }()
		_, _ = client.GetTracking(t.Context(), "BK1001TR", carrier.WithHeader("X-Kind", "problem-503"))
	}()

	// What New refuses.
	for name, opts := range map[string][]carrier.Option{
		"a line break": {carrier.WithAPIKey(secrets["API key"] + "\n")},
		"two of one":   {carrier.WithOAuth2("shop", secrets["client secret"]), carrier.WithBearerToken(secrets["bearer token"])},
		"a colon":      {resilience.WithBasicAuth("a:b", secrets["password"])},
	} {
		_, err := carrier.New(base, opts...)
		o.showError("New with "+name, err)
	}
	_, err := carrier.New("https://shop:" + url.QueryEscape(secrets["API key"]) + "@api.carrier.example")
	o.showError("New with user info", err)

	// Exported types that can hold one.
	for _, v := range []any{
		carrier.Token{Value: secrets["token 1"]}, &carrier.Token{Value: secrets["token 1"]}, []carrier.Token{{Value: secrets["token 1"]}},
		carrier.EgressPolicy{Prefixes: []netip.Prefix{}}, resilience.OAuth2Config{TokenURL: "/t"}, carrier.Limits{},
		map[string]any{"client": client, "doer": client.Doer()}, struct{ Client *carrier.Client }{client},
		struct{ client *carrier.Client }{client}, struct{ doer *resilience.Doer }{client.Doer()}, // fmt calls no method there
		client.Doer().HTTPClient(), *client.Doer().HTTPClient(), client.Doer().HTTPClient().Transport, *client,
	} {
		o.show(fmt.Sprintf("%T", v), v)
	}

	for name := range secrets {
		if !server.said[name] && name != "client secret" {
			t.Errorf("the server never said the %s, so that this test shows nothing of it", name)
		}
	}
	if len(o.texts) < 1000 {
		t.Errorf("only %d texts were collected", len(o.texts))
	}
	shown := map[string]bool{}
	all := map[string][]string{}
	for name, secret := range secrets {
		all[name] = forms(secret)
	}
	for _, text := range slices.Sorted(maps.Keys(o.texts)) {
		for name := range secrets {
			for _, form := range all[name] {
				where := o.texts[text]
				if strings.Contains(text, form) && !shown[where+name] {
					shown[where+name] = true
					t.Errorf("%s shows the %s as %q: …%s", where, name, form, around(text, form))
				}
			}
		}
	}
	t.Logf("%d different texts", len(o.texts))
}

func around(text, form string) string {
	i := strings.Index(text, form)
	return text[max(0, i-60):min(len(text), i+len(form)+20)]
}

func second[T any](_ T, err error) error { return err }

// runSecret makes one call of each sort that is answered in the same way.
func runSecret(t *testing.T, o *outputs, client *carrier.Client, base, where, kind string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	header := carrier.WithHeader("X-Kind", kind)
	var info carrier.CallInfo
	_, err := client.GetTracking(ctx, "BK1001TR", header, carrier.WithCallInfo(&info))
	o.showError(where, err)
	o.show(where+", CallInfo", info)
	_, err = client.CreateShipment(ctx, smallestOrder("order-1"), header, carrier.WithCallInfo(&info))
	o.showError(where, err)
	o.show(where+", CallInfo", info)
	for _, fetch := range []func() (*carrier.Stream, error){
		func() (*carrier.Stream, error) {
			return client.GetLabel(ctx, "shp_1", carrier.GetLabelParams{}, header)
		},
		func() (*carrier.Stream, error) { return client.Fetch(ctx, "/v1/x?kind="+kind) },
	} {
		s, err := fetch()
		o.showError(where, err)
		if s != nil {
			o.show(where+", Stream", s)
			o.show(where+", Stream", *s)
			_, err = io.Copy(io.Discard, s)
			o.showError(where+", reading", err)
			_ = s.Close()
		}
	}
	req, _ := http.NewRequestWithContext(ctx, "GET", base+"/tracking/BK1001TR?kind="+kind, nil)
	resp, err := client.Doer().Do(req)
	o.showError(where, err)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if req.Header.Get("X-Api-Key") != "" {
		t.Error("the caller's request was changed")
	}
	resp, err = client.Doer().HTTPClient().Do(req)
	o.showError(where, err)
	if resp != nil {
		_ = resp.Body.Close()
	}
	var buf bytes.Buffer
	err = client.Doer().Call(ctx, api.OpGetTracking, &resilience.Request{Path: "/tracking/BK1001TR"}, func(r *resilience.Response) error {
		buf.Write(r.Body)
		return errors.New("no")
	}, header)
	o.showError(where, err)
}
