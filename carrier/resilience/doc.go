// Package resilience sends HTTP requests so that a failure of the other side
// is bounded, told apart, and repeated only where that is harmless. It knows no
// API: a table of operations, generated from any OpenAPI spec, tells it what
// repeating each of them can do.
//
// One call, from the outside in:
//
//	Doer.Call, Doer.Do   operation found; key given, or made once; options resolved
//	└ total deadline     one for all attempts, all waits and the body      deadline.go
//	  └ retry, budget    go-retryablehttp's loop, built per call           retry.go, backoff.go, retryafter.go, budget.go
//	    └ breaker        gobreaker, behind a gate of ours                  breakerpolicy.go, breaker.go, gate.go
//	      └ attempt      its time limit; authorized; body read; judged     attempt.go, auth.go, body.go, judge.go, outcome.go, evidence.go
//	        └ transport  yours, or our own; guarded for foreign links      transport.go, guard.go, link.go
//
// The file pipeline.go puts these together. There are three ways in: generated
// methods call [Doer.Call]; any client that oapi-codegen generates takes a
// [Doer] for its HttpRequestDoer; and [Doer.HTTPClient] is for the rest.
//
// Everything runs in virtual time (testing/synctest): no lock is held across a
// wait or a request, there is no global state, and no goroutine in the
// background but that which fetches an access token.
package resilience
