package simulation

import (
	"net/http"
	"sync"
	"time"
)

// upstream is what the clients call, as an http.RoundTripper: it does capacity
// calls in a second, and nothing during its outage.
type upstream struct {
	scenario
	began time.Time

	mu       sync.Mutex
	tokens   float64       // what is left of the burst
	refilled time.Duration // when tokens was right
	busy     time.Duration // working time that all accepted calls take, to their end
	arrivals []arrival
}

// arrival is one attempt, as the upstream sees it.
type arrival struct {
	at time.Duration // since the beginning
	ok bool          // its client got the answer
}

func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	at := time.Since(u.began)
	if !u.queues {
		ok := u.accept(at)
		u.note(at, ok)
		if !ok {
			return answer(http.StatusServiceUnavailable), nil
		}
		return answer(http.StatusOK), nil
	}

	// The call is worked on to its end, whether or not its client waits for it.
	done := time.NewTimer(u.enqueue(at) - at)
	defer done.Stop()
	select {
	case <-done.C:
		u.note(at, true)
		return answer(http.StatusOK), nil
	case <-req.Context().Done():
		u.note(at, false)
		return nil, req.Context().Err()
	}
}

// accept is the upstream that fails fast: a token bucket.
func (u *upstream) accept(at time.Duration) bool {
	if at >= u.before && at < u.before+u.outage {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tokens = min(burst, u.tokens+u.capacity*(at-u.refilled).Seconds())
	u.refilled = at
	if u.tokens < 1 {
		return false
	}
	u.tokens--
	return true
}

// enqueue is the upstream that queues: first come first served, one at a time.
// It returns when the call will be done.
func (u *upstream) enqueue(at time.Duration) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = max(u.busy, u.worked(at)) + time.Duration(float64(time.Second)/u.capacity)
	if u.busy > u.before {
		return u.busy + u.outage
	}
	return u.busy
}

// worked is how much of the time up to at was not outage.
func (u *upstream) worked(at time.Duration) time.Duration {
	return min(at, u.before) + max(0, at-u.before-u.outage)
}

func (u *upstream) note(at time.Duration, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrivals = append(u.arrivals, arrival{at, ok})
}

func answer(status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
}
