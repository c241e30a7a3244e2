package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// action is a handler that may fail. It has written nothing when it does.
type action func(w http.ResponseWriter, r *http.Request) error

// statusClientLeft is for the log: nobody is there to read it.
const statusClientLeft = 499

// answer turns the error of an action into an answer, and keeps what the answer
// must not say for the log.
func (s *shop) answer(h action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		var p *problem
		if !errors.As(err, &p) {
			s.logFailure(r.Context(), "carrier failed", err)
			p = carrierFailed(err)
		}
		if r.Context().Err() == context.Canceled {
			w.WriteHeader(statusClientLeft)
			return
		}
		p.write(w, r)
	})
}

// logFailure logs what the carrier did. Its error knows which of its fields are
// fit for a log.
func (s *shop) logFailure(ctx context.Context, message string, err error) {
	level := slog.LevelWarn
	if errors.Is(err, carrier.ErrUnauthorized) || errors.Is(err, carrier.ErrForbidden) {
		level = slog.LevelError // our own key is refused, and no retry helps
	}
	s.log.Log(ctx, level, message, "error", err)
}
