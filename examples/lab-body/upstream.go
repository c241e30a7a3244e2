package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// upstream is a mockcarrier on loopback that counts the requests it holds. One
// that waits in the middle of a body is held until its client closes the
// connection: that is how the carrier sees who has really given up.
type upstream struct {
	*mockcarrier.Carrier
	url    string
	server *httptest.Server
	begun  atomic.Int64
	held   atomic.Int64
}

func startUpstream(faults ...mockcarrier.Fault) *upstream {
	u := &upstream{Carrier: mockcarrier.New()}
	for _, f := range faults {
		u.Inject(f)
	}
	u.server = httptest.NewUnstartedServer(u)
	u.server.Config.ConnContext = u.ConnContext
	u.server.Start()
	u.url = u.server.URL + "/v1"
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.begun.Add(1)
	u.held.Add(1)
	defer u.held.Add(-1)
	u.Carrier.ServeHTTP(w, r)
}

func (u *upstream) stop() {
	u.Close()
	u.server.Close()
}

// connections is how many of them requests came on.
func (u *upstream) connections() int {
	seen := map[int]bool{}
	for _, r := range u.Requests() {
		seen[r.Connection] = true
	}
	return len(seen)
}

// eventually waits for n to become want, and returns what it is then.
func eventually(ctx context.Context, n *atomic.Int64, want int) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n.Load() != int64(want) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return int(n.Load())
}

// gather returns what the calls have returned, when all of them have or the
// time given is over.
func gather(ctx context.Context, back <-chan error, wait time.Duration) (errs []error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for len(errs) < calls {
		select {
		case err := <-back:
			errs = append(errs, err)
		case <-ctx.Done():
			return errs
		}
	}
	return errs
}
