package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const noParcel = "BK9999TR" // answered with 404, and a body that says why

// unread is how a client with one connection fares when it does not read the
// bodies of errors.
type unread struct {
	client      string
	answered    int // calls that came back with the 404
	arrived     int // requests at the carrier
	connections int
}

// unreadBody is the third scene: a pool of one connection, and errors.
func unreadBody(ctx context.Context, stdout io.Writer) error {
	fmt.Fprintf(stdout, "3. One connection, and %d calls one after the other, each answered with 404.\n\n", calls)
	naive, err1 := tryUnread(ctx, "returns at the status, leaves the body", forgetful, watch)
	ours, err2 := tryUnread(ctx, "carrier-go", lookUp, patience)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   CLIENT\tCALLS ANSWERED\tREQUESTS THAT ARRIVED\tCONNECTIONS")
	for _, u := range []unread{naive, ours} {
		fmt.Fprintf(w, "   %s\t%d of %d\t%d\t%d\n", u.client, u.answered, calls, u.arrived, u.connections)
	}
	_ = w.Flush()
	if naive.answered < calls {
		fmt.Fprintln(stdout, "\n   The second call waits for the one connection, which the unread body of the first keeps.")
	}
	return errors.Join(naive.check(1), ours.check(calls))
}

func tryUnread(ctx context.Context, name string, newClient newClient, wait time.Duration) (unread, error) {
	u := startUpstream()
	defer u.stop()
	call, done, err := newClient(u.url)
	if err != nil {
		return unread{}, err
	}
	defer done()
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()

	result := unread{client: name}
	back := make(chan error)
	wg.Go(func() {
		for range calls {
			select {
			case back <- call(ctx):
			case <-ctx.Done():
				return
			}
		}
	})
	for _, err := range gather(ctx, back, wait) {
		if !errors.Is(err, carrier.ErrNotFound) {
			return result, fmt.Errorf("%s: want a 404, not: %w", name, err)
		}
		result.answered++
	}
	result.arrived, result.connections = len(u.Requests()), u.connections()
	return result, ctx.Err()
}

func (u unread) check(answered int) error {
	if u.answered != answered || u.arrived != answered || u.connections != 1 {
		return fmt.Errorf("%s: %d calls were answered and %d requests arrived on %d connections, want %d, %d and 1",
			u.client, u.answered, u.arrived, u.connections, answered, answered)
	}
	return nil
}

// forgetful looks at the status and returns. It neither reads nor closes the
// body, and the connection waits for it.
func forgetful(url string) (call, func(), error) {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	return func(ctx context.Context) error {
		resp, err := send(ctx, client, url, noParcel)
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusNotFound {
			return carrier.ErrNotFound
		}
		return fmt.Errorf("status %d", resp.StatusCode)
	}, client.CloseIdleConnections, nil
}

// lookUp is carrier-go with a pool of one.
func lookUp(url string) (call, func(), error) {
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithMaxConns(1))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		_, err := client.GetTracking(ctx, noParcel)
		return err
	}, func() { _ = client.Close() }, nil
}
