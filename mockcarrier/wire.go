package mockcarrier

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// connection is what the carrier knows of a connection.
type connection struct {
	net.Conn
	id       int
	requests atomic.Int64
}

type connectionKey struct{}

// ConnContext goes into the ConnContext of an [http.Server] that has the
// carrier as its handler: the journal then knows connections apart, and faults
// can reset them on HTTP/2 as well. [Start] and [StartInMemory] have done it.
func (c *Carrier) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{Conn: conn, id: int(c.connections.Add(1))})
}

func connectionOf(r *http.Request) *connection {
	conn, _ := r.Context().Value(connectionKey{}).(*connection)
	return conn
}

// takeOver gives the connection of an HTTP/1.1 request to the caller, or nil if
// it cannot be had. It is closed when the carrier closes.
func (x *exchange) takeOver() net.Conn {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return nil
	}
	x.carrier.running.adopt(conn)
	return conn
}

func (x *exchange) giveUp(conn net.Conn) {
	_ = conn.Close()
	x.carrier.running.forget(conn)
}

// cut ends the connection without another byte, by FIN or by RST.
func (x *exchange) cut(reset bool) {
	if x.r.ProtoMajor == 1 {
		x.carrier.journal.lost(x.entry)
	}
	conn := x.takeOver()
	if conn == nil { // HTTP/2
		if c := connectionOf(x.r); c != nil {
			end(c.Conn, reset)
		}
		panic(http.ErrAbortHandler)
	}
	end(conn, reset)
	x.giveUp(conn)
}

// end closes a connection, or resets what is below TLS.
func end(conn net.Conn, reset bool) {
	if !reset {
		_ = conn.Close()
		return
	}
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	switch conn := conn.(type) {
	case interface{ Reset() error }:
		_ = conn.Reset()
	case *net.TCPConn:
		_ = conn.SetLinger(0) // Close sends RST
		_ = conn.Close()
	default:
		_ = conn.Close()
	}
}

// send writes an answer.
func (x *exchange) send(a answer) {
	x.writeHead(a, int64(len(a.Body)))
	_, _ = x.w.Write(a.Body)
}

// sendStream writes an answer whose body is made meanwhile, each piece at once.
// It ends, and the connection with it, when the client goes away or the carrier
// closes.
func (x *exchange) sendStream(a answer) {
	x.writeHead(a, -1)
	x.flush()
	if x.stream(pieces{x}) != nil {
		panic(http.ErrAbortHandler)
	}
}

// pieces sends what is written to it at once.
type pieces struct{ *exchange }

