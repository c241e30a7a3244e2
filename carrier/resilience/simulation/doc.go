// Package simulation has no code of its own, only tests: it shows what the
// policies of package resilience do to an upstream that goes down and comes
// back, and what they do to those who call it.
//
// Fleets of real [resilience.Doer] values, which differ in nothing but their
// options, call an upstream that is played in-process, in the virtual time of
// testing/synctest. Arrivals and jitter are seeded, so a run can be repeated;
// only a breaker's jitter of its open time has no seed.
//
//	go test ./carrier/resilience/simulation
//
// asserts the laws. It runs small fleets, each large enough for its law.
//
//	go -C carrier/resilience/simulation test -run '^TestTable$' -args -table -svg /tmp/storms.svg
//
// prints the measures of every policy in every scenario, and draws the arrivals.
// -seeds and -first-seed choose other runs, for both commands.
//
// The scenarios, and the parameters of the policies that stand for other
// people's, come from the literature on retry storms: Brooker's "Exponential
// Backoff And Jitter", gRPC's proposal A6, "Metastable Failures in Distributed
// Systems" (HotOS 2021), and the chapter on overload in Google's SRE book.
package simulation
