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

func decodeJSON(body []byte, v any) error {
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
	c.run()
	if err := c.conclude(c.config.info); err != nil {
		return nil, err
	}
	a := c.judged
	return &Stream{
		ReadCloser: a.stream, Header: a.header.Clone(),
		ContentType: a.header.Get("Content-Type"), Size: a.stream.size,
	}, nil
}
