package resilience

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is an answer that is handed over unread: a label, a document, an
// export. Read it to the end or Close it: until then it holds a connection.
//
// The total time limit and the attempt's end at the headers; from there each
// wait for the next bytes is bounded by the idle time limit ([WithIdleTimeout]),
// and everything by the caller's context. If the connection is cut or stalls,
// and the server offers ranges (RFC 9110, section 14) and a strong validator,
// the stream goes on where it was by a new request, unseen: each of those is
// retried like any other call. What cannot be resumed, or may not be by
// [WithoutRetry], is an [Error] from Read, with OutcomeDone.
//
// A Stream is for one reader; Close may be called from another goroutine.
type Stream struct {
	io.ReadCloser
	// Header is the answer's, credentials removed.
	Header http.Header
	// ContentType is its media type, with parameters.
	ContentType string
	// Size is the length in bytes; -1 if unknown.
	Size int64

	limits Limits
}

// Format writes "resilience.Stream" for every verb: behind it are requests with credentials.
func (s Stream) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "resilience.Stream") }

const (
	// freeResume is how much progress makes a resume free of charge: a cut
	// after less counts against MaxAttempts and the retry budget.
	freeResume = 64 << 10
	// weakDate is how much older than the answer a Last-Modified must be to be
	// a strong validator (RFC 9110, section 8.8.2.2).
	weakDate = time.Minute
)

// streamBody is the body of a Stream.
type streamBody struct {
	c         *call
	header    http.Header
	size      int64
	validator string // for If-Range; empty if the stream cannot be resumed
	max       int64
	idle      limitError
	timer     *time.Timer // runs while a Read waits; nil if there is no limit

	mu     sync.Mutex // guards body and cancel against Close
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	ctx    context.Context

	closed    atomic.Bool
	read      int64 // bytes handed to the reader
	from      int64 // where the present answer began
	fruitless int   // resumes in a row that brought little
	err       error // sticky
}

func newStreamBody(c *call, a *attempt) *streamBody {
	s := &streamBody{
		c: c, header: a.header, size: a.resp.ContentLength, max: c.settings.maxStream,
		body: a.resp.Body, cancel: a.cancelStream, ctx: a.Context,
		idle: limitError{"idle", c.settings.idleTimeout},
	}
	if c.settings.retry != nil && c.ifRange == "" && !a.resp.Uncompressed {
		s.validator = validator(c, a)
	}
	if s.idle.limit > 0 {
		s.timer = time.AfterFunc(time.Hour, s.expire)
		s.timer.Stop()
	}
	return s
}

// validator returns what proves that a later answer is a part of the same
// thing: a strong ETag, or a Last-Modified that is old enough.
func validator(c *call, a *attempt) string {
	if c.op.safety != SafetyRead || c.method != http.MethodGet || a.status != http.StatusOK ||
		!strings.EqualFold(a.header.Get("Accept-Ranges"), "bytes") || a.resp.ContentLength < 0 {
		return ""
	}
	if tag := a.header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	modified, err1 := http.ParseTime(a.header.Get("Last-Modified"))
	date, err2 := http.ParseTime(a.header.Get("Date"))
	if err1 == nil && err2 == nil && date.Sub(modified) >= weakDate {
		return a.header.Get("Last-Modified")
	}
	return ""
}

func (s *streamBody) expire() {
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	cancel(&s.idle)
}

// Read reads on, over cuts if need be.
func (s *streamBody) Read(p []byte) (int, error) {
	for s.err == nil {
		if s.closed.Load() {
			return 0, s.errClosed()
		}
		n, err := s.readOnce(p)
		s.read += int64(n)
		switch {
		case s.max > 0 && s.read > s.max:
			n -= s.cutBack(s.max)
			s.fail(&LimitError{"stream", s.max})
		case s.size > 0 && s.read > s.size:
			n -= s.cutBack(s.size)
			s.fail(fmt.Errorf("%w: more than the %d bytes that it is said to have", ErrMalformedResponse, s.size))
		case err == nil:
			return n, nil
		case s.closed.Load():
			s.err = s.errClosed()
		case err == io.EOF && s.read >= s.size:
			s.err = io.EOF
			s.release()
		case err == io.EOF:
			s.recover(io.ErrUnexpectedEOF)
		default:
			s.recover(err)
		}
		if n > 0 {
			return n, nil // the reader gets what came; s.err, if any, with the next Read
		}
	}
	return 0, s.err
}

func (s *streamBody) readOnce(p []byte) (int, error) {
	s.mu.Lock()
	body := s.body
	s.mu.Unlock()
	if s.timer == nil {
		return body.Read(p)
	}
	s.timer.Reset(s.idle.limit)
	defer s.timer.Stop()
	return body.Read(p)
}

