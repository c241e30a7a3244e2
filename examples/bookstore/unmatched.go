package main

import "net/http"

// unmatched answers what no route is for with problem details as well: 404, or
// 405 with Allow, as the mux decides.
func unmatched(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		verdict := headOnly{header: http.Header{}}
		mux.ServeHTTP(&verdict, r)
		if verdict.status < http.StatusBadRequest { // a redirect to the clean form of the path
			mux.ServeHTTP(w, r)
			return
		}
		code := "bad_request"
		switch verdict.status {
		case http.StatusNotFound:
			code = "no_such_resource"
		case http.StatusMethodNotAllowed:
			code = "method_not_allowed"
		}
		p := newProblem(verdict.status, code, "")
		if allow := verdict.header.Get("Allow"); allow != "" {
			p.header("Allow", allow)
		}
		p.write(w, r)
	})
}

// headOnly keeps the head of an answer, and drops its body.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header         { return h.header }
func (h *headOnly) WriteHeader(status int)      { h.status = status }
func (h *headOnly) Write(p []byte) (int, error) { return len(p), nil }
