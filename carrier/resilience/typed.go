package resilience

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
)

var errNull = errors.New("null where a result belongs")

// CallJSON makes a call whose result is JSON, and decodes it into a new T,
// inside the attempt. Generated methods use it.
func CallJSON[T any](ctx context.Context, d *Doer, op *Operation, req *Request, opts ...CallOption) (*T, error) {
	c, err := d.newCall(ctx, op, req, opts)
	if err != nil {
		return nil, err
	}
	out := new(T)
	c.into = out
	if err := c.finish(req.Body); err != nil {
		return nil, err
	}
	return out, nil
}

func decodeJSON(body []byte, v any, depth int) error {
	if err := checkDepth(body, depth); err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return errNull
	}
	return json.Unmarshal(body, v)
}

// CallBytes makes a call whose result is neither JSON nor a stream, and
// returns the answer as it is.
func CallBytes(ctx context.Context, d *Doer, op *Operation, req *Request, opts ...CallOption) (*Response, error) {
	var out *Response
	err := d.Call(ctx, op, req, func(r *Response) error { out = r; return nil }, opts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// CallStream makes a call whose result is handed over unread.
func CallStream(ctx context.Context, d *Doer, op *Operation, req *Request, opts ...CallOption) (*Stream, error) {
	c, err := d.newCall(ctx, op, req, opts)
	if err != nil {
		return nil, err
	}
	c.streams = true
	return c.stream()
}

// stream makes the call, and hands its answer over unread.
func (c *call) stream() (*Stream, error) {
	c.run()
	if err := c.conclude(c.config.info); err != nil {
		return nil, err
	}
	a, r := c.judged, c.redactor()
	return &Stream{
		ReadCloser: a.stream, Header: r.header(a.header),
		ContentType: r.text(a.header.Get("Content-Type")), Size: a.stream.size,
		limits: c.doer.config.limits,
	}, nil
}
