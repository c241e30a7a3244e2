package mockcarrier

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// basePath is where the API begins.
const basePath = "/v1"

// router finds the operation of a request in the table that is generated from
// the spec.
type router []route

type route struct {
	operation *resilience.Operation
	segments  []string
}

func newRouter(operations []*resilience.Operation) router {
	var rt router
	for _, op := range operations {
		rt = append(rt, route{op, strings.Split(op.Path, "/")})
	}
	// Literal segments go before parameters.
	slices.SortStableFunc(rt, func(a, b route) int {
		return strings.Count(a.operation.Path, "{") - strings.Count(b.operation.Path, "{")
	})
	return rt
}

// match returns the operation and its path parameters, by name. Without an
// operation it returns the methods that the path has, if any.
func (rt router) match(r *http.Request) (*resilience.Operation, map[string]string, []string) {
	escaped := r.URL.EscapedPath()
	if escaped == tokenPath || escaped == basePath+tokenPath {
		if r.Method == http.MethodPost {
			return tokenOperation, nil, nil
		}
		return nil, nil, []string{http.MethodPost}
	}
	path, ok := strings.CutPrefix(escaped, basePath)
	if !ok {
		return nil, nil, nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	segments := strings.Split(path, "/")
	var methods []string
	for _, candidate := range rt {
		params, ok := candidate.params(segments)
		switch {
		case !ok:
		case candidate.operation.Method == method:
			return candidate.operation, params, nil
		default:
			methods = append(methods, candidate.operation.Method)
		}
	}
	return nil, nil, methods
}

func (rt route) params(segments []string) (map[string]string, bool) {
	if len(segments) != len(rt.segments) {
		return nil, false
	}
	var params map[string]string
	for i, want := range rt.segments {
		got, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		name, isParam := strings.CutPrefix(want, "{")
		switch {
		case isParam && got != "":
			if params == nil {
				params = make(map[string]string, 1)
			}
			params[strings.TrimSuffix(name, "}")] = got
		case isParam || got != want:
			return nil, false
		}
	}
	return params, true
}

// unmatched refuses a request that no operation is for, with what may be wrong.
func (c *Carrier) unmatched(r *http.Request, methods []string) *refusal {
	path := r.URL.Path
	if len(methods) > 0 {
		return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed",
			"%s is not for %s.", path, r.Method).with("Allow", strings.Join(methods, ", "))
	}
	refused := refuse(http.StatusNotFound, "not_found", "Not found", "The API has no %s.", path)
	if rest, ok := strings.CutPrefix(path, basePath+basePath); ok && (rest == "" || rest[0] == '/') {
		refused.detail += " The base URL has " + basePath + " already: add only what comes behind it, such as /status."
	} else if path != basePath && !strings.HasPrefix(path, basePath+"/") {
		refused.detail += " It begins at " + basePath + "."
	}
	return refused
}

// nearest returns the operation whose method and path differ least from those
// given, for people who look for their mistake.
func (rt router) nearest(method, path string) string {
	for strings.HasPrefix(path, basePath+"/") {
		path = strings.TrimPrefix(path, basePath)
	}
	got := strings.Split(path, "/")
	best, least := "", 0
	for _, candidate := range rt {
		distance := 100 * abs(len(got)-len(candidate.segments))
		if method != candidate.operation.Method {
			distance += 100
		}
		for i := range min(len(got), len(candidate.segments)) {
			if want := candidate.segments[i]; want != got[i] && !strings.HasPrefix(want, "{") {
				distance += 200 - 100*sharedPrefix(want, got[i])/max(1, len(want))
			}
		}
		if best == "" || distance < least {
			best = candidate.operation.ID + ": " + candidate.operation.Method + " " + basePath + candidate.operation.Path
			least = distance
		}
	}
	return best
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func abs(n int) int { return max(n, -n) }
