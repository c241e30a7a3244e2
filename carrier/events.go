package carrier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// exportReconnects is how often in a row [Client.TrackingEvents] asks again
// without a new event.
const exportReconnects = 3

// ExportError is how [Client.TrackingEvents] fails, around the error of the last
// call: an [*Error], or one of [ErrMalformedResponse].
type ExportError struct {
	// Cursor is that of the last event that was handed over: give it to the next
	// call, now or tomorrow, and nothing is missing and nothing comes twice. ""
	// if there was none and none was given.
	Cursor string
	// Events is how many were handed over.
	Events int
	err    error
}

// Error says what happened, on one line.
func (e *ExportError) Error() string {
	return fmt.Sprintf("after %d events: %v", e.Events, e.err)
}

// Unwrap returns the error of the last call.
func (e *ExportError) Unwrap() error { return e.err }

// TrackingEvents goes through the events of [Client.ExportTrackingEvents], the
// oldest first, as they come. If the answer is cut, stalls or ends within a
// line, it asks again behind the last event, so that none is missing and none
// comes twice. It gives up after three such answers in a row that have brought
// nothing new, and at once if the call itself fails, which has its own retries,
// or ctx ends; the error, an [*ExportError], then comes with a zero event.
//
// An empty cursor counts as none.
//
//	for event, err := range client.TrackingEvents(ctx, carrier.ExportTrackingEventsParams{Cursor: &stored}) {
//		if err != nil {
//			return err
//		}
//		… // and store event.Cursor together with what follows from the event
//	}
func (c *Client) TrackingEvents(ctx context.Context, params ExportTrackingEventsParams, opts ...CallOption) iter.Seq2[ExportedEvent, error] {
	return func(yield func(ExportedEvent, error) bool) {
		export := export{client: c, params: params, opts: opts}
		if params.Cursor != nil {
			export.cursor = *params.Cursor
		}
		for fruitless := 0; ; fruitless++ {
			had := export.cursor
			again, err := export.read(ctx, yield)
			if export.cursor != had {
				fruitless = 0
			}
			if err == nil {
				return
			}
			if again && fruitless < exportReconnects {
				ended := rest(ctx, fruitless)
				if ended == nil {
					continue
				}
				err = fmt.Errorf("%w, after %w", ended, err)
			}
			yield(ExportedEvent{}, &ExportError{Cursor: export.cursor, Events: export.events, err: err})
			return
		}
	}
}

// export is how far an export has come.
type export struct {
	client *Client
	params ExportTrackingEventsParams
	opts   []CallOption
	cursor string
	events int
}

// read reads one answer. Without an error there is nothing more to do. again
// says that another answer may go on where this one has failed.
func (e *export) read(ctx context.Context, yield func(ExportedEvent, error) bool) (again bool, err error) {
	params := e.params
	params.Cursor = nil
	if e.cursor != "" {
		params.Cursor = &e.cursor
	}
	stream, err := e.client.ExportTrackingEvents(ctx, params, e.opts...)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	behind := true // the cursor is that of the last event
	for event, err := range resilience.DecodeLines[ExportedEvent](stream) {
		if err != nil {
			return behind && ctx.Err() == nil && !errors.Is(err, ErrResponseTooLarge), err
		}
		e.events++
		if behind = event.Cursor != ""; behind {
			e.cursor = event.Cursor
		}
		if !yield(event, nil) {
			return false, nil
		}
	}
	return false, nil
}

// rest waits before an answer is asked for again, the longer the more have
// brought nothing, and spread out. It ends early, with its error, if ctx does.
func rest(ctx context.Context, fruitless int) error {
	const base = 100 * time.Millisecond
	t := time.NewTimer(time.Duration(rand.Float64() * float64(base<<fruitless)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
