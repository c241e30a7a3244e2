package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"

	"github.com/carrier-sdk/carrier-go/carrier"
)

const requestIDHeader = "X-Request-Id"

// visit is what the log says of a request on every line.
type visit struct {
	id   string
	user string // "" until it is known
}

type visitKey struct{}

// visitOf returns the visit of a request's context; outside of a request, one
// without an id.
func visitOf(ctx context.Context) *visit {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{}
}

// saneID keeps what a client could smuggle into logs and headers out.
var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// withRequestID gives each request an id, which is the client's where it sent a
// sane one, and tells it back.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{id: r.Header.Get(requestIDHeader)}
		if !saneID.MatchString(v.id) {
			v.id = rand.Text()
		}
		w.Header().Set(requestIDHeader, v.id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
	})
}

// passID hands the request's id on to the carrier, so that its support can find
// the call too.
func passID(ctx context.Context) carrier.CallOption {
	return carrier.WithHeader(requestIDHeader, visitOf(ctx).id)
}
