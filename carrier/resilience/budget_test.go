package resilience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

type budgetCase struct {
	Name
	Policy      resilience.BudgetPolicy `json:"policy"`
	MaxAttempts int                     `json:"maxAttempts"` // default: no limit
	Steps       []struct {
		Note      string `json:"note"`
		After     span   `json:"after"`
		Fail      int    `json:"fail"` // so many calls that fail to the end
		Succeed   int    `json:"succeed"`
		Status    int    `json:"status"` // of a failure; default 503
		Safety    string `json:"safety"` // default read
		Attempts  int    `json:"attempts"`
		Exhausted bool   `json:"exhausted"`
	} `json:"steps"`
}

// The arithmetic of the budget, step by step.
func TestBudget(t *testing.T) {
	for _, c := range casesOf[budgetCase](t, "budgets.json") {
		t.Run(c.Name.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status := 200
				s := &stage{}
				attempts := c.MaxAttempts
				if attempts == 0 {
					attempts = -1
				}
				d := onStage(t, s, resilience.WithRetryBudget(c.Policy), resilience.WithTimeout(-1),
					resilience.WithRetry(resilience.RetryPolicy{MaxAttempts: attempts, BaseDelay: -1}))
				for i, step := range c.Steps {
					time.Sleep(step.After.d())
					status = 503
					if step.Status != 0 {
						status = step.Status
					}
					safety := step.Safety
					if safety == "" {
						safety = "read"
					}
					s.acts = []act{{Status: status}}
					for n := range step.Fail {
						e := errorOf(t, callThing(t.Context(), d, opOf(safety)))
						if step.Attempts != 0 && e.Attempts != step.Attempts {
							t.Errorf("step %d, call %d: %d attempts, want %d (%s)", i+1, n+1, e.Attempts, step.Attempts, step.Note)
						}
						if got := errors.Is(e, resilience.ErrBudgetExhausted); got != step.Exhausted {
							t.Errorf("step %d, call %d: exhausted %v, want %v (%s): %v", i+1, n+1, got, step.Exhausted, step.Note, e)
						}
						if e.StatusCode != status {
							t.Errorf("step %d, call %d: the real answer is not on the error: %v", i+1, n+1, e)
						}
					}
					s.acts = []act{{Status: 200, Body: `{}`}}
					for range step.Succeed {
						if err := callThing(t.Context(), d, opOf("read")); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		})
	}
}

// A budget that is empty refuses beside the real error, and says both.
func TestBudgetExhaustedIsBesideTheRealError(t *testing.T) {
	d := onStage(t, playing(act{Status: 504}), resilience.WithRetryBudget(resilience.BudgetPolicy{Tokens: 1}))
	err := callThing(t.Context(), d, opOf("keyed"))
	isExactly(t, err, "ErrBudgetExhausted", "ErrTimeout", "ErrUnavailable", "ErrOutcomeUnknown")
	const want = "makeThing: 504 Gateway Timeout; then retry budget exhausted; outcome unknown, repeat with the same idempotency key or look it up (1 attempt)"
	if err.Error() != want {
		t.Errorf("the text is\n%q, want\n%q", err, want)
	}
}

// Failures that got no answer take from the budget as answers do, those that
// were refused here or given up by the caller do not.
func TestWhatTakesFromTheBudget(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name  string
		act   act
		ctx   context.Context
		takes bool
	}{
		{"no connection", act{Trace: "asked", Err: errors.New("dial")}, context.Background(), true},
		{"no answer", act{Trace: "got", Err: errors.New("reset")}, context.Background(), true},
		{"a cut body", act{Status: 200, Body: "{", BodyErr: errors.New("cut")}, context.Background(), true},
		{"an unreadable body", act{Status: 200, Body: "{"}, context.Background(), false},
		{"an undocumented 2xx", act{Status: 202}, context.Background(), false},
		{"a redirect", act{Status: 302}, context.Background(), false},
		{"not modified", act{Status: 304}, context.Background(), false},
		{"the caller had left", act{Status: 503}, gone, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &stage{acts: []act{test.act}}
			d := onStage(t, s, resilience.WithRetryBudget(resilience.BudgetPolicy{Refill: -1}))
			for range 5 {
				_ = callThing(test.ctx, d, opOf("read"), resilience.WithoutRetry())
			}
			s.acts = []act{{Status: 503}}
			if got := errorOf(t, callThing(t.Context(), d, opOf("read"))).Attempts == 1; got != test.takes {
				t.Errorf("after five of these the budget refused: %v, want %v", got, test.takes)
			}
		})
	}
}

// A refusal by the breaker is no success: it gives nothing back.
func TestRefusalsGiveNothingBack(t *testing.T) {
	d := onStage(t, playing(act{Status: 503}), atOnce(resilience.RetryPolicy{}), resilience.WithRetryBudget(resilience.BudgetPolicy{Refill: -1}), resilience.WithBreaker(resilience.BreakerPolicy{}))
	for range 5 {
		_ = callThing(t.Context(), d, opOf("read"), resilience.WithoutRetry())
	}
	for range 50 {
		isExactly(t, callThing(t.Context(), d, opOf("read")), "ErrCircuitOpen", "ErrUnavailable")
	}
	err := callThing(t.Context(), d, opOf("read"), resilience.WithoutBreaker())
	isExactly(t, err, "ErrBudgetExhausted", "ErrUnavailable")
}
