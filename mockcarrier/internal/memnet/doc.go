// Package memnet is a network in memory: a listener and what dials it, with the
// buffering, the deadlines and the errors of TCP on the loopback interface.
//
// All that blocks, blocks on channels and timers made by the caller's goroutine,
// so that a listener made inside a testing/synctest bubble runs in its virtual
// time. A listener must be used in the bubble that made it.
package memnet
