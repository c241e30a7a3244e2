package spectest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

const problemJSON = "application/problem+json"

// undocumented returns everything that a newcomer would miss in an operation.
func undocumented(op operation) []string {
	var findings []string
	add := func(format string, args ...any) {
		findings = append(findings, op.String()+": "+fmt.Sprintf(format, args...))
	}

	if op.OperationID == "" {
		add("has no operationId")
	}
	if op.Summary == "" || strings.HasSuffix(op.Summary, ".") {
		add("needs a summary, without a full stop")
	}
	if len(op.Description) < 40 || !strings.HasSuffix(op.Description, ".") {
		add("needs a description in whole sentences")
	}
	if len(op.Tags) != 1 {
		add("needs exactly one tag")
	}
	for _, p := range op.Parameters {
		if p.Value.Description == "" || p.Value.Example == nil && len(p.Value.Examples) == 0 {
			add("parameter %s needs a description and an example", p.Value.Name)
		}
	}
	if op.RequestBody != nil {
		if op.RequestBody.Value.Description == "" {
			add("the request body needs a description")
		}
		for mediaType, m := range op.RequestBody.Value.Content {
			if !hasExample(m) {
				add("the request has no example of %s", mediaType)
			}
		}
	}

	success := false
	for status, r := range op.Responses.Map() {
		for _, header := range []string{"X-Request-Id", "RateLimit", "RateLimit-Policy"} {
			if r.Value.Headers[header] == nil {
				add("%s has no header %s", status, header)
			}
		}
		switch {
		case status[0] == '2':
			success = true
			for mediaType, m := range r.Value.Content {
				if !hasExample(m) {
					add("%s has no example of %s", status, mediaType)
				}
			}
		case status == "304":
			if len(r.Value.Content) > 0 {
				add("304 has content")
			}
		default:
			findings = append(findings, wrongError(op, status, r.Value)...)
		}
	}
	if !success {
		add("has no success")
	}
	for _, status := range expectedErrors(op) {
		if op.Responses.Value(status) == nil {
			add("has no %s", status)
		}
	}
	return append(findings, wrongExtensions(op)...)
}

func hasExample(m *openapi3.MediaType) bool { return m.Example != nil || len(m.Examples) > 0 }

// expectedErrors are the answers that an operation of its shape can give.
func expectedErrors(op operation) []string {
	statuses := []string{"401", "403", "429", "500", "503", "default"}
	if len(op.Parameters) > 0 || op.RequestBody != nil {
		statuses = append(statuses, "400")
	}
	if op.Parameters.GetByInAndName("header", "Idempotency-Key") != nil {
		statuses = append(statuses, "409")
	}
	if op.RequestBody != nil {
		statuses = append(statuses, "422")
	}
	if slices.ContainsFunc(op.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == "path" }) {
		statuses = append(statuses, "404")
	}
	return statuses
}

// wrongError returns what is wrong with an error answer.
func wrongError(op operation, status string, r *openapi3.Response) []string {
	var findings []string
	add := func(format string, args ...any) {
		findings = append(findings, op.String()+" "+status+": "+fmt.Sprintf(format, args...))
	}
	m := r.Content[problemJSON]
	if m == nil || len(r.Content) != 1 {
		add("must be %s and nothing else", problemJSON)
		return findings
	}
	if m.Schema == nil || m.Schema.Ref != "#/components/schemas/Problem" {
		add("must have the schema Problem")
	}
	if len(m.Examples) == 0 {
		add("has no example")
	}
	for name, e := range m.Examples {
		problem, _ := e.Value.Value.(map[string]any)
		for _, member := range []string{"type", "title", "detail", "instance", "code", "requestId"} {
			if s, _ := problem[member].(string); s == "" {
				add("example %s has no %s", name, member)
			}
		}
		if got := fmt.Sprint(problem["status"]); status != "default" && got != status {
			add("example %s has the status %s", name, got)
		}
	}
	if retry := r.Headers["Retry-After"] != nil; !retry && (status == "429" || status == "503") {
		add("has no header Retry-After")
	}
	return findings
}

// extensions are those that the spec's head documents, with what they may hold.
var extensions = map[string]func(any) bool{
	"x-safety": func(v any) bool {
		s, _ := v.(string)
		return slices.Contains([]string{"read", "idempotent", "keyed", "unsafe"}, s)
	},
	"x-group":                  isString,
	"x-timeout":                isDuration,
	"x-attempt-timeout":        isDuration,
	"x-idempotency-ttl":        isDuration,
	"x-idempotency-key-header": isString,
	"x-stream":                 func(v any) bool { _, ok := v.(bool); return ok },
	"x-max-body":               func(v any) bool { n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64); return err == nil && n > 0 },
	"x-in-progress-codes":      isStrings,
	"x-key-reused-codes":       isStrings,
}

func isString(v any) bool { s, _ := v.(string); return s != "" }

func isDuration(v any) bool {
	s, _ := v.(string)
	d, err := time.ParseDuration(s)
	return err == nil && d > 0
}

