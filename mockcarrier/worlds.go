package mockcarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// WorldHeader names the world that a request is for. Without it, a request is
// for the main world, whose name is "".
const WorldHeader = "X-Mock-World"

// Worlds is several carriers behind one address, for tests that run in parallel
// against one program: requests that name another world in [WorldHeader] meet
// another [Carrier], with its own shipments, keys, clock, faults, journal and
// ledger. A world begins with the first request for it.
//
// Use [NewWorlds] to make one. It may be used by several goroutines.
type Worlds struct {
	opts  []Option
	limit int
	main  *Carrier
	admin http.Handler

	mu     sync.Mutex
	others map[string]*Carrier
	closed bool
}

// NewWorlds returns the main world, set up by the options, as each other one
// will be. Beside it there can be limit worlds at a time.
func NewWorlds(limit int, opts ...Option) (*Worlds, error) {
	main, err := newCarrier(opts)
	if err != nil {
		return nil, err
	}
	if limit < 0 {
		return nil, fmt.Errorf("mockcarrier: %d worlds are too few", limit)
	}
	w := &Worlds{opts: slices.Clone(opts), limit: limit, main: main, others: make(map[string]*Carrier)}
	w.admin = w.adminHandler()
	return w, nil
}

// ServeHTTP answers a request in the world that it names. See [Carrier.ServeHTTP].
func (w *Worlds) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.main.servesAdmin(r) {
		w.admin.ServeHTTP(rw, r)
		return
	}
	w.inItsWorld(rw, r)
}

// ConnContext is that of [Carrier.ConnContext]. The worlds count their
// connections together, since one connection can serve several.
func (w *Worlds) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return w.main.ConnContext(ctx, conn)
}

// Listener is that of [Carrier.Listener]. A connection is of no world yet: the
// faults of connections are those of the main one.
func (w *Worlds) Listener(l net.Listener) net.Listener { return w.main.Listener(l) }

// World returns the world of that name, which begins if it is not there. "" is
// the main world. A name has 1 to 64 letters, digits, dots, hyphens and
// underscores.
func (w *Worlds) World(name string) (*Carrier, error) {
	c, refused := w.world(name)
	if refused != nil {
		return nil, errors.New("mockcarrier: " + refused.detail)
	}
	return c, nil
}

// Names returns the worlds that there are, in order; the main world is the first.
func (w *Worlds) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{""}, slices.Sorted(maps.Keys(w.others))...)
}

// End closes a world, with its requests, and forgets it. It says whether the
// world was there; the main world has no end.
func (w *Worlds) End(name string) bool {
	w.mu.Lock()
	c, ok := w.others[name]
	delete(w.others, name)
	w.mu.Unlock()
	if ok {
		c.Close()
	}
	return ok
}

// Close closes all worlds, as [Carrier.Close] does. None begins after it.
func (w *Worlds) Close() {
	w.mu.Lock()
	w.closed = true
	others := slices.Collect(maps.Values(w.others))
	w.mu.Unlock()
	for _, c := range others {
		c.Close()
	}
	w.main.Close()
}

// worldsState is the state of several worlds.
type worldsState struct {
	Version int                        `json:"version"`
	Worlds  map[string]json.RawMessage `json:"worlds"`
}

// Snapshot returns the state of all worlds as JSON; see [Carrier.Snapshot].
func (w *Worlds) Snapshot() []byte {
	w.mu.Lock()
	all := maps.Clone(w.others)
	w.mu.Unlock()
	all[""] = w.main
	s := worldsState{Version: stateVersion, Worlds: make(map[string]json.RawMessage, len(all))}
	for name, c := range all {
		s.Worlds[name] = c.Snapshot()
	}
	return append(encode(s), '\n')
}