func (p pieces) Write(b []byte) (int, error) {
	if p.carrier.running.closed() {
		return 0, net.ErrClosed
	}
	if err := p.r.Context().Err(); err != nil {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.flush()
	return n, err
}

// whole returns the answer with its body, if that was to be made meanwhile: a
// fault has to know where it ends.
func (x *exchange) whole(a answer) answer {
	if x.stream == nil {
		return a
	}
	var b bytes.Buffer
	_ = x.stream(&b) // a buffer never fails
	x.stream, a.Body = nil, b.Bytes()
	return a
}

// writeHead writes status and headers for a body of that size; -1 leaves the
// size open.
func (x *exchange) writeHead(a answer, size int64) {
	header := x.w.Header()
	x.headers(header, a)
	if size >= 0 && hasBody(a.Status) {
		header["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	}
	x.w.WriteHeader(a.Status)
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// sendRaw takes over an HTTP/1.1 connection and writes the answer times times,
// each with the first n bytes of its body, then closes or resets the
// connection. On HTTP/2 the answer comes once.
func (x *exchange) sendRaw(a answer, framing Framing, n int64, times int, reset bool) {
	conn := x.takeOver()
	if conn == nil {
		x.sendCut(a, framing, n, reset)
		return
	}
	defer x.giveUp(conn)
	for range times {
		if _, err := conn.Write(x.raw(a, framing, n)); err != nil {
			return
		}
	}
	if reset {
		x.wait(resetPause)
		end(conn, true)
	}
}

// resetPause lets the client read what was sent, which a reset that comes with
// it can take away again, or pass off as the end.
const resetPause = 10 * time.Millisecond

// raw returns the bytes of an HTTP/1.1 answer of which the first n bytes of the
// body come. In chunks, the last chunk that comes is not whole.
func (x *exchange) raw(a answer, framing Framing, n int64) []byte {
	var b bytes.Buffer
	x.rawHead(&b, a)
	switch framing {
	case ByChunks:
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(a.Body))
	case ByClose:
		b.WriteString("Connection: close\r\n\r\n")
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(a.Body))
	}
	b.Write(a.Body[:n])
	return b.Bytes()
}

// sendBroken takes over an HTTP/1.1 connection, writes what no HTTP client can
// make sense of, and closes it. HTTP/2 has no such bytes: the stream is aborted.
func (x *exchange) sendBroken(f Fault, a answer) {
	conn := x.takeOver()
	if conn == nil {
		if f.Kind != KindNoContentBody {
			panic(http.ErrAbortHandler)
		}
		a.Body = nil
		x.send(a)
		return
	}
	defer x.giveUp(conn)
	var b bytes.Buffer
	switch f.Kind {
	case KindGarbage:
		b.WriteString(cmp.Or(f.Body, "220 mail.example ESMTP\r\n\r\n"))
	case KindBadChunk:
		x.rawHead(&b, a)
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\nlots\r\n%s\r\n0\r\n\r\n", a.Body)
	case KindOverlong:
		x.rawHead(&b, a)
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(a.Body)/2, a.Body)
	case KindNoContentBody:
		x.rawHead(&b, a)
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(a.Body), a.Body)
	}
	_, _ = conn.Write(b.Bytes())
}

// sendCut is sendRaw for HTTP/2: the stream ends too early, in good order where
// the framing has no length, by an abort otherwise.
func (x *exchange) sendCut(a answer, framing Framing, n int64, reset bool) {
	size := int64(len(a.Body))
	if framing != ByLength && framing != "" {
		size = -1
	}
	x.writeHead(a, size)
	_, _ = x.w.Write(a.Body[:n])
	x.flush()
	if reset {
		if c := connectionOf(x.r); c != nil {
			end(c.Conn, true)
		}
	}
	if reset || framing != ByClose && n < int64(len(a.Body)) {
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// sendPadded writes an answer whose body is size bytes long. JSON objects get a
// long member in front; other bodies get zero bytes behind.
func (x *exchange) sendPadded(a answer, size int64, framing Framing) {
	head, tail, filler := a.Body, []byte(nil), byte(0)
	if rest, isObject := bytes.CutPrefix(a.Body, []byte("{")); isObject {
		head, tail, filler = []byte(`{"padding":"`), append([]byte(`",`), rest...), 'x'
		if bytes.Equal(bytes.TrimSpace(rest), []byte("}")) {
			tail = []byte(`"}`)
		}
	}
	padding := max(0, size-int64(len(head)+len(tail)))
	total := int64(-1)
	if framing == ByLength {
		total = int64(len(head)+len(tail)) + padding
	}
	x.writeHead(a, total)
	_, _ = io.Copy(x.w, io.MultiReader(bytes.NewReader(head), io.LimitReader(endless(filler), padding), bytes.NewReader(tail)))
}

// endless reads as one byte for ever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// rawHead writes the status line and the headers, but for the framing.
func (x *exchange) rawHead(b *bytes.Buffer, a answer) {
	fmt.Fprintf(b, "HTTP/1.1 %03d %s\r\n", a.Status, http.StatusText(a.Status))
	header := http.Header{}
	x.headers(header, a)
	for name, values := range header {
		if values == nil {
			delete(header, name)
		}
	}
	_ = header.Write(b)
}

// headers adds those of the answer and those that every answer has. Their
// values are the answer's own, and are not changed.
func (x *exchange) headers(header http.Header, a answer) {
	for name, values := range a.Header {
		header[name] = values[:len(values):len(values)]
	}
	header["X-Request-Id"] = []string{x.requestID}
	header["Date"] = []string{x.carrier.now().UTC().Format(http.TimeFormat)}
	if x.quota != nil {
		x.quota.set(header)
	}
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // net/http is not to guess
	}
}
