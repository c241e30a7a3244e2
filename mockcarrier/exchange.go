package mockcarrier

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
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

	body    []byte
	key     string // the idempotency key, if it is well formed
	keyErr  error
	subject subject

	account  string
	quota    *quota // nil until it was taken
	replayed bool
	executed bool                  // rather than replayed or refused
	stream   func(io.Writer) error // writes the body of the answer, if it is to be sent as it is made
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
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Parameters: x.params,
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
//	gateway   route, body, expectations, faults before processing
//	account   credentials, quota
//	key       replayed, in progress, reused, or new
//	operation faults during processing, the generated handler
//	gateway   faults after processing, the answer
func (x *exchange) serve() {
	if x.operation == nil {
		x.deliver(x.carrier.unmatched(x.r, x.methods).answer(x.requestID))
		return
	}
	refused := x.readBody()
	x.subject = subject{
		operation: x.operation.ID, key: x.key, params: x.params, request: x.r, body: x.body, world: x.carrier.world,
	}
	x.carrier.noteArrival(x)
	if refused != nil {
		x.deliver(refused.answer(x.requestID))
		return
	}
	fault, struck := x.carrier.pickFault(&x.subject)
	struck = struck && fault.Kind != KindNone
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
func (x *exchange) note(a answer) {
	took := time.Since(x.began)
	var kept []byte
	if a.Status >= http.StatusBadRequest {
		kept = a.Body[:min(len(a.Body), journalAnswerLimit)]
	}
	x.carrier.journal.update(x.entry, func(r *Request) {
		r.Status, r.Replayed, r.Answer, r.Duration = a.Status, x.replayed, kept, took
	})
}

func (x *exchange) deliver(a answer) {
	x.note(a)
	if x.stream != nil {
		x.sendStream(a)
		return
	}
	x.send(a)
}

func (x *exchange) readBody() *refusal {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	x.body = body
	kept := publicBody(x.operation.ID, body)
	kept = slices.Clone(kept[:min(len(kept), journalBodyLimit)])
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
	if x.operation == tokenOperation {
		return x.execute(f, during)
	}
	account, r := x.carrier.authenticate(x.r)
	if r != nil {
		return r.answer(x.requestID)
	}
	x.account = account
	x.quota = x.carrier.quotas.take(account, x.carrier.now())
	if x.quota.exceeded {
		return refuse(http.StatusTooManyRequests, "rate_limited", "Too many requests", "%d requests in %v are allowed.",
			x.quota.limit, x.carrier.config.quotaWindow).with("Retry-After", strconv.Itoa(seconds(x.quota.renews))).answer(x.requestID)
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
			"This operation needs the header %s.", header).about(header, "required", "is required").answer(x.requestID)
	case x.keyErr != nil:
		const rule = "must have 1 to 255 printable ASCII characters, on one line"
		return refuse(http.StatusBadRequest, "idempotency_key_malformed", header+" is malformed",
			"The header %s %s.", header, rule).about(header, "pattern", rule).answer(x.requestID)
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
			return x.answerOf(f)
		}
	}
	if x.operation == tokenOperation {
		return x.carrier.issueToken(x.r, x.body)
	}
	rec := &recorder{header: make(http.Header, 8)}
	r := x.r.WithContext(context.WithValue(x.r.Context(), exchangeKey{}, x))
	if len(x.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	x.carrier.api.ServeHTTP(rec, r)
	if x.operation.Safety != resilience.SafetyRead {
		x.carrier.wake()
	}
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

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *recorder) answer() answer {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	delete(r.header, "Content-Length") // it is set when the answer is sent
	return answer{Status: r.status, Header: r.header, Body: r.body}
}
