package resilience

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

const (
	defaultMaxResponse = 8 << 20
	maxErrorBody       = 256 << 10 // read of an error answer, so that its connection can be used again
	maxErrorKept       = 4 << 10   // of it, on the error
	minReadBuffer      = 512
	maxFirstBuffer     = 1 << 20 // a Content-Length that lies costs no more than this
)

var errTooLarge = errors.New("over the limit")

// readBody reads r in full, into one buffer sized by length where that is
// known. It returns errTooLarge, and what it has, beyond max bytes; where
// length tells so beforehand, that is no more than an error keeps.
func readBody(r io.Reader, length, max int64) ([]byte, error) {
	if length > max {
		head, _ := readBody(r, -1, min(max, maxErrorKept))
		return head, errTooLarge
	}
	size := int64(minReadBuffer)
	if length >= 0 {
		size = min(length+1, maxFirstBuffer) // the last byte of room is for the read that finds the end
	}
	buf := make([]byte, 0, min(size, max+1))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > max {
			return buf[:max], errTooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// outgoing is where an attempt's request body comes from.
type outgoing struct {
	length int64
	open   func() (io.ReadCloser, error) // nil: no body
}

// bytesBody sends the same bytes on every attempt, without a copy.
func bytesBody(b []byte) outgoing {
	if b == nil {
		return outgoing{}
	}
	return outgoing{length: int64(len(b)), open: func() (io.ReadCloser, error) {
		return newBytesReader(b), nil
	}}
}

type bytesReader struct{ bytes.Reader }

func newBytesReader(b []byte) *bytesReader {
	r := new(bytesReader)
	r.Reset(b)
	return r
}

func (*bytesReader) Close() error { return nil }

// emptyBody is no body at all, of a request that net/http must not send again:
// it takes a GET whose Body is nil for repeatable. For these methods it looks
// for a first byte, finds none, and sends the request as it would without.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

func usuallyBodiless(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	}
	return false
}

// sentBody notes what goes wrong while the caller's own body is read: that is
// no fault of the carrier's.
type sentBody struct {
	io.ReadCloser
	a *attempt
}

func (b sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.a.sendErr.Store(&err)
	}
	return n, err
}

// closeDelimited holds for an HTTP/1 answer whose end is the connection's: a
// cut of it cannot be told from its end by anyone but the decoder.
func closeDelimited(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed
}
