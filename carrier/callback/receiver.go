package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// ErrGone is for the function of a [Receiver]: the notification is refused for
// good, with 410. At this carrier that ends the subscription.
var ErrGone = errors.New("callback: nobody is here for notifications any more")

// Receiver is an [http.Handler] that takes in notifications of type T. Use
// [NewReceiver] to make one; it may be used by several goroutines.
//
// It answers by problem details (RFC 9457) that say no more than the status:
//
//	204  it is handled, now or before
//	400  it could not be read, is no T, or has no id
//	401  it is not signed as it should be
//	405  it is no POST
//	409  it is being handled at the moment: the carrier tries again
//	410  the function has returned ErrGone
//	413  it is too large
//	500  the function has failed: the carrier tries again
//	503  Seen has failed, before the function was called
//
// The body is read, up to [WithMaxBytes], and its signature checked, before
// anything of it is looked at; how long a sender may take is for the ReadTimeout
// of the [http.Server]. If the function panics, so does ServeHTTP, and the
// notification counts as not handled.
type Receiver[T any] struct {
	config
	handle func(context.Context, T) error
	id     func(T) string
}

// NewReceiver returns a receiver. It calls handle for each notification, by id
// once; the context is that of the request, which ends when the carrier gives
// up, after 10 seconds at this one. What takes longer belongs into a queue.
// Notifications of different ids may be handled at the same time.
//
// There must be [WithSecrets] or [WithVerifier]; without, or with an option that
// makes no sense, there is an error.
func NewReceiver[T any](handle func(context.Context, T) error, id func(T) string, opts ...Option) (*Receiver[T], error) {
	if handle == nil || id == nil {
		return nil, errors.New("callback: a receiver needs what handles a notification, and what tells its id")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{config: c, handle: handle, id: id}, nil
}

// ServeHTTP takes in one notification.
func (r *Receiver[T]) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, r.maxBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		r.refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	case err != nil:
		r.refuse(w, http.StatusBadRequest, err)
		return
	}
	if err := r.verify(req.Header, body); err != nil {
		r.refuse(w, http.StatusUnauthorized, err)
		return
	}
	var notification T
	if err := json.Unmarshal(body, &notification); err != nil {
		r.refuse(w, http.StatusBadRequest, errors.New("callback: the body is not the JSON of a notification"))
		return
	}
	id := r.id(notification)
	if id == "" || strings.ContainsRune(id, utf8.RuneError) { // what is not UTF-8 is decoded into the same id
		r.refuse(w, http.StatusBadRequest, errors.New("callback: the notification has no id, or one that is no text"))
		return
	}
	status, err := r.once(req.Context(), id, notification)
	if err != nil {
		r.logger.ErrorContext(req.Context(), "notification not handled", "id", id, "status", status, "error", err)
	}
	if status == http.StatusConflict {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status)
}

// Format writes "callback.Receiver" for every verb: a receiver holds secrets.
func (r *Receiver[T]) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "callback.Receiver") }

func (r *Receiver[T]) verify(header http.Header, body []byte) error {
	if r.verifier != nil {
		return r.verifier(header, body, r.now())
	}
	return Verify(strings.Join(header.Values(r.header), ","), body, r.now(), r.tolerance, r.secrets...)
}

// once handles a notification, unless it was handled before or somebody does.
func (r *Receiver[T]) once(ctx context.Context, id string, notification T) (status int, err error) {
	switch claim, err := r.seen.Claim(ctx, id); {
	case err != nil:
		return http.StatusServiceUnavailable, fmt.Errorf("callback: Seen: %w", err)
	case claim == ClaimHandled:
		return http.StatusNoContent, nil
	case claim == ClaimBusy:
		return http.StatusConflict, nil
	}
	// What was claimed is settled even if the carrier has gone meanwhile.
	settle := context.WithoutCancel(ctx)
	handled := false
	defer func() {
		if !handled { // it failed, or it panics
			err = errors.Join(err, r.seen.Release(settle, id))
		}
	}()
	err = r.handle(ctx, notification)
	switch {
	case errors.Is(err, ErrGone):
		return http.StatusGone, nil
	case err != nil:
		return http.StatusInternalServerError, err
	}
	handled = true
	if err := r.seen.Done(settle, id); err != nil {
		return http.StatusNoContent, fmt.Errorf("callback: it is handled, and may be again: Seen: %w", err)
	}
	return http.StatusNoContent, nil
}

func (r *Receiver[T]) refuse(w http.ResponseWriter, status int, why error) {
	r.logger.Warn("notification refused", "status", status, "error", why)
	answer(w, status)
}

// answer says the status, in problem details if it is an error.
func answer(w http.ResponseWriter, status int) {
	if status < http.StatusBadRequest {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d}`+"\n", http.StatusText(status), status)
}
