package conformance

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const reuse = "RFC 9112 §9.3; package net/http, Response.Body"

var connectionCases = []Case{
	{ID: "connections/reused", Title: "20 calls, one connection", Source: reuse, run: reused(mockcarrier.None())},
	{ID: "connections/errors-read", Title: "20 calls, every second an error of 50 KB: one connection", Source: reuse,
		run: reused(mockcarrier.Status(404).WithBody(page).EveryNth(2))},
	{ID: "connections/retries-read", Title: "20 calls, every fourth answer a 503 of 50 KB: one connection", Source: reuse + "",
		run: reused(mockcarrier.Status(503).WithBody(page).EveryNth(4))},
	{ID: "connections/many-callers", Title: "32 callers at once, ten times: no more than 64 connections", Source: "package net/http, MaxIdleConnsPerHost",
		setup: setup{options: []mockcarrier.Option{mockcarrier.WithLatency(3 * time.Millisecond)}}, run: manyCallers},
	{ID: "connections/goroutines", Title: "20 calls that failed leave no goroutines", Source: "CWE-772", run: goroutinesWhile},
	{ID: "connections/closed", Title: "nothing is left of a client that is closed", Source: "CWE-772", run: goroutinesAfter},
}

// page is an error of some size.
var page = strings.Repeat("no such parcel. ", 50_000/16)

func reused(f mockcarrier.Fault) func(*stage) {
	return func(s *stage) {
		s.mock.Inject(f)
		for range 20 {
			s.within(defaultLimit, s.track)
		}
		s.want(s.connections() <= 2, "%d requests come on %d connections", len(s.mock.Requests()), s.connections())
	}
}

func (s *stage) connections() int {
	seen := map[int]bool{}
	for _, r := range s.mock.Requests() {
		seen[r.Connection] = true
	}
	return len(seen)
}

// manyCallers has rounds, after each of which all connections are idle.
func manyCallers(s *stage) {
	const callers, rounds = 32, 10
	for range rounds {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() { s.within(defaultLimit, s.track) })
		}
		all.Wait()
	}
	s.want(s.connections() <= 2*callers, "%d requests of %d callers come on %d connections", len(s.mock.Requests()), callers, s.connections())
}

// few is how many goroutines a client may keep for itself and for idle
// connections, of which each has two.
const few = 12

func goroutinesWhile(s *stage) {
	s.mock.Inject(mockcarrier.Status(503).WithBody(page))
	for range 20 {
		s.within(defaultLimit, s.track)
	}
	s.want(eventually(patience, func() bool { return s.goroutines() <= few }), "%d goroutines are left of 20 calls", s.goroutines())
}

func goroutinesAfter(s *stage) {
	s.mock.Inject(mockcarrier.Sequence(
		mockcarrier.None(), mockcarrier.StallBody(10), mockcarrier.Status(503).WithBody(page), mockcarrier.ResetAfter(),
		mockcarrier.Stall(), mockcarrier.HTML(200), mockcarrier.Drip(1, 20*time.Millisecond),
	).Looping())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
				s.call(ctx, defaultLimit, s.track)
				cancel()
			}
		})
	}
	all.Wait()
	s.closeClient(s.client)
	s.client = nil
	s.closeServer()
	s.want(eventually(2*patience, func() bool { return s.goroutines() == 0 }), "%d goroutines are left", s.goroutines())
}
