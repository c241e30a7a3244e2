package main

import (
	"net/http"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// live says that the process runs. It asks nobody: a process is not restarted
// because a carrier is down.
func (s *shop) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "live"})
}

// readiness is the answer of /readyz.
type readiness struct {
	Status   string            `json:"status"` // ready, degraded or stopping
	Breakers map[string]string `json:"breakers"`
}

// ready says whether requests should come here, and shows the breakers. An open
// one makes it "degraded", not unready: the breakers of all replicas open at
// about the same time, and one that gets no requests has nothing to probe the
// carrier with, and would never close again.
func (s *shop) ready(w http.ResponseWriter, _ *http.Request) {
	answer := readiness{Status: "ready", Breakers: map[string]string{}}
	for _, group := range []string{"tracking", "shipments"} {
		state := s.carrier.BreakerState(group)
		answer.Breakers[group] = state.String()
		if state != carrier.BreakerClosed {
			answer.Status = "degraded"
		}
	}
	if s.stopping.Load() {
		answer.Status = "stopping"
		writeJSON(w, http.StatusServiceUnavailable, answer)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}
