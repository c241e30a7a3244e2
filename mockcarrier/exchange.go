package mockcarrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

// exchange is one request and its answer.
type exchange struct {
	carrier   *Carrier
	w         http.ResponseWriter
	r         *http.Request
	began     time.Time
	entry     *Request
	requestID string

	operation *resilience.Operation // nil if none matches
	params    map[string]string     // of the path
	methods   []string              // those that the path has, if no operation matches

	body   []byte
	key    string // the idempotency key, if it is well formed
	keyErr error

	account  string
	quota    *quota // nil until it was taken
	replayed bool
	executed bool // rather than replayed or refused
}

// begin notes that a request has come.
func (c *Carrier) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{carrier: c, w: w, r: r, began: time.Now()}
	x.requestID = requestID(r)
	if x.requestID == "" {
		x.requestID = c.newRequestID()
	}
	x.operation, x.params, x.methods = c.router.match(r)
	note := Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header,
		RequestID: x.requestID, At: c.now(),
	}
	if x.operation != nil {
		note.Operation = x.operation.ID
		if header := x.operation.KeyHeader; header != "" {
			x.key, x.keyErr = idempotency.ParseKey(r.Header.Values(header), c.config.strictKeys)
			note.Key = x.key
		}
	}
	if conn := connectionOf(r); conn != nil {
		note.Connection, note.Nth = conn.id, int(conn.requests.Add(1))
	}
	x.entry = c.journal.begin(note)
	return x
}

// serve is the way of a request through the carrier:
//
//	gateway   route, body, faults before processing
//	account   credentials, quota
//	key       replayed, in progress, reused, or new
//	operation faults during processing, the generated handler
//	gateway   faults after processing, the answer
func (x *exchange) serve() {
	if x.operation == nil {
		x.deliver(x.unmatched().answer(x.requestID))
		return
	}
	if r := x.readBody(); r != nil {
		x.deliver(r.answer(x.requestID))
		return
	}
	fault, struck := x.carrier.pickFault(x)
	if struck {
		x.carrier.journal.update(x.entry, func(r *Request) { r.Fault = fault.String() })
	}
	if latency := x.carrier.config.latency; latency > 0 {
		x.wait(latency)
	}
	if struck && fault.phase() == PhaseBefore && x.strike(fault, answer{}) {
		return
	}
	a := x.process(fault, struck && fault.phase() == PhaseDuring)
	late := fault.phase() == PhaseAfter || fault.phase() == PhaseDuring && !x.executed
	if struck && late && x.strike(fault, a) {
		return
	}
	x.deliver(a)
}

// end closes the journal's entry. A panic that is a fault's, or that of a
// handler, ends the connection.
func (x *exchange) end() {
	took := time.Since(x.began)
	x.carrier.journal.update(x.entry, func(r *Request) { r.Duration = took })
	cause := recover()
	if log := x.carrier.config.logger; log.Enabled(x.r.Context(), slog.LevelInfo) {
		e := x.carrier.journal.copyOf(x.entry)
		log.LogAttrs(x.r.Context(), slog.LevelInfo, "request",
			slog.String("operation", e.Operation), slog.String("method", e.Method), slog.String("path", e.Path),
			slog.Int("status", e.Status), slog.Bool("replayed", e.Replayed), slog.String("fault", e.Fault),
			slog.String("requestId", e.RequestID), slog.Duration("took", took))
	}
	if cause != nil {
		if cause != http.ErrAbortHandler {
			x.carrier.bug(x.r, cause)
		}
		panic(http.ErrAbortHandler)
	}
}

// note writes into the journal what is about to be answered, so that whoever
// has the answer finds it there.
func (x *exchange) note(status int) {
	took := time.Since(x.began)
	x.carrier.journal.update(x.entry, func(r *Request) {
		r.Status, r.Replayed, r.Duration = status, x.replayed, took
	})
}

func (x *exchange) deliver(a answer) {
	x.note(a.Status)
	x.send(a)
}

func (x *exchange) unmatched() *refusal {
	if len(x.methods) == 0 {
		return refuse(http.StatusNotFound, "not_found", "Not found", "The API has no %s.", x.r.URL.Path)
	}
	return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed",
		"%s is not for %s.", x.r.URL.Path, x.r.Method).with("Allow", strings.Join(x.methods, ", "))
}

func (x *exchange) readBody() *refusal {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	x.body = body
	kept := slices.Clone(body[:min(len(body), journalBodyLimit)])
	x.carrier.journal.update(x.entry, func(r *Request) { r.Body, r.BodySize = kept, len(body) })
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "body_too_large", "Body too large",
			"A body has at most %d bytes.", maxBody)
	case err != nil:
		panic(http.ErrAbortHandler) // the client has gone
	}
	return nil
}

