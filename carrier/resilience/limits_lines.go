package resilience

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// Lines returns the lines of a stream of NDJSON, without their ends; empty ones
// are left out. The slice is valid until the next step. An error ends it: what
// [Stream] itself returns, or a [LimitError] for a line that is longer than
// Limits.LineBytes. The last line need not have an end. Close the stream
// afterwards.
func (s *Stream) Lines() iter.Seq2[[]byte, error] {
	max := s.limits.lineBytes()
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReader(s)
		var line []byte
		for {
			piece, err := r.ReadSlice('\n')
			switch {
			case len(line)+len(bytes.TrimRight(piece, "\r\n")) > max:
				yield(nil, s.failed(&LimitError{"line", int64(max)}))
				return
			case err == bufio.ErrBufferFull || len(line) > 0:
				line = append(line, piece...)
				piece = line
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil && err != io.EOF {
				yield(nil, err)
				return
			}
			if whole := bytes.TrimSpace(piece); len(whole) > 0 && !yield(whole, nil) || err == io.EOF {
				return
			}
			line = line[:0]
		}
	}
}

// failed gives up the stream for what is in it, and returns the error that each
// later Read returns as well.
func (s *Stream) failed(err error) error {
	b, ok := s.ReadCloser.(*streamBody)
	if !ok {
		return err
	}
	if b.err == nil || b.err == io.EOF {
		b.fail(err)
	}
	return b.err
}

// DecodeLines decodes each of the [Stream.Lines] into a T. A line that does not
// decode is [ErrMalformedResponse], and ends it.
func DecodeLines[T any](s *Stream) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		n := 0
		for line, err := range s.Lines() {
			n++
			var v T
			if err == nil {
				err = checkDepth(line, s.limits.jsonDepth())
			}
			if err == nil {
				if bad := json.Unmarshal(line, &v); bad != nil {
					err = fmt.Errorf("%w: line %d: %w", ErrMalformedResponse, n, &decodeError{bad})
				}
			}
			if err != nil {
				yield(zero, s.failed(err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
