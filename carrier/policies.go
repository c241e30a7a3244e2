package carrier

import (
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// RetryPolicy says when an attempt is followed by another one. A zero field
// means its default, a negative one switches the rule off.
type RetryPolicy = resilience.RetryPolicy

// BreakerPolicy says when a group of operations is taken for broken, and how
// it is tried again. A zero field means its default, a negative one switches
// the rule off.
type BreakerPolicy = resilience.BreakerPolicy

// BudgetPolicy bounds the retries of a client in an outage. A zero field means
// its default, a negative one switches the rule off.
type BudgetPolicy = resilience.BudgetPolicy

// Attempt is one attempt of a call, as the hooks of [RetryPolicy] see it.
type Attempt = resilience.Attempt

// CallInfo tells how a call went; see [WithCallInfo].
type CallInfo = resilience.CallInfo

// Stream is an answer that is handed over unread: a label, a document. Read it
// to the end or Close it.
type Stream = resilience.Stream

// Jitter says how a backoff is spread.
type Jitter = resilience.Jitter

// The kinds of jitter; FullJitter is the zero value.
const (
	FullJitter  = resilience.FullJitter  // U(0, x)
	EqualJitter = resilience.EqualJitter // x/2 + U(0, x/2)
	NoJitter    = resilience.NoJitter    // x
)

// BreakerState is where a breaker stands.
type BreakerState = resilience.BreakerState

// The states of a breaker; BreakerClosed is the zero value.
const (
	BreakerClosed   = resilience.BreakerClosed   // lets everything through
	BreakerHalfOpen = resilience.BreakerHalfOpen // lets probes through
	BreakerOpen     = resilience.BreakerOpen     // lets nothing through
)

// Time is a moment as the carrier wrote it. No odd form makes a decode fail:
// Raw keeps the text, and HasZone says whether the zone was known.
type Time = resilience.Time

// NewTime returns t as a [Time].
func NewTime(t time.Time) Time { return resilience.NewTime(t) }

// ParseTime reads a [Time] leniently. It never fails.
func ParseTime(s string) Time { return resilience.ParseTime(s) }