func isStrings(v any) bool {
	list, _ := v.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool { return !isString(e) })
}

// wrongExtensions finds extensions that nobody reads, values that nobody
// understands, and safety that the rest of the operation contradicts.
func wrongExtensions(op operation) []string {
	var findings []string
	add := func(format string, args ...any) {
		findings = append(findings, op.String()+": "+fmt.Sprintf(format, args...))
	}
	for name, value := range op.Extensions {
		switch ok := extensions[name]; {
		case ok == nil:
			add("%s is no extension that the spec documents", name)
		case !ok(value):
			add("%s has a value that nobody reads: %v", name, value)
		}
	}
	for _, name := range []string{"x-safety", "x-group"} {
		if op.Extensions[name] == nil {
			add("needs %s, so that nobody has to know the defaults", name)
		}
	}
	if total, attempt := op.Extensions["x-timeout"], op.Extensions["x-attempt-timeout"]; isDuration(total) && isDuration(attempt) {
		total, _ := time.ParseDuration(total.(string))
		attempt, _ := time.ParseDuration(attempt.(string))
		if attempt > total {
			add("x-attempt-timeout is longer than x-timeout")
		}
	}
	key := op.Parameters.GetByInAndName("header", "Idempotency-Key")
	if keyed := op.Extensions["x-safety"] == "keyed"; keyed != (key != nil) {
		add("x-safety is keyed if, and only if, there is a header parameter Idempotency-Key")
	}
	if key != nil && !key.Required {
		add("Idempotency-Key must be required")
	}
	return findings
}

func TestEveryOperationIsDocumented(t *testing.T) {
	for _, op := range operations(load(t)) {
		report(t, undocumented(op))
	}
}

func TestAnUndocumentedOperationIsFound(t *testing.T) {
	tests := map[string]func(doc *openapi3.T, op operation){
		"has no operationId":              func(_ *openapi3.T, op operation) { op.OperationID = "" },
		"needs a summary":                 func(_ *openapi3.T, op operation) { op.Summary = "" },
		"needs a description":             func(_ *openapi3.T, op operation) { op.Description = "" },
		"parameter Idempotency-Key needs": func(_ *openapi3.T, op operation) { op.Parameters[0].Value.Example = nil },
		"request has no example":          func(_ *openapi3.T, op operation) { op.RequestBody.Value.Content["application/json"].Examples = nil },
		"201 has no example": func(_ *openapi3.T, op operation) {
			op.Responses.Value("201").Value.Content["application/json"].Examples = nil
		},
		"201 has no header X-Request-Id":    func(_ *openapi3.T, op operation) { delete(op.Responses.Value("201").Value.Headers, "X-Request-Id") },
		"has no success":                    func(_ *openapi3.T, op operation) { op.Responses.Delete("201"); op.Responses.Delete("202") },
		"has no 401":                        func(_ *openapi3.T, op operation) { op.Responses.Delete("401") },
		"has no 409":                        func(_ *openapi3.T, op operation) { op.Responses.Delete("409") },
		"has no 429":                        func(_ *openapi3.T, op operation) { op.Responses.Delete("429") },
		"has no 503":                        func(_ *openapi3.T, op operation) { op.Responses.Delete("503") },
		"has no default":                    func(_ *openapi3.T, op operation) { op.Responses.Delete("default") },
		"429: has no header Retry-After":    func(_ *openapi3.T, op operation) { delete(op.Responses.Value("429").Value.Headers, "Retry-After") },
		"401: example invalidKey has no":    func(doc *openapi3.T, _ operation) { delete(problemExample(doc, "Unauthorized"), "code") },
		"example invalidKey has the status": func(doc *openapi3.T, _ operation) { problemExample(doc, "Unauthorized")["status"] = 403.0 },
		"401: must be application/problem": func(_ *openapi3.T, op operation) {
			op.Responses.Value("401").Value.Content["text/html"] = openapi3.NewMediaType()
		},
		"needs x-safety":                    func(_ *openapi3.T, op operation) { delete(op.Extensions, "x-safety") },
		"x-safety has a value":              func(_ *openapi3.T, op operation) { op.Extensions["x-safety"] = "safe" },
		"x-saftey is no extension":          func(_ *openapi3.T, op operation) { op.Extensions["x-saftey"] = "read" },
		"x-timeout has a value":             func(_ *openapi3.T, op operation) { op.Extensions["x-timeout"] = 60 },
		"x-attempt-timeout is longer":       func(_ *openapi3.T, op operation) { op.Extensions["x-timeout"] = "1s" },
		"x-safety is keyed if, and only if": func(_ *openapi3.T, op operation) { op.Extensions["x-safety"] = "read" },
		"Idempotency-Key must be required":  func(_ *openapi3.T, op operation) { op.Parameters[0].Value.Required = false },
	}
	for want, spoil := range tests {
		t.Run(want, func(t *testing.T) {
			doc := load(t)
			op := find(t, doc, "createShipment")
			spoil(doc, op)
			found := undocumented(op)
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("not found; got %q", found)
			}
		})
	}
}
