package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// Whatever a library is good at, its adapter has to work: a call that meets no
// trouble is one that succeeds.
func TestAdapters(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			card := conformance.Check(l.new, "faults/none", "bodies/label", "connections/reused")
			if len(card.Scores) == 0 {
				t.Fatal("no case was run")
			}
			if !card.Passed() {
				t.Errorf("\n%s", card)
			}
		})
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-only", "net/http,carrier-go", "-group", "connections/reused"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 3 ||
		strings.Join(strings.Fields(lines[0]), " ") != "group carrier-go net/http" ||
		strings.Join(strings.Fields(lines[2]), " ") != "all 1/1 1/1" {
		t.Errorf("prints\n%s", out.String())
	}
	for _, args := range [][]string{{"-only", "net/http,curl"}, {"-group", "nothing"}, {"-wrong"}, {"extra"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