// Restore replaces the state of all worlds by that of a [Worlds.Snapshot], and
// ends the others. After an error nothing has changed.
func (w *Worlds) Restore(snapshot []byte) error {
	var s worldsState
	if err := decodeStrictly(snapshot, &s); err != nil {
		return fmt.Errorf("mockcarrier: state: %w", err)
	}
	switch _, ok := s.Worlds[""]; {
	case s.Version != stateVersion:
		return fmt.Errorf("mockcarrier: state: it is of version %d, and this program reads version %d", s.Version, stateVersion)
	case !ok:
		return errors.New("mockcarrier: state: the main world is missing")
	case len(s.Worlds)-1 > w.limit:
		return fmt.Errorf("mockcarrier: state: it has %d worlds beside the main one, and %d are allowed", len(s.Worlds)-1, w.limit)
	}
	// All are read before the first begins, and delivers what is due.
	states := make(map[string]*state)
	for name, saved := range s.Worlds {
		read, err := parseState(saved)
		if err == nil && name != "" && !worldName.MatchString(name) {
			err = errors.New("the name is none")
		}
		if err != nil {
			return fmt.Errorf("mockcarrier: world %q: state: %w", name, err)
		}
		states[name] = read
	}
	others := make(map[string]*Carrier)
	for name, state := range states {
		c := w.main
		if name != "" {
			c = w.begin()
			others[name] = c
		}
		c.restore(state)
	}
	w.mu.Lock()
	if !w.closed {
		w.others, others = others, w.others
	}
	w.mu.Unlock()
	closeAll(others)
	return nil
}

// begin returns a carrier for a world.
func (w *Worlds) begin() *Carrier {
	c, err := newCarrier(w.opts)
	if err != nil {
		panic(err) // the options were good before
	}
	return c
}

func closeAll(worlds map[string]*Carrier) {
	for _, c := range worlds {
		c.Close()
	}
}

var worldName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (w *Worlds) world(name string) (*Carrier, *refusal) {
	if name == "" {
		return w.main, nil
	}
	if !worldName.MatchString(name) {
		return nil, refuse(http.StatusBadRequest, "malformed_world", "Malformed world",
			"%s has 1 to 64 letters, digits, dots, hyphens and underscores.", WorldHeader)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.others[name]
	switch {
	case ok:
		return c, nil
	case w.closed:
		return nil, refuse(http.StatusServiceUnavailable, "closing", "Closing", "The carrier is about to end.")
	case len(w.others) >= w.limit:
		return nil, refuse(http.StatusConflict, "too_many_worlds", "Too many worlds",
			"There are %d worlds already, beside the main one. End one by DELETE %sworlds/NAME.", w.limit, AdminPath)
	}
	c = w.begin()
	w.others[name] = c
	return c, nil
}

// inItsWorld serves a request by the carrier that it is for.
func (w *Worlds) inItsWorld(rw http.ResponseWriter, r *http.Request) {
	lines := r.Header.Values(WorldHeader)
	name := ""
	if len(lines) > 0 {
		name = lines[0]
		if name == "" || len(lines) > 1 {
			name = "?" // which is malformed
		}
	}
	c, refused := w.world(name)
	if refused != nil {
		rw.Header().Set("X-Request-Id", w.main.newRequestID())
		writeRefusal(rw, refused)
		return
	}
	c.ServeHTTP(rw, r)
}

// adminHandler is the admin API of the worlds, and that of each of them.
func (w *Worlds) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /__mock/worlds", func(rw http.ResponseWriter, _ *http.Request) {
		type world struct {
			World    string `json:"world"`
			Requests int    `json:"requests"`
			Charges  int    `json:"charges"`
			Faults   int    `json:"faults"`
		}
		list := []world{}
		w.mu.Lock()
		all := maps.Clone(w.others)
		w.mu.Unlock()
		all[""] = w.main
		for _, name := range slices.Sorted(maps.Keys(all)) {
			c := all[name]
			list = append(list, world{name, c.journal.count(), len(c.Ledger()), len(c.rules.current(c.now()))})
		}
		writeJSON(rw, http.StatusOK, list)
	})
	mux.HandleFunc("DELETE /__mock/worlds/{world}", func(rw http.ResponseWriter, r *http.Request) {
		name := r.PathValue("world")
		if !w.End(name) {
			writeRefusal(rw, refuse(http.StatusNotFound, "unknown_world", "Unknown world", "There is no world %s.", name))
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	return w.main.guardAdmin(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", AdminPath+"worlds/") {
			mux.ServeHTTP(rw, r)
			return
		}
		w.inItsWorld(rw, r)
	}))
}
