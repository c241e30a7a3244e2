package main

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// recoverPanics turns a panic into a 500, with the stack in the log. Where the
// answer has begun already, only cutting it short says that it is not whole.
func (s *shop) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if reason == http.ErrAbortHandler {
				panic(reason)
			}
			s.log.ErrorContext(r.Context(), "panic", "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
			if rec, ok := w.(*recorder); ok && rec.status != 0 {
				panic(http.ErrAbortHandler)
			}
			newProblem(http.StatusInternalServerError, "internal", "Something went wrong here.").write(w, r)
		}()
		next.ServeHTTP(w, r)
	})
}
