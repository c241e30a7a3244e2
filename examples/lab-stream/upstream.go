package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

const cuts = 3 // of the connection, where it is cut

// request is one that reached the carrier.
type request struct {
	Range, ifRange string
	status         int
	sent           int64 // bytes of the document
}

// upstream serves the document as a label, with ranges, and cuts the connection
// each time that a part of the document has gone out.
type upstream struct {
	*httptest.Server
	doc   document
	every int64 // bytes until a cut

	mu       sync.Mutex
	cuts     int // still to come
	requests []request
}

func startUpstream(doc document, cuts int) *upstream {
	u := &upstream{doc: doc, cuts: cuts, every: doc.size / 4}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/shipments/{shipmentId}/label", u.label)
	u.Server = httptest.NewServer(mux)
	return u
}

func (u *upstream) label(w http.ResponseWriter, r *http.Request) {
	left := u.doc.size
	u.mu.Lock()
	if u.cuts > 0 {
		u.cuts--
		left = u.every
	}
	u.mu.Unlock()

	out := &cutWriter{ResponseWriter: w, left: left}
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.requests = append(u.requests, request{
			Range: r.Header.Get("Range"), ifRange: r.Header.Get("If-Range"), status: out.status, sent: out.sent,
		})
	}()
	doc := u.doc
	w.Header().Set("Content-Type", "application/pdf")
	w.Header().Set("ETag", `"label-1"`)
	http.ServeContent(out, r, "", time.Time{}, &doc)
}

// close waits for the requests under way, and returns all that came.
func (u *upstream) close() []request {
	u.Close()
	return u.requests
}

// cutWriter cuts the connection when left bytes have gone out.
type cutWriter struct {
	http.ResponseWriter
	status     int
	left, sent int64
}

func (w *cutWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *cutWriter) Write(p []byte) (int, error) {
	cut := int64(len(p)) > w.left-w.sent
	if cut {
		p = p[:w.left-w.sent]
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	if cut {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}
