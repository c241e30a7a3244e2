package main

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// arrival is one attempt, as the carrier saw it.
type arrival struct {
	at      time.Duration // since the carrier went down
	refused bool
}

// upstream is a carrier that is down at first.
type upstream struct {
	start time.Time

	mu       sync.Mutex
	arrivals []arrival
}

// ServeHTTP answers with a bare 503 in the outage, and then with a tracking.
func (u *upstream) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	at := time.Since(u.start)
	u.arrivals = append(u.arrivals, arrival{at, at < outage})
	u.mu.Unlock()
	if at < outage {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"trackingNumber":"BK1001TR","status":"in_transit"}`)
}
