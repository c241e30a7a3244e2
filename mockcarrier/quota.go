package mockcarrier

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// quotas counts the requests of each account in windows of fixed length, on the
// carrier's clock.
type quotas struct {
	limit  int
	window time.Duration
	policy []string

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
	policy      []string      // the header RateLimit-Policy
	renews      time.Duration // from now
	exceeded    bool
}

func newQuotas(limit int, window time.Duration) quotas {
	return quotas{limit: limit, window: window, policy: []string{limitText("q", limit, "w", seconds(window))}}
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
	return &quota{limit: q.limit, left: q.limit - w.used, policy: q.policy, renews: w.ends.Sub(now), exceeded: exceeded}
}

func (q *quotas) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accounts = make(map[string]*window)
}

// set adds the RateLimit headers.
func (q *quota) set(h http.Header) {
	h["Ratelimit-Policy"] = q.policy
	h["Ratelimit"] = []string{limitText("r", q.left, "t", seconds(q.renews))}
}

// limitText writes an item of the RateLimit headers: `"default";r=9;t=60`.
func limitText(number string, n int, time string, t int) string {
	b := make([]byte, 0, 48)
	b = append(append(append(b, `"default";`...), number...), '=')
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(append(append(b, ';'), time...), '=')
	return string(strconv.AppendInt(b, int64(t), 10))
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
