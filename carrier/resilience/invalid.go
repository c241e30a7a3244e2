package resilience

import (
	"fmt"
	"strconv"
	"strings"
)

// FieldError says what is wrong with one member of a request, before it is sent.
type FieldError struct {
	// Pointer is the JSON pointer (RFC 6901) of the member: "/parcels/0/weight/value",
	// or the name of a parameter.
	Pointer string
	// Rule is the spec's keyword that is broken: "required", "minLength", "pattern", …
	Rule string
	// Message says what would be right: "must have at most 35 characters".
	Message string
}

// Error returns "pointer: message".
func (e FieldError) Error() string { return e.Pointer + ": " + e.Message }

// FieldErrors collects everything that is wrong with a request. It is an error
// for [ErrInvalidRequest]; errors.As finds it in an [Error].
//
// The zero value is an empty collection. Generated Validate methods fill one.
type FieldErrors []FieldError

// Error lists at most three of them in one line.
func (e FieldErrors) Error() string {
	const shown = 3
	var b strings.Builder
	for i, f := range e {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(e)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Error())
	}
	return b.String()
}

// Is makes errors.Is(err, [ErrInvalidRequest]) hold.
func (e FieldErrors) Is(target error) bool { return target == ErrInvalidRequest }

// Add notes that rule is broken at pointer.
func (e *FieldErrors) Add(pointer, rule, message string) {
	*e = append(*e, FieldError{Pointer: pointer, Rule: rule, Message: message})
}

// Err returns nil if nothing was added.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Index returns pointer + "/" + i: the pointer of an element.
func Index(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }
