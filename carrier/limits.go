package carrier

import "github.com/carrier-sdk/carrier-go/carrier/resilience"

// Limits bound what an answer may cost, beside [WithMaxResponseBytes]. A zero
// field means its default, a negative one switches the rule off.
type Limits = resilience.Limits

// WithLimits sets the limits of the client; see [Limits].
func WithLimits(l Limits) Option { return resilience.WithLimits(l) }

// LimitError says which limit an answer is over. It Is [ErrResponseTooLarge].
type LimitError = resilience.LimitError
