package mockcarrier

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"time"
)

// orphan is a request whose connection was cut before an answer, and which an
// HTTP library may send again by itself.
type orphan struct {
	entry *Request
	at    time.Time
}

// resendWithin is how soon a library sends again: it does not wait. Whoever does,
// such as the SDK, is told from it by that.
const resendWithin = 100 * time.Millisecond

// lost notes that the connection of a request is being cut. net/http sends
// again what broke off on a connection that it had used before.
func (j *journal) lost(entry *Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if entry.Nth > 1 && replayable(entry) {
		const most = 256
		if len(j.orphans) == most {
			j.orphans = slices.Delete(j.orphans, 0, most/2)
		}
		j.orphans = append(j.orphans, orphan{entry, time.Now()})
	}
}

// replayable says whether net/http may send the request again.
func replayable(r *Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

// claim finds the request that this one repeats, byte for byte, on another
// connection and at once. It must have been read.
func (j *journal) claim(entry *Request) (resent bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.orphans) == 0 {
		return false
	}
	now := time.Now()
	j.orphans = slices.DeleteFunc(j.orphans, func(o orphan) bool { return now.Sub(o.at) > resendWithin })
	for i, o := range j.orphans {
		if o.entry.repeats(entry) {
			entry.ResentOf = o.entry.Seq
			j.orphans = slices.Delete(j.orphans, i, i+1)
			return true
		}
	}
	return false
}

// repeats says whether b is the same request as a on another connection.
func (a *Request) repeats(b *Request) bool {
	return a.Connection != b.Connection && a.Method == b.Method && a.Path == b.Path && a.Query == b.Query &&
		a.BodySize == b.BodySize && bytes.Equal(a.Body, b.Body) && maps.EqualFunc(a.Header, b.Header, slices.Equal[[]string])
}
