package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/carrier-sdk/carrier-go/internal/leaktest"
)

// The clients are this test's own binary.
func TestMain(m *testing.M) {
	if isClient(os.Args) {
		main()
		return
	}
	// The race detector lets a process sleep for a second at its end.
	if _, set := os.LookupEnv("GORACE"); !set {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Exit(leaktest.Run(m))
}

// With a smaller document than the lab has by itself: what is flat is flat.
func TestTheClaimsHold(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-dir", dir, "-size", "32"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"carrier-go and io.Copy whole 1 complete",
		"net/http and io.ReadAll cut 1 none: unexpected EOF",
		"carrier-go and io.Copy cut 3 times 4 complete",
		`Range: bytes=8388608-, If-Range: "label-1" 206 8 MiB`,
		`Range: bytes=25165824-, If-Range: "label-1" 206 8 MiB`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAClaimThatDoesNotHoldIsSeen(t *testing.T) {
	const size, hash = 64 * mib, "c0ffee"
	once := []request{{status: 200, sent: 64 * mib}}
	good := func() []fetch {
		return []fetch{
			{how: nothing, outcome: outcome{Peak: 8 * mib}},
			{how: whole, outcome: outcome{Peak: 150 * mib}, hash: hash, requests: once},
			{how: stream, outcome: outcome{Peak: 10 * mib}, hash: hash, requests: once},
			{how: whole, cuts: 1, outcome: outcome{Peak: 40 * mib, Error: "unexpected EOF"}},
			{how: stream, cuts: 1, outcome: outcome{Peak: 10 * mib}, hash: hash, requests: []request{
				{status: 200, sent: 16 * mib},
				{Range: "bytes=16777216-", ifRange: `"label-1"`, status: 206, sent: 48 * mib},
			}},
		}
	}
	if err := check(size, hash, good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(f []fetch){
		"a stream that is not flat":      func(f []fetch) { f[2].Peak = 30 * mib },
		"a cut stream that is not flat":  func(f []fetch) { f[4].Peak = 30 * mib },
		"another file":                   func(f []fetch) { f[4].hash = strings.Repeat("0", 64) },
		"no file":                        func(f []fetch) { f[2].hash = "" },
		"read whole at flat memory":      func(f []fetch) { f[1].Peak = 10 * mib },
		"a cut that did no harm":         func(f []fetch) { f[3].Error = "" },
		"the whole again":                func(f []fetch) { f[4].requests[1] = request{status: 200, sent: 64 * mib} },
		"resumed at another place":       func(f []fetch) { f[4].requests[1].Range = "bytes=0-" },
		"resumed whatever it is now":     func(f []fetch) { f[4].requests[1].ifRange = "" },
		"a cut that did not happen":      func(f []fetch) { f[4].requests = once },
		"a request that nobody asked of": func(f []fetch) { f[2].requests = append(f[2].requests, request{status: 206}) },
	} {
		f := good()
		spoil(f)
		if check(size, hash, f) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDocument(t *testing.T) {
	doc := document{size: 3*pageSize + 100}
	all, err := io.ReadAll(&doc)
	if err != nil || len(all) != int(doc.size) {
		t.Fatalf("%d bytes, %v", len(all), err)
	}
	doc.offset = 0
	if err := iotest.TestReader(&doc, all); err != nil {
		t.Error(err)
	}
	if bytes.Equal(all[:pageSize], all[pageSize:2*pageSize]) {
		t.Error("two pages are the same")
	}
	sum := sha256.Sum256(all)
	if hash, err := doc.hash(); err != nil || hash != hex.EncodeToString(sum[:]) {
		t.Errorf("hash %s, %v", hash, err)
	}
	for _, offset := range []int64{0, 3, 7, 8, pageSize - 1, pageSize, pageSize + 5, doc.size} {
		doc.offset = offset
		if rest, err := io.ReadAll(iotest.OneByteReader(&doc)); err != nil || !bytes.Equal(rest, all[offset:]) {
			t.Errorf("from %d: other bytes, %v", offset, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-size", "1"}, {"-size", "5000"}, {"-nonsense"}, {"-dir", "/nowhere/at/all"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	if err := run(ctx, []string{"-dir", t.TempDir()}, new(bytes.Buffer)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}
