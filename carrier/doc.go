// Package carrier is the client of a parcel carrier's tracking and shipping
// API, for services that trust it with money: one lost answer never buys a
// second label, one slow carrier never takes the service down with it, and
// every failure says what happened.
//
//	client, err := carrier.New("https://api.carrier.example/v1", carrier.WithAPIKey(key))
//
// Make one [Client] for each carrier and process, share it, and Close it at the
// end: connections, retry budget and breakers are its own.
//
// # What a call does
//
// Every call has a total time limit (30 s), and every attempt one of its own
// (10 s), the reading of the body included. A failed attempt is repeated (twice
// at most, after a backoff with full jitter, or when the carrier's Retry-After
// says) if repeating it is safe: a read, a write that the carrier deduplicates
// by its idempotency key, or a request that provably did not get through. A
// retry budget and a circuit breaker for each group of operations keep a sick
// carrier from being kept down. The caller's context bounds everything, and
// cancels everything at once.
//
// # Errors
//
// Any answer that is not the documented success is an [*Error]. Ask it by
// errors.Is for [ErrNotFound], [ErrTimeout], [ErrCircuitOpen] and so on, and
// read its Outcome: whether the carrier acted. [ErrOutcomeUnknown] means that
// it may have: repeat the call with the same idempotency key, now or after a
// restart, and there will be no second label.
//
// # Security
//
// Credentials go to the origin of the base URL and nowhere else, redirects are
// not followed, and no error, log or value shows a secret, even where the
// carrier echoes it. Links in answers are fetched by [Client.Fetch] and
// [Client.FetchLabel], behind a guard that keeps them out of private networks;
// [WithEgressGuard] puts the base URL under it as well.
//
// # Being told
//
// [Client.CreateSubscription] lets the carrier post what happens to parcels.
// [NewCallbackHandler] takes it in: signed, in time, and each notification once;
// [Advances] keeps a parcel from moving backwards, since notifications come in
// no order. [Client.TrackingEvents] goes through the same events in order, over
// cuts, and fills in what was missed.
//
// # Testing
//
// Package mockcarrier is the same carrier as a test server.
//
// Models, operations and methods are generated from openapi/carrier.yaml. Most
// types here are aliases: go doc shows their fields in package resilience, those
// of the models in package api.
// Package resilience has the layers below, for clients of any other carrier.
package carrier
