package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var bodyCases = []Case{
	{ID: "bodies/gzip-bomb", Title: "a few KiB that unpack to 16 MiB of JSON are refused", Source: "CWE-409", run: gzipBomb},
	{ID: "bodies/label-large", Title: "a label of 16 MiB comes whole, as a stream", Source: "the API's description", run: largeLabel},
	{ID: "bodies/label-cut", Title: "a label that is cut each time is never taken for whole", Source: "RFC 9112 §8", run: cutLabel},
}

const mebi = 1 << 20

// bomb is JSON that is sound, and far too large.
var bomb = sync.OnceValue(func() string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = io.WriteString(w, `{"trackingNumber":"`+parcel+`","status":"`+parcelStatus+`","padding":"`)
	padding := []byte(strings.Repeat("x", mebi))
	for range 16 {
		_, _ = w.Write(padding)
	}
	_, _ = io.WriteString(w, `"}`)
	_ = w.Close()
	return b.String()
})

func gzipBomb(s *stage) {
	s.mock.Inject(mockcarrier.Status(200).WithBody(bomb()).
		WithHeader("Content-Type", "application/json").WithHeader("Content-Encoding", "gzip"))
	r := s.within(defaultLimit, s.track)
	s.want(r.Err != nil, "the call succeeds; it must fail")
}

// count counts bytes.
type count int64

func (c *count) Write(p []byte) (int, error) {
	*c += count(len(p))
	return len(p), nil
}

func largeLabel(s *stage) {
	const size = 16 * mebi
	var l label
	if !l.make(s) {
		return
	}
	s.mock.Inject(mockcarrier.Oversize(size).On("getLabel"))
	var n count
	r := s.within(defaultLimit, func(ctx context.Context) Result { return s.client.Label(ctx, l.shipment, &n) })
	s.want(r.Err == nil && n == size, "%d of %d bytes come: %s", n, size, line(r.Err))
}

func cutLabel(s *stage) {
	var l label
	if !l.make(s) {
		return
	}
	s.mock.Inject(mockcarrier.Truncate(100, mockcarrier.ByLength).On("getLabel"))
	r := s.within(defaultLimit, l.download)
	s.want(r.Err != nil || bytes.Equal(l.got.Bytes(), l.whole), "%d bytes of the label come, and no error; it has %d", l.got.Len(), len(l.whole))
}
