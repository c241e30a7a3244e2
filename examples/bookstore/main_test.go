package main

import (
	"flag"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails if the tests outside of virtual time leave a goroutine. Those
// inside do so by themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	before := runtime.NumGoroutine()
	status := m.Run()
	for wait := time.Millisecond; status == 0 && runtime.NumGoroutine() > before; wait *= 2 {
		if wait > time.Second {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			status = 1
		}
		time.Sleep(wait)
	}
	os.Exit(status)
}
