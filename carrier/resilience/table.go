package resilience

import (
	"net/http"
	"slices"
	"strings"
)

// operation is an Operation with what the pipeline needs on each call worked out.
type operation struct {
	*Operation
	safety    Safety
	keyHeader string // canonical
	accept    []string
	segments  []string
	literals  []*operation // operations of literal paths that a value of ours could turn this path into
}

// keyed reports whether calls carry an idempotency key.
func (op *operation) keyed() bool { return op.keyHeader != "" }

func compile(o *Operation) *operation {
	op := &operation{Operation: o, safety: o.Safety, segments: split(o.Path)}
	if op.safety == SafetyByMethod {
		op.safety = safetyOf(o.Method, o.KeyHeader != "")
	}
	if op.safety == SafetyKeyed && o.KeyHeader != "" {
		op.keyHeader = http.CanonicalHeaderKey(o.KeyHeader)
	} else if op.safety == SafetyKeyed {
		op.safety = SafetyUnsafe // keyed without a header to carry the key
	}
	var types []string
	for _, s := range o.Success {
		for _, t := range s.ContentTypes {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if types != nil {
		op.accept = []string{strings.Join(append(types, "application/problem+json"), ", ")}
	} else {
		op.accept = []string{"application/json, application/problem+json"}
	}
	return op
}

func safetyOf(method string, key bool) Safety {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return SafetyRead
	case http.MethodPut, http.MethodDelete:
		return SafetyIdempotent
	}
	if key {
		return SafetyKeyed
	}
	return SafetyUnsafe
}

// success returns what the spec has for a 2xx status, and nil for one that it
// does not have. An operation that documents none takes every 2xx.
func (op *operation) success(status int) *Success {
	if status < 200 || status > 299 {
		return nil
	}
	if len(op.Success) == 0 {
		return &anySuccess
	}
	for i := range op.Success {
		if op.Success[i].Status == status {
			return &op.Success[i]
		}
	}
	for i := range op.Success {
		if op.Success[i].Status == 0 {
			return &op.Success[i]
		}
	}
	return nil
}

var anySuccess Success

// table finds the operation of a request.
type table struct {
	all   []*operation
	known map[*Operation]*operation
}

func newTable(ops []*Operation) *table {
	t := &table{known: make(map[*Operation]*operation, len(ops))}
	for _, o := range ops {
		if t.known[o] == nil {
			op := compile(o)
			t.known[o] = op
			t.all = append(t.all, op)
		}
	}
	for _, op := range t.all {
		for _, other := range t.all {
			if moreLiteral(other.segments, op.segments) {
				op.literals = append(op.literals, other)
			}
		}
	}
	return t
}

// of returns the compiled form of o, also for one that is not in the table.
func (t *table) of(o *Operation) *operation {
	if op := t.known[o]; op != nil {
		return op
	}
	return compile(o)
}

// find returns the operation for a method and a path below the base URL; the
// more literal template wins. It returns nil if none matches.
func (t *table) find(method, path string) *operation {
	segments := split(path)
	var best *operation
	for _, op := range t.all {
		if op.Method == method && matches(op.segments, segments) &&
			(best == nil || moreLiteral(op.segments, best.segments)) {
			best = op
		}
	}
	return best
}

// findSuffix is find for a path whose base is not known.
func (t *table) findSuffix(method, path string) *operation {
	segments := split(path)
	var best *operation
	for _, op := range t.all {
		if n := len(segments) - len(op.segments); n >= 0 && op.Method == method && matches(op.segments, segments[n:]) &&
			(best == nil || len(op.segments) > len(best.segments) || moreLiteral(op.segments, best.segments)) {
			best = op
		}
	}
	return best
}

// shadowed reports whether path, meant for op, would be taken for another
// operation whose template has a literal where op's has a parameter.
func (op *operation) shadowed(path string) bool {
	for _, other := range op.literals {
		if matchesPath(other.segments, path) {
			return true
		}
	}
	return false
}

// matchesPath is matches for a path that is not split, since it is asked on
// every call.
func matchesPath(template []string, path string) bool {
	path = strings.Trim(path, "/")
	for i, s := range template {
		segment, rest, more := strings.Cut(path, "/")
		if !fills(s, segment) || more != (i < len(template)-1) {
			return false
		}
		path = rest
	}
	return true
}

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

func isParameter(segment string) bool { return strings.Contains(segment, "{") }

func matches(template, segments []string) bool {
	if len(template) != len(segments) {
		return false
	}
	for i, s := range template {
		if !fills(s, segments[i]) {
			return false
		}
	}
	return true
}

// fills reports whether a segment can stand where a template's does.
func fills(template, segment string) bool {
	if isParameter(template) {
		return segment != ""
	}
	return segment == template
}

// moreLiteral reports whether a matches only paths that b matches as well, and not all of them.
func moreLiteral(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	more := false
	for i := range a {
		switch {
		case a[i] == b[i], isParameter(a[i]) && isParameter(b[i]):
		case isParameter(b[i]):
			more = true
		default:
			return false
		}
	}
	return more
}
