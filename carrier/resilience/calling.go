package resilience

import (
	"bytes"
	"context"
	"errors"
)

// Call makes one call of an operation; generated methods do. decode is given
// the documented success, inside the attempt, so that what it cannot read is a
// failed attempt; it may be called again with another answer, and must not keep
// parts of an earlier one. With a nil decode the answer's body does not matter.
//
// A nil error means a documented success. Every other error is an [Error].
func (d *Doer) Call(ctx context.Context, op *Operation, req *Request, decode func(*Response) error, opts ...CallOption) error {
	c, err := d.newCall(ctx, op, req, opts)
	if err != nil {
		return err
	}
	c.decode = decode
	return c.finish(req.Body)
}

// finish makes the call, alone or together with others of the same key, and
// returns its error.
func (c *call) finish(body []byte) error {
	if c.config.keySet {
		return c.finishShared(body)
	}
	c.run()
	return c.conclude(c.config.info)
}

// conclude is the end of a call that was made: its error, and info filled in if
// there is one.
func (c *call) conclude(info *CallInfo) error {
	if info != nil {
		c.fill(info)
	}
	if c.succeeded() {
		return nil
	}
	return c.failure()
}

func (c *call) succeeded() bool {
	return c.local == nil && c.judged != nil && c.judged == c.last && c.judged.class == classSuccess
}

// finishShared makes a call with a key of the caller's: if one with the same
// key is on its way, it shares that one's result, and decodes a copy of its own.
func (c *call) finishShared(body []byte) error {
	from, led, err := c.doer.flights.join(c, body)
	switch {
	case err != nil:
		return c.refusedInFlight(err)
	case led:
		return c.conclude(c.config.info)
	}
	if !from.succeeded() {
		return from.conclude(c.config.info)
	}
	a, theirs := &c.first, from.judged
	a.resp, a.status, a.header, a.body = theirs.resp, theirs.status, theirs.header.Clone(), bytes.Clone(theirs.body)
	a.replayed = theirs.replayed
	a.judgeResult(c)
	c.last, c.judged, c.answered = a, a, a
	c.attempts, c.sends, c.outcome = from.attempts, from.sends, a.outcome
	return c.conclude(c.config.info)
}

// refusedInFlight is the error of a call that never went out: other bytes under
// its key, or its caller left while another call had the key in flight.
func (c *call) refusedInFlight(err error) error {
	if info := c.config.info; info != nil {
		c.fill(info)
	}
	if errors.Is(err, ErrKeyReused) {
		return &Error{
			Operation: c.op.ID, Outcome: OutcomeNotSent, IdempotencyKey: c.key,
			causes: []error{ErrKeyReused, err}, what: err.Error(),
		}
	}
	// What the other call has done under this key, this one cannot know.
	e := &Error{
		Operation: c.op.ID, Outcome: OutcomeUnknown, IdempotencyKey: c.key,
		causes: []error{ErrOutcomeUnknown, err},
		what:   "the same key is in flight: " + oneLine(err.Error(), 200),
	}
	switch {
	case err == &c.totalLimit:
		e.Timeout = c.totalLimit.limit
	case c.Context.Err() == context.DeadlineExceeded:
		deadline, _ := c.Context.Deadline()
		e.Timeout = deadline.Sub(c.started)
		e.causes = append([]error{ErrTimeout}, e.causes...)
	}
	return e
}
