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

const parcel = "BK1001TR"

// late is how a client fares when bodies never come.
type late struct {
	client   string
	returned int           // calls that came back
	after    time.Duration // until they had
	held     int           // requests that the carrier holds then
	err      error         // of the first of them
}

// lateBody is the first scene: the headers come at once, the body never.
func lateBody(ctx context.Context, stdout io.Writer) error {
	fmt.Fprintf(stdout, "1. The headers come at once, the body never. %d calls each, time limit %v.\n\n", calls, limit)
	hangs, err1 := tryLate(ctx, "time limit on the headers", limitOnHeaders, watch, calls)
	leaks, err2 := tryLate(ctx, "goroutine and time.After", letGo, patience, calls)
	ours, err3 := tryLate(ctx, "carrier-go", track, patience, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   CLIENT\tCALLS THAT CAME BACK\tAFTER\tCONNECTIONS THAT THE CARRIER STILL HOLDS")
	for _, l := range []late{hangs, leaks, ours} {
		after := "never"
		if l.returned > 0 {
			after = l.after.Round(10 * time.Millisecond).String()
		}
		fmt.Fprintf(w, "   %s\t%d of %d\t%s\t%d\n", l.client, l.returned, calls, after, l.held)
	}
	_ = w.Flush()
	fmt.Fprintf(stdout, "\n   carrier-go says: %v\n", ours.err)
	return errors.Join(hangs.check(0, calls), leaks.check(calls, calls), ours.check(calls, 0), statusKept(ours.err, http.StatusOK))
}

// tryLate makes calls at the same time, and looks what is left when all have
// come back, or at the end of the time given.
func tryLate(ctx context.Context, name string, newClient newClient, wait time.Duration, held int) (late, error) {
	u := startUpstream(mockcarrier.StallBody(40).On("getTracking"))
	defer u.stop()
	call, done, err := newClient(u.url)
	if err != nil {
		return late{}, err
	}
	defer done()
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()

	l := late{client: name}
	begun := time.Now()
	back := make(chan error, calls)
	for range calls {
		wg.Go(func() { back <- call(ctx) })
	}
	if n := eventually(ctx, &u.begun, calls); n != calls {
		return l, errors.Join(ctx.Err(), fmt.Errorf("%s: %d requests reached the carrier, want %d", name, n, calls))
	}
	errs := gather(ctx, back, wait)
	if l.returned = len(errs); l.returned > 0 {
		l.after, l.err = time.Since(begun), errs[0]
	}
	l.held = eventually(ctx, &u.held, held)
	return l, ctx.Err()
}

func (l late) check(returned, held int) error {
	if l.returned != returned || l.held != held {
		return fmt.Errorf("%s: %d calls came back and %d connections are held, want %d and %d",
			l.client, l.returned, l.held, returned, held)
	}
	return nil
}

// statusKept holds if the error is a time limit's, and has the status that had
// arrived.
func statusKept(err error, status int) error {
	var e *carrier.Error
	if !errors.As(err, &e) || !errors.Is(err, carrier.ErrTimeout) || e.StatusCode != status ||
		e.Outcome != carrier.OutcomeDone || e.Timeout != limit {
		return fmt.Errorf("carrier-go: %v: want a time limit of %v with status %d and outcome done", err, limit, status)
	}
	return nil
}

// call asks for the tracking of a parcel.
type call func(ctx context.Context) error

// newClient makes a client for the carrier at url. done closes what it has left.
type newClient func(url string) (call call, done func(), err error)

// limitOnHeaders is a client whose time limit ends when the headers are there,
// as that of http.Transport does. It reads on for as long as the carrier likes.
func limitOnHeaders(url string) (call, func(), error) {
	client := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: limit}}
	return func(ctx context.Context) error { return get(ctx, client, url) }, client.CloseIdleConnections, nil
}

// letGo gives up on a call, but does not end it: the goroutine goes on waiting,
// with its connection.
func letGo(url string) (call, func(), error) {
	client := &http.Client{Transport: &http.Transport{}}
	return func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- get(ctx, client, url) }()
		select {
		case err := <-done:
			return err
		case <-time.After(limit):
			return errors.New("no answer in time")
		}
	}, client.CloseIdleConnections, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	resp, err := send(ctx, client, url, parcel)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

func send(ctx context.Context, client *http.Client, url, number string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/tracking/"+number, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	return client.Do(req)
}

// track is carrier-go, with a single attempt so that the counts compare.
func track(url string) (call, func(), error) {
	client, err := carrier.New(url, carrier.WithAPIKey(mockcarrier.APIKey),
		carrier.WithAttemptTimeout(limit), carrier.WithoutRetry())
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		_, err := client.GetTracking(ctx, parcel)
		return err
	}, func() { _ = client.Close() }, nil
}
