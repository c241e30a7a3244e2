package conformance

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// labelled runs f under a label that is inherited by all goroutines that it
// begins, and tells them from those of other cases and of the carrier.
func (s *stage) labelled(f func()) {
	pprof.Do(context.Background(), pprof.Labels("conformance", s.label()), func(context.Context) { f() })
}

func (s *stage) label() string { return fmt.Sprintf("%s %p", s.id, s) }

// goroutines counts those that the client has begun and not ended.
func (s *stage) goroutines() int {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	count, n := 0, 0
	lines := bufio.NewScanner(&profile)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if number, _, ok := strings.Cut(line, " @ "); ok { // "2 @ 0x46a1b0 0x4700e5"
			n, _ = strconv.Atoi(number)
		} else if strings.HasPrefix(line, "# labels: ") && strings.Contains(line, strconv.Quote(s.label())) {
			count += n
		}
	}
	return count
}

// eventually waits until a condition holds.
func eventually(most time.Duration, holds func() bool) bool {
	for end := time.Now().Add(most); ; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
