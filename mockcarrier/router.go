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
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), basePath)
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

// nearest returns the operation whose method and path differ least from those
// given, for people who look for their mistake.
func (rt router) nearest(method, path string) string {
	got := strings.Split(strings.TrimPrefix(path, basePath), "/")
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
