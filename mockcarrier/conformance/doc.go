// Package conformance puts any HTTP client to the test: what it makes of every
// fault that a carrier can have, over real connections, and whether it can say
// what happened. It is the fault matrix and the outcome table of this
// repository, for clients that are not its own.
//
// An adapter has the three methods of [Client], and needs some 40 lines:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(baseURL string) conformance.Client {
//			return adapter{mysdk.New(baseURL, mysdk.WithAPIKey(conformance.APIKey),
//				mysdk.WithAttemptTimeout(conformance.AttemptTimeout))}
//		})
//	}
//
// Each case is a subtest, has a carrier and a client of its own, and fails with
// one line for what was seen, what the rule wants instead, and where the rule
// comes from. It judges by what the carrier saw (its requests, their keys and
// bytes, its connections, what was bought) and by what the client returned. All
// cases together take 10 to 30 seconds, most of which is waiting:
//
//	go test -run 'TestConformance//retry-after'    one group
//	go test -v -run TestConformance                with the scorecard
//
// Two adapters to copy from: that of a call by hand is nethttp_test.go, that of
// carrier.Client is internal/undertest. Meanwhile net/http may log "Unsolicited
// response" lines of its own, which are no findings.
//
// [Check] is the same for programs, and [WriteTable] sets several clients side
// by side. A [Scorecard] can be written as text and as JSON.
//
// # What is judged
//
//	faults       each kind of fault strikes once, a read and a purchase: what comes of the call
//	outcome      each strikes for ever: does the error say whether the carrier acted
//	retries      what is sent again, how often, and spread out
//	retry-after  seconds, dates in their three forms, absurd values, clocks that are wrong
//	deadlines    the caller's time covers attempts, waits and the body; leaving ends a call at once
//	idempotency  one key and the same bytes for each attempt of a purchase: bought once
//	outage       fewer requests while the carrier is down, and calls again once it is well
//	bodies       too large, a bomb, downloads that are cut
//	errors       what an error tells: status, request id, attempts, key
//	security     redirects to other origins, secrets in errors, paths
//	connections  answers are read, connections used again, nothing is left behind
//
// A verdict is that the rule holds, that it fails, or that it is not told: all
// that was seen is right, but the client does not tell what the rule asks it
// to. [Run] fails a test for either of the last two.
//
// What does not hold on a machine that was seen to stall is run again, three
// times in all. HTTP/1.1 is spoken, and by https only what fails to connect,
// since a base URL is all that a client is given.
package conformance
