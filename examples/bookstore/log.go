package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// newLogger writes JSON, with the request's id and user on every line. The
// carrier's client logs with the context of the call, so that its retries have
// them too. On the few lines that are about no single request the id is "-".
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(visitHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})})
}

type visitHandler struct{ slog.Handler }

func (h visitHandler) Handle(ctx context.Context, record slog.Record) error {
	v := visitOf(ctx)
	id := v.id
	if id == "" {
		id = "-"
	}
	record.AddAttrs(slog.String("request_id", id))
	if v.user != "" {
		record.AddAttrs(slog.String("user", v.user))
	}
	return h.Handler.Handle(ctx, record)
}

func (h visitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return visitHandler{h.Handler.WithAttrs(attrs)}
}

func (h visitHandler) WithGroup(name string) slog.Handler {
	return visitHandler{h.Handler.WithGroup(name)}
}

// logRequests logs each request when it has ended. The query is left out: it may
// hold anything.
func (s *shop) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			s.log.InfoContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path,
				"status", rec.status, "duration_ms", time.Since(begun).Milliseconds())
		}()
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers the status that was sent; 0 while none was.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController and http.MaxBytesReader.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
