package mockcarrier_test

import (
	"net/http"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// BenchmarkHandler compares the carrier with a bare handler that writes the
// same bytes.
func BenchmarkHandler(b *testing.B) {
	c := mockcarrier.New(mockcarrier.WithJournalLimit(1000))
	request := func() *http.Request {
		r, _ := http.NewRequest("GET", "/v1/tracking/BK1001TR", http.NoBody)
		r.Header.Set("X-Api-Key", mockcarrier.APIKey)
		return r
	}
	rec := newRecorder()
	c.ServeHTTP(rec, request())
	body := []byte(rec.body.String())
	for name, h := range map[string]http.Handler{
		"carrier": c,
		"bare":    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(newRecorder(), request())
			}
		})
	}
}

// BenchmarkOverTheWire does the same through connections in memory.
func BenchmarkOverTheWire(b *testing.B) {
	s := mockcarrier.StartInMemory(b, mockcarrier.WithJournalLimit(1000))
	a := newAPI(s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.try("GET", "/tracking/BK1001TR", ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a server for a test, from start to end.
func BenchmarkStart(b *testing.B) {
	for name, start := range networks {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				tb := &recordingTB{}
				start(tb)
				tb.finish()
			}
		})
	}
}
