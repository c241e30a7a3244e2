package resilience

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Problem is what an error answer said of itself: problem details (RFC 9457),
// or one of the usual shapes of other carriers' JSON errors, read for code and
// message. It is read leniently: a member of a wrong type is as if absent.
type Problem struct {
	// Type identifies the kind of problem; "about:blank" where the answer has none.
	// A relative reference is resolved against the request's URL. It is not dereferenced.
	Type string
	// Title is a short summary that is the same for every problem of the type.
	Title string
	// Status is the status that the body claims; 0 if none. The HTTP status wins.
	Status int
	// Detail is for people. Do not parse it.
	Detail string
	// Instance identifies this occurrence.
	Instance string
	// Code is the carrier's own word for it: "tracking_not_found".
	Code string
	// RequestID is the carrier's id of the request, where the body has one.
	RequestID string
	// Errors are the members that were wrong.
	Errors []ProblemError
	// Extensions has every other member of the body, as it came.
	Extensions map[string]json.RawMessage
}

// ProblemError is one member of a request that was refused.
type ProblemError struct {
	// Pointer is a JSON pointer (RFC 6901) into the request.
	Pointer string
	// Code is the carrier's word for what is wrong.
	Code string
	// Message is for people.
	Message string
}

const maxProblemBytes = 64 << 10

// parseProblem reads the body of an error answer, and returns nil if it says
// nothing that could be understood. It does not keep secrets that r knows.
func parseProblem(contentType string, body []byte, base *url.URL, r redactor) *Problem {
	if len(body) > maxProblemBytes || !isJSON(contentType) {
		return nil
	}
	members := object([]byte(r.text(string(body))))
	if members == nil {
		return nil
	}
	p := &Problem{
		Type:      text(members, "type"),
		Title:     text(members, "title"),
		Status:    number(members, "status"),
		Detail:    text(members, "detail"),
		Instance:  text(members, "instance"),
		Code:      text(members, "code"),
		RequestID: text(members, "requestId"),
		Errors:    problemErrors(members["errors"]),
	}
	for _, known := range []string{"type", "title", "status", "detail", "instance", "code", "requestId"} {
		delete(members, known)
	}
	if len(members) > 0 {
		p.Extensions = members
	}
	if !isProblem(contentType) && p.Code == "" && p.Title == "" {
		p.foreign(members)
	}
	switch {
	case p.Type == "":
		p.Type = "about:blank"
	case base != nil:
		if u, err := base.Parse(p.Type); err == nil {
			p.Type = u.String()
		}
	}
	r.problem(p)
	return p
}

// clone returns a copy that shares nothing with p.
func (p *Problem) clone() *Problem {
	if p == nil {
		return nil
	}
	c := *p
	c.Errors = slices.Clone(p.Errors)
	c.Extensions = maps.Clone(p.Extensions)
	for name, raw := range c.Extensions {
		c.Extensions[name] = bytes.Clone(raw)
	}
	return &c
}

// foreign looks for code and message where other carriers put them: in an
// object called error, response, fault or detail, in the first element of a
// list called errors or messages, and under several names.
func (p *Problem) foreign(members map[string]json.RawMessage) {
	for depth := 0; members != nil && depth < 4; depth++ {
		if p.Code == "" {
			p.Code = text(members, "code", "error_code", "errorcode", "errorCode", "error_type")
		}
		if p.Detail == "" {
			p.Detail = text(members, "message", "detail", "faultstring", "description", "error_description", "error")
		}
		if p.RequestID == "" {
			p.RequestID = text(members, "request_id", "transactionId", "requestId")
		}
		if p.Title == "" {
			p.Title = text(members, "title")
		}
		members = inner(members)
	}
}

// inner returns the next object to look into, or nil.
func inner(members map[string]json.RawMessage) map[string]json.RawMessage {
	for _, name := range []string{"error", "response", "fault", "detail", "errors", "messages"} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		if next := object(raw); next != nil {
			return next
		}
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			if next := object(list[0]); next != nil {
				return next
			}
		}
	}
	return nil
}

func problemErrors(raw json.RawMessage) []ProblemError {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []ProblemError
	for _, item := range list {
		members := object(item)
		if members == nil {
			continue
		}
		e := ProblemError{
			Pointer: text(members, "pointer", "field_name", "field"),
			Code:    text(members, "code", "error_code"),
			Message: text(members, "message", "detail", "title"),
		}
		if source := object(members["source"]); source != nil && e.Pointer == "" {
			e.Pointer = text(source, "pointer", "parameter")
		}
		if e != (ProblemError{}) {
			out = append(out, e)
		}
	}
	return out
}

// object returns the members of a JSON object, or nil if raw is something else.
func object(raw []byte) map[string]json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// text returns the first of the named members that is a string (or a number,
// since codes come as both), and "" if none is.
func text(members map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		raw, ok := members[name]
		if !ok {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
		var n json.Number
		if strings.HasSuffix(strings.ToLower(name), "code") && json.Unmarshal(raw, &n) == nil && n != "" {
			return n.String()
		}
	}
	return ""
}

func number(members map[string]json.RawMessage, name string) int {
	n, err := strconv.Atoi(string(members[name]))
	if err != nil {
		return 0
	}
	return n
}

// isJSON holds for application/json and every media type with the suffix +json
// (RFC 6839), in any case and with any parameters.
func isJSON(contentType string) bool {
	mediaType := mediaType(contentType)
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

func isProblem(contentType string) bool {
	return mediaType(contentType) == "application/problem+json"
}

// mediaType returns the media type in lower case, without parameters.
func mediaType(contentType string) string {
	if i := strings.IndexByte(contentType, ';'); i >= 0 {
		contentType = contentType[:i]
	}
	contentType = strings.ToLower(strings.TrimSpace(contentType))
	if _, _, err := mime.ParseMediaType(contentType); err != nil {
		return ""
	}
	return contentType
}

// requestID is the carrier's id of a request, as it stands in the answer,
// without secrets that it may echo.
func requestID(h http.Header, p *Problem, r redactor) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Correlation-Id", "X-Correlation-Id", "Transid"} {
		if id := h.Get(name); id != "" {
			return printable(r.text(id), 128)
		}
	}
	if p != nil {
		return printable(p.RequestID, 128)
	}
	return ""
}
