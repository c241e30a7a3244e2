package resilience

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits bound what an answer may cost. A zero field means its default, a
// negative one switches the rule off. What is over a limit is a [LimitError].
//
// Other limits have options of their own, or are fixed:
//
//	body, decompressed     8 MiB     WithMaxResponseBytes
//	stream                 none      WithMaxResponseBytes; 64 MiB behind a link of another origin
//	body of an error       256 KiB   of which an Error keeps 4 KiB
//	problem details        64 KiB
//	answer with a token    64 KiB
//	redirects              0         RedirectError
//	link                   8 KiB
type Limits struct {
	// HeaderBytes is for the header of an answer, 1xx ones included, of our own
	// transport; default 256 KiB. Negative: net/http's own, 10 MiB.
	HeaderBytes int64
	// JSONDepth is how deep the objects and lists of a JSON answer, or line, may
	// be nested; default 100. Negative: encoding/json's own, 10,000.
	JSONDepth int
	// LineBytes is for one line of [Stream.Lines]; default 1 MiB.
	LineBytes int
}

// WithLimits sets the limits of the client; see [Limits].
func WithLimits(l Limits) Option {
	return clientOption(func(c *config) error { c.limits = l; return nil })
}

func (l Limits) headerBytes() int64 { return orDefault(l.HeaderBytes, 256<<10, 0) }
func (l Limits) jsonDepth() int     { return orDefault(l.JSONDepth, 100, 10_000) }
func (l Limits) lineBytes() int     { return orDefault(l.LineBytes, 1<<20, 1<<62) }

// LimitError says which limit an answer is over. It Is [ErrResponseTooLarge]:
// not repeated, and no failure to the breaker.
type LimitError struct {
	// What is over: "body", "header", "stream", "line", "JSON depth" or "pages".
	What string
	// Limit is in bytes, levels or pages.
	Limit int64
}

// Error names limit and number.
func (e *LimitError) Error() string {
	unit := "bytes"
	switch e.What {
	case "JSON depth":
		unit = "levels"
	case "pages":
		unit = "pages"
	}
	return fmt.Sprintf("%v: %s over %d %s", ErrResponseTooLarge, e.What, e.Limit, unit)
}

// Is makes errors.Is(err, [ErrResponseTooLarge]) hold.
func (e *LimitError) Is(target error) bool { return target == ErrResponseTooLarge }

// checkDepth returns an error for JSON that is nested deeper than max. Few
// answers have as many brackets at all, and counting those costs next to nothing.
func checkDepth(b []byte, max int) error {
	if bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) <= max {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > max {
				return &LimitError{"JSON depth", int64(max)}
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// invalidHTTP2 holds if net/http ended an HTTP/2 connection for what the server
// sent: a header that goes on after its limit, if anything of a server that works.
func invalidHTTP2(err error) bool {
	return strings.HasPrefix(err.Error(), "connection error: PROTOCOL_ERROR")
}

// headerTooLarge holds if net/http gave up on an answer for the size of its
// header. It has no type for that.
func headerTooLarge(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "response header list larger than advertised limit")
}
