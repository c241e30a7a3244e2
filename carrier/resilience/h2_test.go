package resilience_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// The little of HTTP/2 (RFC 9113) that it takes to misbehave at the level of
// frames: the server never decodes a header, and answers with one that needs
// no table.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	flagEndStream, flagAck, flagEndHeaders = 1, 1, 4

	codeProtocolError, codeInternalError, codeRefusedStream, codeCancel = 1, 2, 7, 8
)

// frames is one connection of the server.
type frames struct{ net.Conn }

func (f frames) send(kind, flags byte, stream uint32, payload []byte) {
	head := make([]byte, 9, 9+len(payload))
	binary.BigEndian.PutUint32(head[0:], uint32(len(payload))<<8|uint32(kind))
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], stream)
	_, _ = f.Write(append(head, payload...))
}

func (f frames) next() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(f, head[:]); err != nil {
		return
	}
	payload = make([]byte, binary.BigEndian.Uint32(head[0:])>>8)
	_, err = io.ReadFull(f, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, err
}

// What the server can do with a stream whose request is complete.

func (f frames) headers(stream uint32, contentType string) {
	const status200, contentTypeLiteral = 0x88, 31 - 15 // RFC 7541, appendix A, and section 6.2.2
	block := append([]byte{status200, 0x0f, contentTypeLiteral, byte(len(contentType))}, contentType...)
	f.send(frameHeaders, flagEndHeaders, stream, block)
}

func (f frames) answer(stream uint32) {
	f.headers(stream, "application/json")
	f.send(frameData, flagEndStream, stream, []byte("{}"))
}

