package mockcarrier

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Matcher is one thing that a request must have, for an [Expectation] to count
// it or for a [Fault] to strike it. Make one with [Parameter], [Header] or
// [Body], or fill in the fields, which is also its form in JSON: In, Name, and
// one of the others.
type Matcher struct {
	// In is the part of the request that is looked at.
	In Part `json:"in"`
	// Name is that of the parameter or the header, or the JSON pointer (RFC
	// 6901) of a member of the body: "/parcels/0/weight". An empty pointer is
	// the whole body.
	Name string `json:"name,omitempty"`

	// Equals is the value: text for parameters and headers, and for the body
	// anything that can be encoded as JSON. Numbers are compared by their value.
	Equals any `json:"equals,omitempty"`
	// Includes is for the body: objects may have more members than are given
	// here, and arrays more elements.
	Includes any `json:"includes,omitempty"`
	// Matches is a regular expression (RE2) that some part of the value matches.
	Matches string `json:"matches,omitempty"`
	// OneOf has the values of which it is one.
	OneOf []any `json:"oneOf,omitempty"`
	// Present says whether there is a value, whichever.
	Present *bool `json:"present,omitempty"`
}

// Part is a part of a request.
type Part string

// The parts. A parameter is one of the path or of the query.
const (
	InParameter Part = "parameter"
	InHeader    Part = "header"
	InBody      Part = "body"
)

// Presence is what [Parameter], [Header] and [Body] take for "any value" and
// "no value".
type Presence bool

// Present stands for any value, and Absent for none.
const (
	Present Presence = true
	Absent  Presence = false
)

// Choice is made by [OneOf].
type Choice []any

// OneOf stands for one of several values, for [Parameter], [Header] and [Body].
func OneOf(values ...any) Choice { return slices.Clone(values) }

// Parameter matches a parameter of the path or the query, by its name in the
// spec: "trackingNumber". Of several values one must be the wanted one, which is
// compared as text, or is a [*regexp.Regexp], [Present], [Absent] or [OneOf].
func Parameter(name string, want any) Matcher { return matcher(InParameter, name, want) }

// Header matches a header, as [Parameter] does a parameter.
func Header(name string, want any) Matcher {
	return matcher(InHeader, http.CanonicalHeaderKey(name), want)
}

// Body matches a member of the body, by its JSON pointer: "/reference". The
// wanted value is anything that encodes to the JSON of the member, or a
// [*regexp.Regexp] for text, [Present], [Absent] or [OneOf]. The pointer "" is
// the whole body, which can then be a value of the request's own type.
func Body(pointer string, want any) Matcher { return matcher(InBody, pointer, want) }

// BodyIncludes matches a body that has at least the members of want, which
// encodes to JSON; others do not matter.
func BodyIncludes(want any) Matcher { return Matcher{In: InBody, Includes: want} }

func matcher(in Part, name string, want any) Matcher {
	m := Matcher{In: in, Name: name}
	switch want := want.(type) {
	case *regexp.Regexp:
		m.Matches = want.String()
	case Presence:
		m.Present = (*bool)(&want)
	case Choice:
		m.OneOf = want
	case nil:
		m.Equals = json.RawMessage("null")
	default:
		m.Equals = want
	}
	return m
}

// Validate says what is wrong with the matcher, or returns nil.
func (m Matcher) Validate() error {
	_, err := m.compile()
	return err
}

// criterion is a matcher, ready to be used.
type criterion struct {
	Matcher
	what    string // "body /reference"
	wanted  string // `"order-1001"`
	pattern *regexp.Regexp
	values  []any // one of which it is; for the body as decoded JSON
}

func (m Matcher) compile() (criterion, error) {
	c := criterion{Matcher: m, what: strings.TrimSpace(string(m.In) + " " + m.Name)}
	given := 0
	for _, set := range []bool{m.Equals != nil, m.Includes != nil, m.Matches != "", m.OneOf != nil, m.Present != nil} {
		if set {
			given++
		}
	}
	fail := func(format string, args ...any) (criterion, error) {
		return criterion{}, fmt.Errorf("mockcarrier: matcher for the %s: %s", c.what, fmt.Sprintf(format, args...))
	}
	switch {
	case m.In != InParameter && m.In != InHeader && m.In != InBody:
		return criterion{}, fmt.Errorf("mockcarrier: a matcher is for the part %q, which is none of parameter, header and body", m.In)
	case m.In != InBody && m.Name == "":
		return fail("it has no name")
	case m.In == InBody && m.Name != "" && !strings.HasPrefix(m.Name, "/"):
		return fail("a JSON pointer begins with /")
	case given != 1:
		return fail("it says %d things, and should say one", given)
	case m.Includes != nil && m.In != InBody:
		return fail("only a body can include")
	}
	var err error
	switch {
	case m.Present != nil && *m.Present:
		c.wanted = "any value"
	case m.Present != nil:
		c.wanted = nothing
	case m.Matches != "":
		c.wanted = "like " + m.Matches
		c.pattern, err = regexp.Compile(m.Matches)
	case m.OneOf != nil:
		c.values, err = c.normal(m.OneOf...)
		c.wanted = "one of " + textOf(c.values)
	case m.Includes != nil:
		c.values, err = c.normal(m.Includes)
		if err == nil {
			c.wanted = "at least " + textOf(c.values[0])
		}
	default:
		c.values, err = c.normal(m.Equals)
		if err == nil {
			c.wanted = textOf(c.values[0])
		}
	}
	if err != nil {
		return fail("%v", err)
	}
	return c, nil
}

