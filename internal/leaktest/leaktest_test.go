package leaktest

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

type tests func() int

func (t tests) Run() int { return t() }

func TestRun(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	for _, tt := range []struct {
		name string
		run  func() int
		code int
		says string
	}{
		{"nothing is left", func() int { return 0 }, 0, ""},
		{"they fail", func() int { return 3 }, 3, ""},
		{"a goroutine that ends in a while", func() int { go time.Sleep(5 * time.Millisecond); return 0 }, 0, ""},
		{"a goroutine that stays", func() int {
			started := make(chan struct{})
			go stay(started, hold)
			<-started
			return 0
		}, 1, "leaktest.stay"},
		{"a failure beside a leak", func() int {
			started := make(chan struct{})
			go stay(started, hold)
			<-started
			return 2
		}, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(unlike(tt.run), &out, 50*time.Millisecond); code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			if !strings.Contains(out.String(), tt.says) || tt.says == "" && out.Len() > 0 {
				t.Errorf("says %q, want %q", out.String(), tt.says)
			}
		})
	}
}

// unlike runs f outside of the test's own goroutine, whose stack is exempt.
func unlike(f func() int) tests {
	return func() int {
		code := make(chan int)
		go func() { code <- f() }()
		return <-code
	}
}

//go:noinline
func stay(started, hold chan struct{}) {
	close(started)
	<-hold
}

func TestOpenSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells how many sockets are open")
	}
	var l net.Listener
	defer func() { _ = l.Close() }()
	var out bytes.Buffer
	code := run(tests(func() int {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Error(err)
		}
		return 0
	}), &out, 10*time.Millisecond)
	if code != 1 || !strings.Contains(out.String(), "1 sockets") {
		t.Errorf("code %d, says %q", code, out.String())
	}
}
