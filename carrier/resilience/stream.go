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
// and everything by the caller's context. If the connection is cut, and the
// server offers ranges (RFC 9110, section 14), the stream goes on where it was
// by a new request, unseen: each of those is retried like any other call. What
// cannot be resumed is an [Error] from Read, with OutcomeDone.
//
// A Stream is for one reader; Close may be called from another goroutine.
type Stream struct {
	io.ReadCloser
	// Header is the answer's.
	Header http.Header
	// ContentType is its media type, with parameters.
	ContentType string
	// Size is the length in bytes; -1 if unknown.
	Size int64
}

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
	if c.rangeFrom == 0 && !a.resp.Uncompressed {
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
			return 0, fmt.Errorf("%s: the stream is closed", s.c.op.ID)
		}
		n, err := s.readOnce(p)
		s.read += int64(n)
		if s.max > 0 && s.read > s.max {
			n -= int(s.read - s.max)
			s.fail(fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, s.max), nil)
			return n, s.err
		}
		switch {
		case err == nil:
			return n, nil
		case err == io.EOF:
			s.err = io.EOF
			s.release()
		case s.closed.Load():
			s.err = fmt.Errorf("%s: the stream is closed", s.c.op.ID)
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

// recover goes on after a cut, or fails for good.
func (s *streamBody) recover(cut error) {
	limit := ownLimit(s.ctx)
	s.release()
	cause := cut
	if limit != nil {
		cause = limit
	}
	if s.c.Context.Err() != nil {
		s.fail(contextError(s.c.Context), nil)
		return
	}
	if s.validator == "" {
		s.fail(cause, limit)
		return
	}
	if s.read-s.from < freeResume {
		s.fruitless++
		policy := s.c.settings.retry
		if policy == nil || s.fruitless >= policy.MaxAttempts || !s.c.doer.budget.fail(time.Now()) {
			s.fail(cause, limit)
			return
		}
		if !sleep(s.c.Context, policy.backoff(s.fruitless)) {
			s.fail(contextError(s.c.Context), nil)
			return
		}
	} else {
		s.fruitless = 0
	}
	if err := s.resume(); err != nil {
		s.fail(fmt.Errorf("the answer was cut (%s) and could not be resumed: %w", oneLine(cut.Error(), 100), err), limit)
	}
}

// sleep waits, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var errResume = errors.New("the server did not go on where it was cut")

// resume asks for the rest by Range and If-Range: a call of its own.
func (s *streamBody) resume() error {
	c := s.c.again()
	c.rangeFrom = s.read
	c.header = s.c.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header["Range"] = []string{"bytes=" + strconv.FormatInt(s.read, 10) + "-"}
	c.header["If-Range"] = []string{s.validator}
	c.run()
	a := c.last
	if a == nil || a.stream == nil {
		return c.failure()
	}
	next := a.stream
	if !s.continues(a.header.Get("Content-Range")) {
		_ = next.Close()
		return errResume
	}
	s.mu.Lock()
	s.body, s.cancel, s.ctx, s.from = next.body, next.cancel, next.ctx, s.read
	s.mu.Unlock()
	if s.closed.Load() {
		s.release()
	}
	return nil
}

// continues checks that a Content-Range begins where the stream stopped, and
// is of a thing of the same length: "bytes 100-199/200".
func (s *streamBody) continues(contentRange string) bool {
	unit, rest, _ := strings.Cut(contentRange, " ")
	span, total, ok := strings.Cut(rest, "/")
	first, last, ok2 := strings.Cut(span, "-")
	return strings.EqualFold(unit, "bytes") && ok && ok2 &&
		first == strconv.FormatInt(s.read, 10) &&
		last == strconv.FormatInt(s.size-1, 10) &&
		total == strconv.FormatInt(s.size, 10)
}

// fail makes the error that this and every later Read returns.
func (s *streamBody) fail(cause error, limit *limitError) {
	s.release()
	c := s.c
	e := &Error{
		Operation: c.op.ID, Outcome: OutcomeDone, IdempotencyKey: c.key, Attempts: c.attempts,
		causes: []error{},
	}
	c.addAnswer(e)
	var inner *Error
	switch {
	case limit != nil:
		e.Timeout = limit.limit
		e.causes = append(e.causes, ErrTimeout)
	case errors.Is(cause, ErrResponseTooLarge):
	case errors.As(cause, &inner):
	case c.Context.Err() != nil:
		if c.Context.Err() == context.DeadlineExceeded {
			e.Timeout = c.callerLimit
			e.causes = append(e.causes, ErrTimeout)
		}
	default:
		e.causes = append(e.causes, ErrUnavailable)
	}
	e.causes = append(e.causes, cause)
	e.what = c.doer.redactor.text("after " + strconv.FormatInt(s.read, 10) + " bytes: " + oneLine(cause.Error(), 300))
	s.err = e
}

// release gives the present connection back, or up.
func (s *streamBody) release() {
	s.mu.Lock()
	body, cancel := s.body, s.cancel
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