func (c criterion) normal(values ...any) ([]any, error) {
	list := make([]any, len(values))
	for i, v := range values {
		if c.In != InBody {
			list[i] = fmt.Sprint(v)
			continue
		}
		var err error
		if list[i], err = normalJSON(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func compileAll(matchers []Matcher) ([]criterion, error) {
	var list []criterion
	var errs []error
	for _, m := range matchers {
		c, err := m.compile()
		list, errs = append(list, c), append(errs, err)
	}
	return list, errors.Join(errs...)
}

// Criterion is what one condition says of one request.
type Criterion struct {
	// What is looked at: "operation", "body /reference".
	What string `json:"what"`
	OK   bool   `json:"ok"`
	// Want and Got are what the condition asks for and what the request has.
	// Credentials are not shown.
	Want string `json:"want"`
	Got  string `json:"got"`
	// Diff has the members of a body that differ, one by one, where there are
	// several.
	Diff []string `json:"diff,omitempty"`
}

// matches is check without the words.
func (c *criterion) matches(s *subject) bool {
	if c.In == InBody {
		return c.checkBody(s).OK
	}
	return c.holds(c.texts(s))
}

func (c *criterion) texts(s *subject) []string {
	if c.In == InHeader {
		return s.request.Header.Values(c.Name)
	}
	return s.parameter(c.Name)
}

func (c *criterion) holds(got []string) bool {
	switch {
	case c.Present != nil:
		return *c.Present == (len(got) > 0)
	case c.pattern != nil:
		return slices.ContainsFunc(got, c.pattern.MatchString)
	}
	return slices.ContainsFunc(got, func(v string) bool { return slices.Contains(c.values, any(v)) })
}

// check says whether the request matches, and what it has.
func (c *criterion) check(s *subject) Criterion {
	if c.In == InBody {
		return c.checkBody(s)
	}
	got := c.texts(s)
	result := Criterion{What: c.what, Want: c.wanted, OK: c.holds(got), Got: nothing}
	switch {
	case len(got) == 0:
	case c.In == InHeader && slices.Contains(credentials, http.CanonicalHeaderKey(c.Name)):
		result.Got = redacted
	default:
		var list []string
		for _, v := range got {
			list = append(list, textOf(v))
		}
		result.Got = strings.Join(list, " and ")
	}
	return result
}

func (c *criterion) checkBody(s *subject) Criterion {
	result := Criterion{What: c.what, Want: c.wanted}
	document, ok := s.json()
	if !ok {
		result.Got = "no JSON"
		if len(s.body) == 0 {
			result.Got = nothing
		}
		result.OK = c.Present != nil && !*c.Present
		return result
	}
	member, ok := memberAt(document, c.Name)
	result.Got = s.shown(c.Name)
	switch {
	case c.Present != nil:
		result.OK = *c.Present == ok
	case !ok:
	case c.pattern != nil:
		text, isText := member.(string)
		result.OK = isText && c.pattern.MatchString(text)
	case len(c.values) == 1:
		differences := compareJSON(c.Name, c.values[0], member, c.Includes != nil)
		result.OK = len(differences) == 0
		if len(differences) > 1 || len(differences) == 1 && differences[0].pointer != c.Name {
			for _, d := range differences {
				d.got = s.shown(d.pointer)
				result.Diff = append(result.Diff, d.String())
			}
		}
	default:
		result.OK = slices.ContainsFunc(c.values, func(v any) bool { return len(compareJSON("", v, member, false)) == 0 })
	}
	return result
}

// String says what is asked for: `body /reference = "order-1001"`.
func (c criterion) String() string {
	switch {
	case c.Present != nil && *c.Present:
		return "any " + c.what
	case c.Present != nil:
		return "no " + c.what
	case c.pattern != nil || c.OneOf != nil || c.Includes != nil:
		return c.what + " " + c.wanted
	}
	return c.what + " = " + c.wanted
}
