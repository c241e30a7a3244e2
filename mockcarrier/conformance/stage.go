package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// stage is where a case is played: a carrier of its own on a port of the
// loopback interface, and a client of its own.
type stage struct {
	findings
	id        string
	newClient func(baseURL string) Client

	mock   *mockcarrier.Carrier
	server *http.Server
	ended  chan struct{} // closed when the server is
	held   net.Conn      // see holdPort
	URL    string
	client Client
	closed bool
}

// setup is what a case begins with.
type setup struct {
	options []mockcarrier.Option
	port    port
}

// port is what is behind the base URL that the client is given.
type port string

const (
	carrierPort   port = ""            // the carrier
	refusedPort   port = "refused"     // nobody listens
	tlsPort       port = "tls"         // the carrier, by https; it is to be let fail the handshake
	untrustedPort port = "certificate" // https, with a certificate that nobody has signed
)

func (s *stage) open(with setup) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.mock = mockcarrier.New(with.options...)
	s.server = &http.Server{
		Handler: s.mock, ConnContext: s.mock.ConnContext,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s.URL = "http://" + listener.Addr().String() + "/v1"
	base := s.URL
	serve := func() error { return s.server.Serve(s.mock.Listener(listener)) }
	switch with.port {
	case refusedPort:
		if s.held, err = holdPort(listener); err != nil {
			return err
		}
		base = "http://" + s.held.LocalAddr().String() + "/v1"
	case tlsPort:
		base = strings.Replace(base, "http:", "https:", 1)
	case untrustedPort:
		base = strings.Replace(base, "http:", "https:", 1)
		if s.server.TLSConfig, err = selfSigned(); err != nil {
			return err
		}
		serve = func() error { return s.server.ServeTLS(s.mock.Listener(listener), "", "") }
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = serve()
	}()
	s.client = s.another(base)
	return nil
}

// another makes a client, for which all goroutines that it begins are counted.
func (s *stage) another(baseURL string) Client {
	var c Client
	s.labelled(func() { c = s.newClient(baseURL) })
	return c
}

// close ends the case. What the carrier has to complain of then counts, unless
// there is a reason for it already.
func (s *stage) close() {
	s.closeClient(s.client)
	s.closeServer()
	if verdict, _ := s.verdict(); verdict == Holds || verdict == NotTold {
		if err := s.mock.Verify(); err != nil {
			s.want(false, "%s", strings.Join(strings.Fields(err.Error()), " "))
		}
	}
}

func (s *stage) closeClient(c Client) {
	closer, ok := c.(io.Closer)
	if !ok {
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- closer.Close() }()
	select {
	case err := <-ended:
		s.want(err == nil, "its Close fails: %v", err)
	case <-time.After(patience):
		s.want(false, "its Close does not return")
	}
}

func (s *stage) closeServer() {
	if s.closed {
		return
	}
	s.closed = true
	_ = s.server.Close()
	s.mock.Close()
	<-s.ended
	if s.held != nil {
		_ = s.held.Close()
	}
}

// patience is how late a client on a busy machine may be with what it is to do
// at once.
const patience = 1500 * time.Millisecond

// defaultLimit bounds a call that a case has no other limit for.
const defaultLimit = 10 * time.Second

// reply is what a call came to.
type reply struct {
	Result
	took time.Duration
	hung bool // it did not return
}

var errHung = errors.New("the call did not return")

// call makes a call, and gives it up if it has not returned after most.
func (s *stage) call(ctx context.Context, most time.Duration, do func(context.Context) Result) reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	done := make(chan Result, 1)
	go s.labelled(func() {
		defer s.recover()
		done <- do(ctx)
	})
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case r := <-done:
		return reply{Result: r, took: time.Since(began)}
	case <-timer.C:
		s.want(false, "the call is still running after %v", most)
		return reply{Result: Result{Err: errHung}, took: most, hung: true}
	}
}

// within makes a call whose context ends after limit, and does not wait for
// more than defaultLimit.
func (s *stage) within(limit time.Duration, do func(context.Context) Result) reply {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.call(ctx, min(limit, defaultLimit)+patience, do)
}

// parcel is one that the carrier knows, and its status.
const parcel, parcelStatus = "BK1001TR", "in_transit"

func (s *stage) track(ctx context.Context) Result { return s.client.Track(ctx, parcel) }

// ship buys what a reference stands for.
func (s *stage) ship(key, reference string) func(context.Context) Result {
	return func(ctx context.Context) Result { return s.client.Ship(ctx, key, order(reference)) }
}

func order(reference string) []byte {
	return fmt.Appendf(nil, `{"reference":%q,"service":"standard",`+
		`"from":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},`+
		`"to":{"name":"Deniz Kaya","line1":"12 Park Avenue","city":"Ankara","postalCode":"06000","country":"TR"},`+
		`"parcels":[{"weight":{"value":1.2,"unit":"kg"}}]}`, reference)
}

// sent returns the requests of an operation that have come.
func (s *stage) sent(operation string) []mockcarrier.Request {
	var of []mockcarrier.Request
	for _, r := range s.mock.Requests() {
		if r.Operation == operation {
			of = append(of, r)
		}
	}
	return of
}

// direct sends a request past the client, and returns the body of the answer.
func (s *stage) direct(method, path string, body []byte, header ...string) ([]byte, error) {
	req, err := http.NewRequest(method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", APIKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return answer, err
}