// process returns the answer that the carrier has for the request.
func (x *exchange) process(f Fault, during bool) answer {
	account, r := x.carrier.authenticate(x.r)
	if r != nil {
		return r.answer(x.requestID)
	}
	x.account = account
	x.quota = x.carrier.quotas.take(account, x.carrier.now())
	if x.quota.exceeded {
		return refuse(http.StatusTooManyRequests, "rate_limited", "Too many requests", "%d requests in %v are allowed.",
			x.quota.limit, x.quota.window).with("Retry-After", strconv.Itoa(seconds(x.quota.renews))).answer(x.requestID)
	}
	if x.operation.KeyHeader == "" {
		return x.execute(f, during)
	}
	return x.once(func() answer { return x.execute(f, during) })
}

// once makes sure that a keyed request is executed once.
func (x *exchange) once(execute func() answer) answer {
	header := x.operation.KeyHeader
	switch {
	case errors.Is(x.keyErr, idempotency.ErrMissing):
		return refuse(http.StatusBadRequest, "idempotency_key_missing", header+" is missing",
			"This operation needs the header %s.", header).answer(x.requestID)
	case x.keyErr != nil:
		return refuse(http.StatusBadRequest, "idempotency_key_malformed", header+" is malformed",
			"The header %s has 1 to 255 printable ASCII characters, on one line.", header).answer(x.requestID)
	}
	verdict, stored, slot := x.carrier.keys.Begin(x.account, x.key,
		idempotency.FingerprintOf(x.r.Method, x.r.URL.Path, x.body))
	switch verdict {
	case idempotency.Replay:
		x.replayed = true
		a := *stored
		a.Header = a.Header.Clone()
		a.Header.Set("Idempotency-Replayed", "true")
		return a
	case idempotency.InProgress:
		return refuse(http.StatusConflict, "idempotency_in_progress", "A request is outstanding for this "+header,
			"A request with this %s is still being worked on.", header).with("Retry-After", "1").answer(x.requestID)
	case idempotency.Reused:
		return refuse(http.StatusUnprocessableEntity, "idempotency_key_reused", header+" is already used",
			"This %s was used with another request.", header).answer(x.requestID)
	}
	defer slot.Release() // if it panics
	a := execute()
	slot.Finish(a)
	return a
}

// execute runs the operation, or what a fault has in its place.
func (x *exchange) execute(f Fault, during bool) answer {
	x.executed = true
	if during {
		switch f.Kind {
		case KindDelay:
			x.wait(f.Wait)
		case KindStall:
			x.stall()
		default:
			return f.answer(x.requestID)
		}
	}
	rec := &recorder{header: http.Header{}}
	r := x.r.WithContext(context.WithValue(x.r.Context(), exchangeKey{}, x))
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	x.carrier.api.ServeHTTP(rec, r)
	return x.uniform(rec.answer())
}

// uniform turns an error that is no problem details, such as that of an
// unsatisfiable range, into one that is.
func (x *exchange) uniform(a answer) answer {
	if a.Status < http.StatusBadRequest || a.Header.Get("Content-Type") == problemType {
		return a
	}
	r := refuseStatus(a.Status)
	if ranges := a.Header.Get("Content-Range"); ranges != "" {
		r.with("Content-Range", ranges)
	}
	return r.answer(x.requestID)
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// subject says what the request is about.
func (x *exchange) subject() subject {
	s := subject{operation: x.operation.ID, key: x.key}
	add := func(list *[]string, values ...string) {
		for _, v := range values {
			if v != "" {
				*list = append(*list, v)
			}
		}
	}
	var body struct {
		Reference       string
		TrackingNumbers []string
	}
	if len(x.body) > 0 && json.Unmarshal(x.body, &body) == nil {
		add(&s.references, body.Reference)
		add(&s.trackingNumbers, body.TrackingNumbers...)
	}
	add(&s.references, x.r.URL.Query().Get("reference"))
	add(&s.trackingNumbers, x.params["trackingNumber"])
	if found, ok := x.carrier.world.find(x.params["shipmentId"], x.params["trackingNumber"]); ok {
		add(&s.references, found.request.Reference)
		add(&s.trackingNumbers, found.number)
	}
	return s
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

func (r *recorder) answer() answer {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.header.Del("Content-Length") // it is set when the answer is sent
	return answer{Status: r.status, Header: r.header, Body: r.body.Bytes()}
}
