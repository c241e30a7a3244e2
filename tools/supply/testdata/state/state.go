// Package state changes its variables in every way there is.
package state

import (
	"flag"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
)

var (
	count  int
	table  = map[string]int{}
	list   = []int{3, 1, 2}
	pair   struct{ a, b int }
	once   sync.Once                      // want: holds a sync.Once
	lock   = &sync.Mutex{}                // want: holds a sync.Mutex
	cached = map[string]*sync.WaitGroup{} // want: holds a sync.WaitGroup
	queue  = make(chan int)               // want: holds a channel
	within struct{ lock sync.RWMutex }    // want: holds a sync.RWMutex
	client = &http.Client{}               // want: holds a net/http.Client
	fine   = regexp.MustCompile(`^[A-Z]+$`)
	double = func(n int) int { return 2 * n }
)

type counter int

func (c *counter) add() { *c++ }

var counted counter

// Change is all that nobody should do.
func Change() {
	count = 1                // want: is assigned
	count++                  // want: is counted
	table["a"] = 1           // want: is assigned
	list[0], _ = 7, 8        // want: is assigned
	pair.a += 1              // want: is assigned
	for count = range list { // want: is assigned
	}
	delete(table, "a")                 // want: goes through delete
	clear(list)                        // want: goes through clear
	copy(list[1:], []int{9})           // want: goes through copy
	slices.Sort(list)                  // want: goes through slices.Sort
	maps.Copy(table, map[string]int{}) // want: goes through maps.Copy
	once.Do(func() {})                 // want: has its address taken
	counted.add()                      // want: has its address taken
	use(&pair.b)                       // want: has its address taken
	queue <- 1                         // want: is sent to
	http.DefaultClient = nil           // want: is assigned
	flag.Usage = nil                   // want: is assigned
}

// Read is what everybody may do.
func Read(count int) (n int) {
	count = 2
	table := maps.Clone(table)
	table["b"] = list[0] + pair.b + double(count)
	if fine.MatchString("A") {
		n = len(list)
	}
	lock.Lock()
	defer lock.Unlock()
	_, _, _ = cached, within.lock.TryLock, client
	return n
}

func use(*int) {}
