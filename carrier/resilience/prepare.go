package resilience

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// apply reads the options of a call.
func (cc *callConfig) apply(opts []CallOption) error {
	for _, o := range opts {
		if o == nil {
			return invalid("an option is nil")
		}
		if err := o.applyCall(cc); err != nil {
			return err
		}
	}
	return nil
}

// newCall checks everything that can be wrong before anything is sent.
func (d *Doer) newCall(ctx context.Context, o *Operation, req *Request, opts []CallOption) (*call, error) {
	switch {
	case o == nil:
		return nil, refuse("", invalid("the operation is nil"))
	case req == nil:
		return nil, Refuse(o, invalid("the request is nil"))
	case d.baseURL == nil:
		return nil, Refuse(o, invalid("Call needs a base URL: use WithBaseURL"))
	case !strings.HasPrefix(req.Path, "/"):
		return nil, Refuse(o, invalid("the path must begin with a slash"))
	case !validQuery(req.Query):
		return nil, Refuse(o, errQuery)
	}
	op := d.table.of(o)
	if op.shadowed(req.Path) {
		return nil, Refuse(o, invalid("the path parameter has a value that names another operation"))
	}
	if !op.keyed() {
		if err := refuseKeys(op, req.Header); err != nil {
			return nil, Refuse(o, err)
		}
	}
	c, err := d.prepare(ctx, op, opts)
	if err != nil {
		return nil, err
	}
	c.url = *d.baseURL
	if err := addPath(&c.url, req.Path); err != nil {
		return nil, Refuse(o, err)
	}
	c.url.RawQuery = req.Query
	c.method, c.header = o.Method, req.Header
	switch req.ContentType {
	case "":
	case "application/json":
		c.contentType = jsonContentType
	default:
		c.contentType = []string{req.ContentType}
	}
	c.body, c.model = bytesBody(req.Body), req.Model
	return c, nil
}

var jsonContentType = []string{"application/json"}

var errQuery = invalid("the query has blanks or control characters, which must be escaped")

// validQuery keeps a query from ending the request line, or the header.
func validQuery(query string) bool {
	for i := 0; i < len(query); i++ {
		if query[i] <= ' ' || query[i] == 0x7f {
			return false
		}
	}
	return true
}

// addPath appends an escaped path to the URL's.
func addPath(u *url.URL, path string) error {
	if u.RawPath == "" && strings.IndexByte(path, '%') < 0 {
		u.Path += path
		return nil
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return invalid("the path is not escaped correctly")
	}
	u.RawPath = u.EscapedPath() + path
	u.Path += plain
	return nil
}

// prepare makes a call of an operation, with everything but its request.
func (d *Doer) prepare(ctx context.Context, op *operation, opts []CallOption) (*call, error) {
	switch {
	case ctx == nil:
		return nil, Refuse(op.Operation, invalid("the context is nil"))
	case d.closed.Load():
		return nil, Refuse(op.Operation, invalid("the client is closed"))
	}
	c := &call{Context: ctx, doer: d, op: op, started: time.Now(), outcome: OutcomeNotSent}
	cc := &c.config
	err := cc.apply(opts)
	if cc.info != nil {
		*cc.info = CallInfo{Operation: op.ID} // of a call that is refused there is no more to tell
	}
	if err != nil {
		return nil, Refuse(op.Operation, err)
	}
	if err := d.checkHeaders(cc.headers); err != nil {
		return nil, Refuse(op.Operation, err)
	}
	c.settings = d.settings(op, cc)
	c.totalLimit = limitError{"total", c.settings.timeout}
	c.attemptLimit = limitError{"attempt", c.settings.attemptTimeout}
	switch {
	case op.keyed():
		err = c.setKey(cc)
	case cc.keySet:
		err = invalid("WithIdempotencyKey: %s takes no idempotency key", op.ID)
	}
	if err != nil {
		return nil, Refuse(op.Operation, err)
	}
	return c, nil
}

// setKey gives the call its one key: the caller's, or a new one.
func (c *call) setKey(cc *callConfig) (err error) {
	c.key = cc.key
	if !cc.keySet {
		if c.key, err = newKey(); err != nil {
			return err
		}
	}
	c.keyValues = []string{keyValue(c.key, c.doer.config.quotedKeys)}
	return nil
}

// again returns a call that sends the same once more, for a stream that goes
// on: a call of its own, with limits of its own.
func (c *call) again() *call {
	return &call{
		Context: c.Context, doer: c.doer, op: c.op, config: c.config, settings: c.settings,
		url: c.url, method: c.method, host: c.host, header: c.header, contentType: c.contentType,
		totalLimit: c.totalLimit, attemptLimit: c.attemptLimit, streams: c.streams,
		started: time.Now(), outcome: OutcomeNotSent,
	}
}
