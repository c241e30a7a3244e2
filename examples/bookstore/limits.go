package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// within bounds a request in time, all that it does at the carrier included.
func within(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

const maxBody = 64 << 10

// readBody reads a body of up to maxBody before the handler runs. Only once it
// is read does the server notice that a client leaves.
func readBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			newProblem(http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than 64 KiB.").write(w, r)
		case err != nil:
			newProblem(http.StatusBadRequest, "body_unreadable", "The body could not be read.").write(w, r)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}
