package main

import (
	"encoding/json"
	"net/http"
)

// problem is an error answer: problem details (RFC 9457) of type about:blank,
// with a code for programs.
type problem struct {
	Status    int    `json:"status"`
	Title     string `json:"title"`
	Code      string `json:"code"`
	Detail    string `json:"detail,omitempty"`
	RequestID string `json:"requestId"`

	headers http.Header
}

func newProblem(status int, code, detail string) *problem {
	return &problem{Status: status, Title: http.StatusText(status), Code: code, Detail: detail, headers: http.Header{}}
}

// header adds a header to the answer.
func (p *problem) header(name, value string) *problem {
	p.headers.Set(name, value)
	return p
}

// Error makes it what an action can return.
func (p *problem) Error() string { return p.Code }

func (p *problem) write(w http.ResponseWriter, r *http.Request) {
	for name, values := range p.headers {
		w.Header()[name] = values
	}
	p.RequestID = visitOf(r.Context()).id
	writeBody(w, p.Status, "application/problem+json", p)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, "application/json", v)
}

func writeBody(w http.ResponseWriter, status int, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // it fails only if the client has left
}
