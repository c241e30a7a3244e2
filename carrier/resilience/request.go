package resilience

import "net/http"

// Request is what a generated method hands to [Doer.Call]: everything that
// depends on the call's arguments, with the body already encoded, once, so that
// every attempt sends the same bytes.
type Request struct {
	// Path is the operation's path with its parameters filled in and escaped,
	// below the base URL: "/tracking/BK1001TR". See [PathSegment].
	Path string
	// Query is the encoded query without the question mark; "" for none.
	Query string
	// Header has what header parameters add; nil for none. It is not changed.
	Header http.Header
	// Body is the encoded body; nil for none. It must not be changed until the
	// call has returned.
	Body []byte
	// ContentType is the body's media type.
	ContentType string
	// Model is what Body was encoded from; nil if that is not known. It is read
	// only when an error is written, for each [Secret] in it: if the API echoes
	// one, the error does not.
	Model any
}

// Response is an answer whose body has been read in full.
type Response struct {
	StatusCode int
	Header     http.Header
	// Body is the whole, decompressed body. It is the caller's to keep.
	Body []byte
}
