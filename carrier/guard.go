package carrier

import "github.com/carrier-sdk/carrier-go/carrier/resilience"

// EgressPolicy says where the egress guard lets the client connect to. The zero
// value allows https on port 443 of every public address.
type EgressPolicy = resilience.EgressPolicy

// WithEgressGuard puts everything that the client connects to under the guard,
// the base URL included: for services whose users choose the base URL. By
// default only links of other origins are (see [Client.Fetch]). Together with
// [WithTransport] it needs an *http.Transport, of which a copy is guarded.
func WithEgressGuard(p EgressPolicy) Option { return resilience.WithEgressGuard(p) }

// WithLinkGuard sets what links of other origins may lead to; default: the
// policy of [WithEgressGuard], else the zero [EgressPolicy]. It is needed with a
// [WithTransport] that is no *http.Transport: such links are refused without it,
// and go through a transport of the client's own with it.
func WithLinkGuard(p EgressPolicy) Option { return resilience.WithLinkGuard(p) }
