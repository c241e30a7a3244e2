package resilience

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

type callOptionsKey struct{}

// WithCall returns a context that carries options for [Doer.Do], whose request
// has no other place for them. Options of a context further out come first.
func WithCall(ctx context.Context, opts ...CallOption) context.Context {
	before, _ := ctx.Value(callOptionsKey{}).([]CallOption)
	return context.WithValue(ctx, callOptionsKey{}, append(before[:len(before):len(before)], opts...))
}

// Do sends a request that somebody else built: it fits the HttpRequestDoer of
// every client that oapi-codegen generates. The operation is found by method
// and path in the table of [WithOperations]; a request that matches none is
// judged by its verb alone, as a write that must not be repeated, unless the
// caller set an idempotency key.
//
// As with http.Client, err is nil with any status, and the body must be closed;
// it has been read already, unless the operation is a stream. If retries end,
// the last answer is returned. With [WithStatusErrors], or where there is no
// whole answer, err is an [Error].
//
// req is not changed. Its body is read by the first attempt and by every other
// one from GetBody; without GetBody there is no retry once it was read. The body
// is closed in any case.
func (d *Doer) Do(req *http.Request) (*http.Response, error) {
	c, body, err := d.adopt(req)
	if err != nil {
		if req != nil && req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	defer c.closeBody()
	if body == nil {
		c.run()
		return c.response(c)
	}
	from, _, err := d.flights.join(c, body)
	if err != nil {
		return nil, c.refusedInFlight(err)
	}
	return c.response(from)
}

// response is what a caller of Do gets of the call that was made: its own, or
// another's with the same key.
func (c *call) response(from *call) (*http.Response, error) {
	err := from.conclude(c.config.info)
	a := from.answered
	gone := err != nil && from.Err() != nil && from.decision.retry // the caller left in a wait
	if a == nil || from.local != nil || a != from.judged || a.left || gone {
		return nil, errorOrNil(err)
	}
	answered := a.class == classSuccess || a.bodyErr == nil && a.class != classUnreadable
	if err != nil && (!answered || c.doer.config.statusErrors) {
		return nil, err
	}
	resp := *a.resp
	resp.Request = c.adopted
	resp.Header = a.header.Clone()
	if a.stream != nil {
		resp.Body = a.stream
	} else {
		resp.Body = io.NopCloser(bytes.NewReader(bytes.Clone(a.body)))
		resp.TransferEncoding = nil
		if from.method != http.MethodHead {
			resp.ContentLength = int64(len(a.body))
		}
	}
	return &resp, nil
}

func errorOrNil(err error) error {
	if err == nil {
		return errors.New("no answer")
	}
	return err
}

// adopt makes a call of somebody else's request. body is not nil only where
// the bytes are known, for calls of one key to be compared by.
func (d *Doer) adopt(req *http.Request) (c *call, body []byte, err error) {
	switch {
	case req == nil:
		return nil, nil, refuse("", invalid("the request is nil"))
	case req.Method != "" && !validHeaderName(req.Method):
		return nil, nil, refuse("", invalid("the method is not valid"))
	case req.URL == nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return nil, nil, refuse(req.Method, invalid("the request's URL must be absolute, with the scheme http or https"))
	case req.RequestURI != "":
		return nil, nil, refuse(req.Method, invalid("RequestURI cannot be set in a client's request"))
	case !validQuery(req.URL.RawQuery):
		return nil, nil, refuse(req.Method, errQuery)
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	op := d.find(method, req.URL)
	if op == nil {
		op = unknownOperation(method, req.Header)
	}
	opts, _ := req.Context().Value(callOptionsKey{}).([]CallOption)
	if op.keyed() {
		if key := req.Header.Values(op.keyHeader); len(key) > 0 {
			opts = append(opts[:len(opts):len(opts)], WithIdempotencyKey(unquoteKey(key[0])))
		}
	} else if err := refuseKeys(op, req.Header); err != nil {
		return nil, nil, Refuse(op.Operation, err)
	}
	if c, err = d.prepare(req.Context(), op, opts); err != nil {
		return nil, nil, err
	}
	c.adopted = req
	c.url, c.method, c.host, c.header = *req.URL, method, req.Host, req.Header
	c.adoptBody(req)
	if c.streams = op.Stream; c.streams {
		return c, nil, nil
	}
	if c.config.keySet && req.GetBody != nil && req.ContentLength <= maxFirstBuffer {
		body, err = c.readOwn(req)
	} else if c.config.keySet && c.body.open == nil {
		body = []byte{}
	}
	if err != nil {
		return nil, nil, Refuse(op.Operation, err)
	}
	return c, body, nil
}

// find looks the operation up by what is behind the base URL.
func (d *Doer) find(method string, u *url.URL) *operation {
	if d.baseURL == nil {
		return d.table.findSuffix(method, u.EscapedPath())
	}
	path, below := strings.CutPrefix(u.EscapedPath(), d.baseURL.EscapedPath())
	if !below || !strings.HasPrefix(path, "/") || !sameOrigin(d.baseURL, u) {
		return nil
	}
	return d.table.find(method, path)
}

// unknownOperation is judged by its verb alone, unless a key is there.
func unknownOperation(method string, h http.Header) *operation {
	o := &Operation{ID: method + " (unknown)", Method: method}
	for _, name := range netHTTPKeyHeaders {
		if len(h.Values(name)) > 0 {
			o.KeyHeader, o.Safety = name, SafetyKeyed
		}
	}
	op := compile(o)
	return op
}

// refuseKeys keeps a key off an operation that the carrier does not
// deduplicate: net/http would take it for leave to send a POST twice.
func refuseKeys(op *operation, h http.Header) error {
	for name := range h {
		if slices.Contains(netHTTPKeyHeaders, http.CanonicalHeaderKey(name)) {
			return invalid("%s takes no idempotency key", op.ID)
		}
	}
	return nil
}

func unquoteKey(v string) string {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(v[1 : len(v)-1])
	}
	return v
}

// adoptBody takes the request's body: what it has for the first attempt, and
// GetBody's for the others, never a copy.
func (c *call) adoptBody(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	get := req.GetBody
	c.unread = req.Body
	c.oneShot = get == nil
	c.body.length = req.ContentLength
	c.body.open = func() (io.ReadCloser, error) {
		if body := c.unread; body != nil {
			c.unread = nil
			return body, nil
		}
		if get == nil {
			return nil, errors.New("it cannot be read a second time")
		}
		return get()
	}
}

// closeBody closes the request's body if no attempt came to read it.
func (c *call) closeBody() {
	if c.unread != nil {
		_ = c.unread.Close()
	}
}

// readOwn reads a body that can be read again, to compare calls by.
func (c *call) readOwn(req *http.Request) ([]byte, error) {
	r, err := req.GetBody()
	if err != nil {
		return nil, invalid("GetBody failed: %v", err)
	}
	defer r.Close()
	b, err := readBody(r, req.ContentLength, maxFirstBuffer)
	if err != nil {
		return nil, invalid("the body cannot be read: %v", err)
	}
	return b, nil
}

// HTTPClient returns an http.Client that sends through the Doer, for code that
// wants one. It follows no redirects, and returns errors as http.Client does,
// with the URL in the text and an [Error] inside.
func (d *Doer) HTTPClient() *http.Client {
	return &http.Client{
		Transport:     doerTransport{d},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type doerTransport struct{ d *Doer }

func (t doerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.d.Do(req)
	if err == nil {
		if _, bad := resp.Location(); bad != nil {
			resp.Header.Del("Location") // http.Client would throw the answer away for it
		}
	}
	return resp, err
}