// cutBack takes back what was read beyond max, and returns how much that is.
func (s *streamBody) cutBack(max int64) int {
	excess := s.read - max
	s.read = max
	return int(excess)
}

func (s *streamBody) errClosed() error { return fmt.Errorf("%s: the stream is closed", s.c.op.ID) }

// recover goes on after a cut, or fails for good.
func (s *streamBody) recover(cut error) {
	var cause error = newTransportError(cut, s.c.redactor())
	kind := ErrUnavailable
	if limit := ownLimit(s.ctx); limit != nil {
		cause, kind = limit, ErrTimeout
	}
	s.release()
	if s.c.Context.Err() != nil {
		s.fail(contextError(s.c.Context))
		return
	}
	wait, ok := s.mayResume()
	if !ok {
		s.fail(cause, kind)
		return
	}

	// From here on Close ends the wait, the new request and what it brings.
	ctx, cancel := context.WithCancelCause(s.c.Context)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	if s.closed.Load() {
		cancel(context.Canceled)
	}
	err := sleep(ctx, wait)
	if err == nil {
		err = s.resume(ctx)
	}
	switch {
	case err == nil:
	case s.closed.Load():
		s.err = s.errClosed()
		s.release()
	case s.c.Context.Err() != nil:
		s.fail(contextError(s.c.Context))
	default:
		s.fail(fmt.Errorf("%w, and it could not be resumed: %w", cause, err), kind)
	}
}

// mayResume says whether to resume, and after which wait.
func (s *streamBody) mayResume() (wait time.Duration, ok bool) {
	if s.validator == "" {
		return 0, false
	}
	if s.read-s.from >= freeResume {
		s.fruitless = 0
		return 0, true
	}
	s.fruitless++
	policy := s.c.settings.retry
	if s.fruitless >= policy.MaxAttempts || !s.c.doer.budget.fail(time.Now()) {
		return 0, false
	}
	return policy.backoff(s.fruitless), true
}

// sleep ends early, with ctx's error, if ctx does.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errResume = errors.New("the server did not go on where it was cut")

// resume asks for the rest by Range and If-Range: a call of its own.
func (s *streamBody) resume(ctx context.Context) error {
	c := s.c.again()
	c.Context = ctx
	c.ifRange, c.rangeFrom = s.validator, s.read
	c.run()
	a := c.last
	if a == nil || a.stream == nil {
		return c.failure()
	}
	next := a.stream
	if !s.continues(a.header) {
		_ = next.Close()
		return errResume
	}
	s.mu.Lock()
	s.body, s.ctx, s.from = next.body, next.ctx, s.read
	s.mu.Unlock()
	if s.closed.Load() {
		s.release()
	}
	return nil
}

// continues checks that a part begins where the stream stopped, goes to its
// end ("bytes 100-199/200"), and is of the same thing. Not every server that
// knows Range looks at If-Range.
func (s *streamBody) continues(h http.Header) bool {
	unit, rest, _ := strings.Cut(h.Get("Content-Range"), " ")
	span, total, ok := strings.Cut(rest, "/")
	first, last, ok2 := strings.Cut(span, "-")
	if !strings.EqualFold(unit, "bytes") || !ok || !ok2 ||
		first != strconv.FormatInt(s.read, 10) ||
		last != strconv.FormatInt(s.size-1, 10) ||
		total != strconv.FormatInt(s.size, 10) {
		return false
	}
	if strings.HasPrefix(s.validator, `"`) {
		return h.Get("ETag") == s.validator
	}
	modified := h.Get("Last-Modified")
	return modified == "" || modified == s.validator
}

// fail makes the error that this and every later Read returns.
func (s *streamBody) fail(cause error, sentinels ...error) {
	s.release()
	c := s.c
	e := &Error{
		Operation: c.op.ID, Outcome: OutcomeDone, IdempotencyKey: c.key, Attempts: c.attempts,
		causes: append(sentinels, cause),
	}
	c.addAnswer(e)
	var limit *limitError
	switch {
	case errors.As(cause, &limit):
		e.Timeout = limit.limit
	case errors.Is(cause, context.DeadlineExceeded):
		e.Timeout = c.callerLimit
		e.causes = append(e.causes, ErrTimeout)
	}
	e.what = c.redactor().text("after " + strconv.FormatInt(s.read, 10) + " bytes: " + oneLine(cause.Error(), 300))
	s.err = e
}

// release gives the present connection back, or up.
func (s *streamBody) release() {
	s.mu.Lock()
	body, cancel := s.body, s.cancel
	s.body = http.NoBody
	s.mu.Unlock()
	_ = body.Close()
	cancel(context.Canceled)
}

// Close ends the stream, and a Read that waits. Twice is fine.
func (s *streamBody) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	body, cancel := s.body, s.cancel
	s.mu.Unlock()
	cancel(context.Canceled)
	return body.Close()
}
