package conformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const redirects = "RFC 9110 §15.4; CWE-522"

var securityCases = []Case{
	{ID: "security/redirect-301-get", Title: "301 to another origin: the credentials stay", Source: redirects, run: redirected("track", 301)},
	{ID: "security/redirect-302-get", Title: "302 to another origin: the credentials stay", Source: redirects, run: redirected("track", 302)},
	{ID: "security/redirect-307-post", Title: "307 to another origin: credentials, key and order stay", Source: redirects, run: redirected("ship", 307)},
	{ID: "security/redirect-308-post", Title: "308 to another origin: credentials, key and order stay", Source: redirects, run: redirected("ship", 308)},
	{ID: "security/redirect-303-post", Title: "303 to another origin: credentials and key stay", Source: redirects, run: redirected("ship", 303)},
	{ID: "security/redirect-302-label", Title: "302 of a label to another origin: the credentials stay", Source: redirects, run: redirected("label", 302)},
	{ID: "security/echo", Title: "a key that the carrier echoes is not in the error", Source: "CWE-532; CWE-209", run: echo},
	{ID: "security/echo-html", Title: "a key that a proxy's page echoes is not in the error", Source: "CWE-532; CWE-209", run: echoHTML},
	{ID: "security/path", Title: "a number with .. or / in it reaches no other operation", Source: "RFC 3986 §3.3, §6.2.2.3; CWE-22",
		setup: setup{options: []mockcarrier.Option{mockcarrier.WithUnmatchedAllowed()}}, run: path},
}

// elsewhere is a server of another origin, and what has come to it.
type elsewhere struct {
	URL    string
	server *http.Server

	mu   sync.Mutex
	came []string
}

func newElsewhere() (*elsewhere, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &elsewhere{URL: "http://" + listener.Addr().String()}
	e.server = &http.Server{Handler: e}
	go func() { _ = e.server.Serve(listener) }()
	return e, nil
}

func (e *elsewhere) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var came []string
	for name, values := range r.Header {
		if strings.Contains(strings.Join(values, " "), APIKey) {
			came = append(came, "the API key in "+name)
		}
		if strings.Contains(name, "Idempotency-Key") {
			came = append(came, "the idempotency key")
		}
	}
	if len(body) > 0 {
		came = append(came, "the body")
	}
	e.mu.Lock()
	e.came = append(e.came, came...)
	e.mu.Unlock()
	w.WriteHeader(http.StatusNotFound)
}

func redirected(call string, status int) func(*stage) {
	return func(s *stage) {
		other, err := newElsewhere()
		var l label
		if !s.want(err == nil, "the suite could not begin: %v", err) || call == "label" && !l.make(s) {
			return
		}
		defer func() { _ = other.server.Close() }()
		s.mock.Inject(mockcarrier.Redirect(status, other.URL+"/v1/shipments"))
		do := map[string]func(context.Context) Result{"track": s.track, "ship": s.ship("", "order-1"), "label": l.download}[call]
		r := s.within(defaultLimit, do)
		s.want(r.Err != nil, "the call succeeds; it must fail")
		other.mu.Lock()
		defer other.mu.Unlock()
		s.want(len(other.came) == 0, "at the other origin arrive %s", strings.Join(other.came, ", "))
	}
}

// noSecret looks for the API key in the forms in which errors are printed.
func (s *stage) noSecret(err error) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		s.want(!strings.Contains(fmt.Sprintf(verb, err), APIKey), "the API key is in the error, printed with %s", verb)
	}
}

func echo(s *stage) {
	r, ok := s.failing(mockcarrier.Status(401).WithBody(`{"title":"Unknown key `+APIKey+`","detail":"x-api-key: `+APIKey+`","code":"`+APIKey+`"}`).
		WithHeader("Content-Type", "application/problem+json"))
	if ok {
		s.noSecret(r.Err)
	}
}

func echoHTML(s *stage) {
	r, ok := s.failing(mockcarrier.HTML(403).WithBody("<h1>Blocked</h1><pre>X-Api-Key: " + APIKey + "</pre>"))
	if ok {
		s.noSecret(r.Err)
	}
}

func path(s *stage) {
	for _, number := range []string{"..", ".", "", "../shipments", "x/../../status", "events", "a/b"} {
		r := s.within(defaultLimit, func(ctx context.Context) Result { return s.client.Track(ctx, number) })
		s.want(r.Err != nil, "the parcel %q is found", number)
	}
	for _, r := range s.mock.Requests() {
		s.want(r.Operation == "getTracking", "%s %s reaches the operation %q", r.Method, r.Path, r.Operation)
	}
}
