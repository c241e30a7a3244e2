package mockcarrier_test

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The carrier is to serve at least 60 % of the requests that a bare net/http
// handler serves which returns the same bytes.
const leastShare = 0.6

// compare measures how many requests a second two servers answer, in turns, so
// that what else the machine does hits both alike, and in rounds that are short,
// so that both have some without it. It returns the share of the first's best
// round in the second's.
func compare(rounds, requests int, mock, bare func(n int)) float64 {
	fastest := func(best time.Duration, run func(n int)) time.Duration {
		start := time.Now()
		run(requests)
		return min(best, time.Since(start))
	}
	mock(requests) // to warm up
	bare(requests)
	ours, theirs, share := time.Hour, time.Hour, 0.0
	for round := range rounds {
		ours, theirs = fastest(ours, mock), fastest(theirs, bare)
		share = theirs.Seconds() / ours.Seconds()
		if round >= rounds/8 && share > 1.2*leastShare {
			break // beyond doubt
		}
	}
	return share
}

func load(tb testing.TB, url string) func(n int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	tb.Cleanup(client.CloseIdleConnections)
	return func(n int) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range n / 8 {
					req, _ := http.NewRequest("GET", url, nil)
					req.Header.Set("X-Api-Key", mockcarrier.APIKey)
					resp, err := client.Do(req)
					if err != nil {
						tb.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		wg.Wait()
	}
}

func TestThroughput(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector costs the carrier's code more than net/http's")
	}
	s := mockcarrier.Start(t)
	sample := newAPI(s).get(t, "/tracking/BK1001TR")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sample.Header.Del("Date")
	header, body := sample.Header, []byte(sample.body)
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		_, _ = w.Write(body)
	})}
	ended := make(chan error, 1)
	go func() { ended <- bare.Serve(listener) }()
	t.Cleanup(func() {
		_ = bare.Close()
		<-ended
	})
	share := compare(200, 80, load(t, s.URL+"/tracking/BK1001TR"), load(t, "http://"+listener.Addr().String()))
	t.Logf("%.2f of a bare handler", share)
	if share < leastShare {
		t.Errorf("it serves %.2f of what a bare handler serves", share)
	}
}
