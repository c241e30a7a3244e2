package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/internal/leaktest"
)

// The buyer is this test's own binary.
func TestMain(m *testing.M) {
	if isBuyer(os.Args) {
		main()
		return
	}
	// The race detector lets a process sleep for a second at its end.
	if _, set := os.LookupEnv("GORACE"); !set {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Exit(leaktest.Run(m))
}

func TestTheClaimsHold(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"order-1001 tried again with a fresh key 2 2 2 BK2001TR, BK2002TR",
		"order-1002 tried again with the same key 2 1 1",
		"order-1003 killed, its key was random 2 2 2",
		"order-1004 killed, its key was derived 2 1 1 BK2006TR",
		"2 attempts: has BK2003TR, from the carrier's first answer, replayed",
		"signal: killed",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

// The first buyer must have died by the kill, without a word about the answer.
func TestTheBuyerIsKilled(t *testing.T) {
	u := startUpstream()
	t.Cleanup(u.stop)
	p, err := startBuyer(t.Context(), u.url, derivedKey, "derived")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.bought(t.Context(), derivedKey); err != nil {
		t.Error(err)
	} else if key := u.charges(derivedKey)[0].Key; key != carrier.DeriveIdempotencyKey("createShipment", derivedKey, 1) {
		t.Errorf("bought with the key %s", key)
	}
	if err := p.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("it ended with %v", err)
	}
	if said := p.stdout.String() + p.stderr.String(); strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "buys with key ") {
		t.Errorf("it said %q", said)
	}
}

func TestASecondShipmentIsSeen(t *testing.T) {
	for name, a := range map[string]account{
		"two shipments":     {requests: 2, keys: 1, charges: 2, wantKeys: 1, wantCharges: 1},
		"none":              {requests: 2, keys: 1, wantKeys: 1, wantCharges: 1},
		"a second key":      {requests: 2, keys: 2, charges: 1, wantKeys: 1, wantCharges: 1},
		"a request is lost": {requests: 1, keys: 1, charges: 1, wantKeys: 1, wantCharges: 1},
	} {
		if a.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	if err := run(ctx, nil, new(bytes.Buffer)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}