func (f frames) reset(stream, code uint32) {
	f.send(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

func (f frames) goAway(last, code uint32) {
	f.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// h2Server serves the n-th complete request, over all connections, by react.
// It returns its address, and what counts the streams that were opened.
func h2Server(t testing.TB, react func(n int, f frames, stream uint32)) (address string, streams func() int) {
	t.Helper()
	certificates(t)
	var mu sync.Mutex
	opened, complete := 0, 0
	address = rawServer(t, func(_ int, c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}})
		defer s.Close()
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		if _, err := io.ReadFull(s, make([]byte, len(preface))); err != nil {
			return
		}
		f := frames{s}
		f.send(frameSettings, 0, 0, nil)
		for {
			kind, flags, stream, payload, err := f.next()
			if err != nil {
				return
			}
			switch {
			case kind == frameSettings && flags&flagAck == 0:
				f.send(frameSettings, flagAck, 0, nil)
			case kind == framePing && flags&flagAck == 0:
				f.send(framePing, flagAck, 0, payload)
			case kind == frameHeaders:
				mu.Lock()
				opened++
				mu.Unlock()
			}
			if (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0 {
				mu.Lock()
				complete++
				n := complete
				mu.Unlock()
				react(n, f, stream)
			}
		}
	})
	return address, func() int { mu.Lock(); defer mu.Unlock(); return opened }
}

func h2Transport(t testing.TB) *http.Transport {
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: certificates(t), ServerName: "example.com"},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

type h2Case struct {
	Name
	// By safety: how often it is sent by net/http and by the loop, all told,
	// in how many attempts, and the error if there is one.
	Want map[string]struct {
		Sends    int `json:"sends"`
		Attempts int `json:"attempts"`
		verdictData
	} `json:"want"`
}

var h2Faults = map[string]func(f frames, stream uint32){
	"REFUSED_STREAM":                    func(f frames, stream uint32) { f.reset(stream, codeRefusedStream) },
	"GOAWAY that does not cover it":     func(f frames, stream uint32) { f.goAway(0, 0) },
	"RST_STREAM with PROTOCOL_ERROR":    func(f frames, stream uint32) { f.reset(stream, codeProtocolError) },
	"RST_STREAM with INTERNAL_ERROR":    func(f frames, stream uint32) { f.reset(stream, codeInternalError) },
	"RST_STREAM with CANCEL":            func(f frames, stream uint32) { f.reset(stream, codeCancel) },
	"GOAWAY that covers it, then close": func(f frames, stream uint32) { f.goAway(stream, codeInternalError); _ = f.Close() },
	"connection closed":                 func(f frames, stream uint32) { _ = f.Close() },
	"200, then RST_STREAM": func(f frames, stream uint32) {
		f.headers(stream, "application/json")
		f.send(frameData, 0, stream, []byte(`{"a":`))
		f.reset(stream, codeInternalError)
	},
	"200, then closed": func(f frames, stream uint32) {
		f.headers(stream, "application/json")
		f.send(frameData, 0, stream, []byte(`{"a":`))
		_ = f.Close()
	},
}

// The first request meets a fault of HTTP/2, every other one is answered.
func TestHTTP2Failures(t *testing.T) {
	for _, c := range casesOf[h2Case](t, "http2.json") {
		fault := h2Faults[c.Name.Name]
		if fault == nil {
			t.Fatalf("the fault %q is not written", c.Name.Name)
		}
		for _, safety := range safeties {
			for way := range ways {
				t.Run(c.Name.Name+"/"+safety+"/"+way, func(t *testing.T) {
					t.Parallel()
					address, streams := h2Server(t, func(n int, f frames, stream uint32) {
						if n == 1 {
							fault(f, stream)
						} else {
							f.answer(stream)
						}
					})
					op, base := opOf(safety), "https://"+address
					d := doerFor(t, resilience.WithBaseURL(base), resilience.WithOperations(op), resilience.WithTransport(h2Transport(t)),
						resilience.WithRetry(resilience.RetryPolicy{BaseDelay: -1}))
					var info resilience.CallInfo
					_, err := ways[way](withOptions(t.Context(), resilience.WithCallInfo(&info)), d, base, op)

					want := c.Want[safety]
					if n := streams(); n != want.Sends || info.Sends != want.Sends || info.Attempts != want.Attempts {
						t.Errorf("%d streams, %d sends and %d attempts by CallInfo, want %d in %d attempts", n, info.Sends, info.Attempts, want.Sends, want.Attempts)
					}
					if want.Outcome == "" {
						if err != nil {
							t.Error(err)
						}
						return
					}
					isExactly(t, err, want.Is...)
					if e := errorOf(t, err); e.Outcome != outcomeOf(t, want.Outcome) {
						t.Errorf("outcome %v, want %s", e.Outcome, want.Outcome)
					}
				})
			}
		}
	}
}

// A GOAWAY that covers the request, and then silence: the attempt's limit ends it.
func TestHTTP2GoAwayThenSilence(t *testing.T) {
	address, streams := h2Server(t, func(_ int, f frames, stream uint32) { f.goAway(stream, 0) })
	d := doerFor(t, resilience.WithBaseURL("https://"+address), resilience.WithTransport(h2Transport(t)), resilience.WithAttemptTimeout(100*time.Millisecond))
	err := callThing(context.Background(), d, opOf("unsafe"))
	isExactly(t, err, "ErrTimeout", "ErrOutcomeUnknown")
	if e := errorOf(t, err); e.Outcome != resilience.OutcomeUnknown || streams() != 1 {
		t.Errorf("outcome %v after %d streams", e.Outcome, streams())
	}
}

// On HTTP/2 net/http sends a request again after RST_STREAM(PROTOCOL_ERROR),
// whatever its method. Never those whose repetition is not safe.
func TestResendsOnHTTP2(t *testing.T) {
	for _, r := range resends {
		for way := range ways {
			t.Run(r.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				address, streams := h2Server(t, func(n int, f frames, stream uint32) {
					if n == 1 {
						f.reset(stream, codeProtocolError)
					} else {
						f.answer(stream)
					}
				})
				base := "https://" + address
				var info resilience.CallInfo
				err := r.send(t.Context(), way, r.doer(t, base, resilience.WithTransport(h2Transport(t))), base, resilience.WithCallInfo(&info))
				if n := streams(); n != r.sends || info.Sends != r.sends {
					t.Errorf("%d streams, %d sends by CallInfo; want %d", n, info.Sends, r.sends)
				}
				if r.unknown {
					isExactly(t, err, "ErrOutcomeUnknown", "ErrUnavailable")
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
