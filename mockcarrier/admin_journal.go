package mockcarrier

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// last returns copies of the newest requests that match, limit at most, in the
// order of their arrival.
func (j *journal) last(limit int, matches func(*Request) bool) []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []Request{}
	for _, r := range slices.Backward(j.requests) {
		if len(list) == limit {
			break
		}
		if matches(r) {
			found := *r
			found.Header, found.Parameters = r.Header.Clone(), maps.Clone(r.Parameters)
			found.Body, found.Answer = slices.Clone(r.Body), slices.Clone(r.Answer)
			list = append(list, found)
		}
	}
	slices.Reverse(list)
	return list
}

// count returns how many requests have come since the last reset.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

func (c *Carrier) adminRequests(w http.ResponseWriter, r *http.Request) {
	after, limit, refused := c.newest(r.URL.Query())
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	operation := r.URL.Query().Get("operation")
	writeJSON(w, http.StatusOK, c.journal.last(limit, func(entry *Request) bool {
		return entry.Seq > after && (operation == "" || entry.Operation == operation)
	}))
}

// newest reads which entries of a log are asked for: those behind a Seq, and how
// many at most.
func (c *Carrier) newest(query url.Values) (after, limit int, refused *refusal) {
	if after, refused = natural(query, "after", 0); refused != nil {
		return 0, 0, refused
	}
	limit, refused = natural(query, "limit", c.config.journalLimit)
	return after, limit, refused
}

// natural reads a whole number that is not negative from a query.
func natural(query url.Values, name string, usual int) (int, *refusal) {
	if !query.Has(name) {
		return usual, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < 0 {
		return 0, malformed(name, "type", "must be a whole number of at least 0")
	}
	return n, nil
}
