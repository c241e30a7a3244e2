package resilience

import (
	"regexp"
	"sync"
)

// Pattern is a pattern of a spec, compiled when it is first asked. OpenAPI has
// ECMA 262 expressions and Go has RE2: an expression that RE2 does not know
// matches everything, so that a value is never refused for our lack of words.
type Pattern struct {
	compile func() *regexp.Regexp
}

// NewPattern returns the pattern for expr.
func NewPattern(expr string) *Pattern {
	return &Pattern{compile: sync.OnceValue(func() *regexp.Regexp {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil
		}
		return re
	})}
}

// Match reports whether s holds a match of the pattern. As in JSON Schema it
// is not anchored, unless it says so itself.
func (p *Pattern) Match(s string) bool {
	re := p.compile()
	return re == nil || re.MatchString(s)
}
