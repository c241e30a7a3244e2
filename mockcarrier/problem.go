package mockcarrier

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

// answer is a whole answer, ready to be sent, stored or spoilt.
type answer = idempotency.Answer

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// refusal is an error answer: what the problem details say, and headers.
type refusal struct {
	status int
	code   string
	title  string
	detail string
	fields resilience.FieldErrors
	header http.Header
}

// refuse makes a refusal; the detail is a format.
func refuse(status int, code, title, detail string, args ...any) *refusal {
	return &refusal{status: status, code: code, title: title, detail: fmt.Sprintf(detail, args...)}
}

func (r *refusal) with(name, value string) *refusal {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
	return r
}

// coded replaces the code, unless the new one is empty.
func (r *refusal) coded(code string) *refusal {
	if code != "" {
		r.code = code
	}
	return r
}

// about says which parameter or member breaks which rule.
func (r *refusal) about(pointer, rule, message string) *refusal {
	r.fields.Add(pointer, rule, message)
	return r
}

func (r *refusal) Error() string { return r.detail }

// problem returns the problem details, for the request of that id if there is one.
func (r *refusal) problem(requestID string) api.Problem {
	p := api.Problem{
		Type:      "https://developer.carrier.example/problems/" + r.code,
		Title:     r.title,
		Status:    r.status,
		Detail:    r.detail,
		Code:      r.code,
		RequestID: requestID,
	}
	if requestID != "" {
		p.Instance = basePath + "/requests/" + requestID
	}
	for _, f := range r.fields {
		p.Errors = append(p.Errors, api.FieldProblem{Pointer: f.Pointer, Code: f.Rule, Message: f.Message})
	}
	return p
}

func (r *refusal) answer(requestID string) answer {
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", problemType)
	return answer{Status: r.status, Header: header, Body: encode(r.problem(requestID))}
}

// invalid refuses a request for what is wrong with its members.
func invalid(fields resilience.FieldErrors) *refusal {
	count := fmt.Sprintf("%d members of the request are", len(fields))
	if len(fields) == 1 {
		count = "1 member of the request is"
	}
	r := refuse(http.StatusUnprocessableEntity, "validation_failed", "Validation failed", "%s not valid.", count)
	r.fields = fields
	return r
}

// malformed refuses a parameter.
func malformed(name, rule, message string) *refusal {
	return refuse(http.StatusBadRequest, "malformed_parameter", "Malformed parameter", "%s %s.", name, message).
		about(name, rule, message)
}

// usual has the codes and details of the statuses that a fault gives.
var usual = map[int]struct{ code, detail string }{
	http.StatusBadRequest:          {"bad_request", "The request cannot be read."},
	http.StatusUnauthorized:        {"invalid_api_key", "The key in x-api-key is not known."},
	http.StatusForbidden:           {"not_entitled", "Your account may not use this operation."},
	http.StatusNotFound:            {"not_found", "There is no such thing."},
	http.StatusConflict:            {"conflict", "The request does not fit the state of things."},
	http.StatusGone:                {"gone", "It is no longer kept."},
	http.StatusUnprocessableEntity: {"validation_failed", "The request breaks a rule."},
	http.StatusTooManyRequests:     {"rate_limited", "The quota is used up."},
	http.StatusInternalServerError: {"internal_error", "The request could not be completed."},
	http.StatusBadGateway:          {"bad_gateway", "The carrier gave no proper answer to the gateway."},
	http.StatusServiceUnavailable:  {"service_unavailable", "The API is down for maintenance."},
	http.StatusGatewayTimeout:      {"gateway_timeout", "The carrier did not answer the gateway in time."},
}

// refuseStatus makes the refusal that is usual for a status.
func refuseStatus(status int) *refusal {
	title := http.StatusText(status)
	if title == "" {
		title = fmt.Sprintf("Status %d", status)
	}
	u, ok := usual[status]
	if !ok {
		u.code, u.detail = fmt.Sprintf("status_%d", status), title+"."
	}
	return refuse(status, u.code, title, "%s", u.detail)
}

// encode returns the JSON of a model, or of the like.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // they always encode
	}
	return b
}
