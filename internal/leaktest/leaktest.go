// Package leaktest fails a package's tests if they leave goroutines or
// connections behind.
//
//	func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }
package leaktest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

// patience is how long what is about to end may take.
const patience = 4 * time.Second

// Run runs the tests and returns their exit code, which is 1 if they passed and
// left something behind: a goroutine that did not run before, or, where the
// system tells (Linux), more open sockets than before.
func Run(m interface{ Run() int }) int { return run(m, os.Stderr, patience) }

func run(m interface{ Run() int }, out io.Writer, patience time.Duration) int {
	before := Take()
	code := m.Run()
	if code != 0 {
		return code
	}
	if left := before.leaks(patience); len(left) > 0 {
		fmt.Fprintf(out, "leaktest: the tests leave behind:\n\n%s\n", strings.Join(left, "\n\n"))
		return 1
	}
	return 0
}

// Snapshot is what there was at a moment.
type Snapshot struct {
	goroutines map[string]bool // by their ids
	sockets    int
}

// Take notes what there is now.
func Take() Snapshot {
	s := Snapshot{goroutines: map[string]bool{}, sockets: sockets()}
	for id := range goroutines() {
		s.goroutines[id] = true
	}
	return s
}

// Leaks describes, after a while of patience, each goroutine and the sockets that
// there are beyond the snapshot; none if all have ended.
func (s Snapshot) Leaks() []string { return s.leaks(patience) }

// leaks describes what there is beyond the snapshot and does not end of itself.
func (s Snapshot) leaks(patience time.Duration) []string {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	for wait, waited := time.Millisecond, time.Duration(0); ; wait, waited = 2*wait, waited+wait {
		var left []string
		for id, stack := range goroutines() {
			if !s.goroutines[id] && !ofTheTests(stack) {
				left = append(left, stack)
			}
		}
		if n := sockets() - s.sockets; n > 0 {
			left = append(left, fmt.Sprintf("%d sockets", n))
		}
		if len(left) == 0 || waited > patience {
			return left
		}
		time.Sleep(wait)
	}
}

// ofTheTests says whether a goroutine is the runtime's or the testing package's.
func ofTheTests(stack string) bool {
	return strings.Contains(stack, "testing.") || strings.Contains(stack, "os/signal.")
}

// goroutines returns the stacks of all others by their ids.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if fields := strings.Fields(stack); i > 0 && len(fields) > 1 {
			stacks[fields[1]] = stack
		}
	}
	return stacks
}

// sockets counts the open ones; 0 where the system does not tell.
func sockets() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(link, "socket:") {
			n++
		}
	}
	return n
}
