// Package callback receives notifications that a carrier posts: it checks who
// has signed them and when, hands each to a function once, and answers so that
// what was not taken in is delivered again. It knows no API, and works for any
// carrier; see carrier.NewCallbackHandler for this one's.
//
//	receiver, err := callback.NewReceiver(handle, func(n Notification) string { return n.ID },
//		callback.WithSecrets(secret))
//	…
//	http.Handle("POST /carrier/callbacks", receiver)
//
// # What is promised
//
// Carriers deliver at least once and in no order. A [Receiver] answers 2xx only
// after the function has returned nil: a notification is not lost, whatever
// fails. It remembers the ids of those that were handled, so that a repetition
// is answered without the function; see [Seen] for what that takes where a
// service has several replicas, and for the one case in which a notification is
// handled twice. The order is the function's business: carrier.Advances tells
// news from what is known already.
//
// # Signatures
//
// The header is "t=UNIX,v1=HEX": the time, and the HMAC-SHA-256 of the time as
// it is written, a point, and the body as it came. There are several v1 while a
// secret is changed. [Verify] takes it if one of them is right for one of the
// secrets, and the time is not further away than the tolerance: so nobody can
// forge a notification, or repeat one later. Carriers that sign otherwise have
// [WithVerifier].
package callback
