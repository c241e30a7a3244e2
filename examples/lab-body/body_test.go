package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The lab checks its claims by counting calls, requests and connections, and
// fails if one does not hold.
func TestTheClaimsHold(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"time limit on the headers 0 of 5 never 5",
		"carrier-go says: getTracking: 200 OK: attempt time limit of 500ms ran out",
		"the body is late 201 outcome done, time limit exceeded 1",
		"the same key again 201 it is BK2001TR, replayed 1",
		"returns at the status, leaves the body 1 of 5 1 1",
		"carrier-go 5 of 5 5 1",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

func TestAClaimThatDoesNotHoldIsSeen(t *testing.T) {
	for name, check := range map[string]error{
		"a call came back":           late{returned: 1, held: 5}.check(0, 5),
		"a connection is held":       late{returned: 5, held: 1}.check(5, 0),
		"a call was not answered":    unread{answered: 4, arrived: 5, connections: 1}.check(5),
		"a request did not arrive":   unread{answered: 5, arrived: 4, connections: 1}.check(5),
		"another connection":         unread{answered: 5, arrived: 5, connections: 2}.check(5),
		"no error":                   statusKept(nil, http.StatusOK),
		"no error of ours":           statusKept(context.DeadlineExceeded, http.StatusOK),
		"an error without a timeout": statusKept(&carrier.Error{StatusCode: 200, Outcome: carrier.OutcomeDone, Timeout: limit}, http.StatusOK),
	} {
		if check == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// With its default of three attempts a late body is no failure at all.
func TestALateBodyIsRepeated(t *testing.T) {
	u := startUpstream(mockcarrier.StallBody(40).Times(1))
	t.Cleanup(u.stop)
	client, err := carrier.New(u.url, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithAttemptTimeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := client.GetTracking(t.Context(), parcel); err != nil {
		t.Error(err)
	}
	if n := u.begun.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if n := eventually(t.Context(), &u.held, 0); n != 0 {
		t.Errorf("the carrier still holds %d", n)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, nil, new(bytes.Buffer)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
