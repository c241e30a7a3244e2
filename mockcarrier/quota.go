package mockcarrier

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// quotas counts the requests of each account in windows of fixed length, on the
// carrier's clock.
type quotas struct {
	limit  int
	window time.Duration

	mu       sync.Mutex
	accounts map[string]*window
}

type window struct {
	ends time.Time
	used int
}

// quota is what is left to an account after a request.
type quota struct {
	limit, left int
	window      time.Duration
	renews      time.Duration // from now
	exceeded    bool
}

func (q *quotas) take(account string, now time.Time) *quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.accounts[account]
	if w == nil {
		w = new(window)
		q.accounts[account] = w
	}
	if !now.Before(w.ends) {
		*w = window{ends: now.Add(q.window)}
	}
	exceeded := w.used >= q.limit
	if !exceeded {
		w.used++
	}
	return &quota{limit: q.limit, left: q.limit - w.used, window: q.window, renews: w.ends.Sub(now), exceeded: exceeded}
}

func (q *quotas) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accounts = make(map[string]*window)
}

// set adds the RateLimit headers.
func (q *quota) set(h http.Header) {
	h["Ratelimit-Policy"] = []string{fmt.Sprintf(`"default";q=%d;w=%d`, q.limit, seconds(q.window))}
	h["Ratelimit"] = []string{fmt.Sprintf(`"default";r=%d;t=%d`, q.left, seconds(q.renews))}
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
