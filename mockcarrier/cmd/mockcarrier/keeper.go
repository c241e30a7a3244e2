package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// keeper keeps the state of the worlds in a file. What a request has changed is
// in the file before its answer goes out, so that not even a killed program
// forgets what it has told. Notifications that were delivered since are delivered
// again after a kill.
type keeper struct {
	*mockcarrier.Worlds
	file string
	log  *slog.Logger

	changing atomic.Int64 // requests under way that may change the state
	stop     chan struct{}
	stopped  chan struct{}

	asked atomic.Uint64 // counts the calls of save

	mu      sync.Mutex
	done    uint64            // the calls of save that the file has the changes of
	written [sha256.Size]byte // hash of what the file has
	failed  error
}

// lookEvery is how often the state is looked at while a request is under way
// that may have changed it, and whose answer may never come.
const lookEvery = 100 * time.Millisecond

// openKeeper restores the worlds from the file, if it is there. A file that
// cannot be read as a state is an error, and stays as it is.
func openKeeper(file string, worlds *mockcarrier.Worlds, log *slog.Logger) (*keeper, error) {
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("state: %w", err)
	default:
		if err := worlds.Restore(content); err != nil {
			return nil, fmt.Errorf("%s is no state that this program can read, and was left as it is: %w", file, err)
		}
	}
	k := &keeper{Worlds: worlds, file: file, log: log, stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := k.save(); err != nil { // it says at once that it cannot
		return nil, err
	}
	go k.look()
	return k, nil
}

// ServeHTTP serves a request, and saves what it has changed.
func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		k.Worlds.ServeHTTP(w, r)
		return
	}
	k.changing.Add(1)
	defer k.changing.Add(-1)
	k.Worlds.ServeHTTP(&savingWriter{ResponseWriter: w, save: k.save}, r)
}

// save returns once the file has all that was changed before the call. Calls
// that come at the same time share the work.
func (k *keeper) save() error {
	mine := k.asked.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done >= mine {
		return k.failed
	}
	upTo := k.asked.Load()
	snapshot := k.Snapshot()
	k.failed = nil
	if sum := sha256.Sum256(snapshot); sum != k.written {
		if err := replaceFile(k.file, snapshot, 0o600); err != nil {
			k.failed = fmt.Errorf("state: %w", err)
			k.log.Error("the state cannot be saved", "error", err)
		} else {
			k.written = sum
		}
	}
	k.done = upTo
	return k.failed
}

// look saves what requests have changed whose answer does not come.
func (k *keeper) look() {
	defer close(k.stopped)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-tick.C:
			if k.changing.Load() > 0 {
				_ = k.save() // which logs
			}
		}
	}
}

// close saves for the last time. All requests have ended.
func (k *keeper) close() error {
	close(k.stop)
	<-k.stopped
	return k.save()
}

// savingWriter saves before the first byte goes out.
type savingWriter struct {
	http.ResponseWriter
	save  func() error
	saved bool
}

func (w *savingWriter) saveOnce() {
	if !w.saved {
		w.saved = true
		_ = w.save() // which logs; the answer is true all the same
	}
}

// Unwrap is for http.ResponseController.
func (w *savingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader saves before it sends.
func (w *savingWriter) WriteHeader(status int) {
	w.saveOnce()
	w.ResponseWriter.WriteHeader(status)
}

// Write saves before it sends.
func (w *savingWriter) Write(p []byte) (int, error) {
	w.saveOnce()
	return w.ResponseWriter.Write(p)
}

// Hijack saves before the connection is taken over.
func (w *savingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.saveOnce()
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
