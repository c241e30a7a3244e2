package resilience

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
)

// Secret is a text of a request that nobody else is to read, such as the secret
// that notifications are signed with; the type of what a spec describes as a
// string of the format password.
//
// It is not printed by fmt and slog, and it is taken out of what the API echoes
// in its errors. It is as it is in JSON, since that is how it is sent, and after
// a conversion to string. Where a verb does not fit, such as %s for a pointer
// within a struct, fmt prints a complaint and asks no method: use %v.
type Secret string

// Format writes "[REDACTED]" for every verb, and nothing for an empty secret.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.shown()) }

// LogValue shows no more than Format.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }

func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return redacted
}

// secretsIn finds the secrets in what a body was encoded from.
func secretsIn(model any) []string {
	if model == nil {
		return nil
	}
	search := secretSearch{been: map[visit]bool{}}
	search.in(reflect.ValueOf(model))
	return search.found
}

var secretType = reflect.TypeFor[Secret]()

// secretSearch goes through a model. What encodes itself may hold circles: what
// has been seen is not looked at again.
type secretSearch struct {
	found []string
	been  map[visit]bool
}

type visit struct {
	of   reflect.Type
	at   uintptr
	size int // of a slice
}

func (s *secretSearch) in(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == secretType && v.Len() >= leastSecret {
			s.found = append(s.found, v.String())
		}
	case reflect.Interface:
		s.in(v.Elem())
	case reflect.Pointer:
		if s.isNew(v, 0) {
			s.in(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			s.in(field)
		}
	case reflect.Slice:
		if s.isNew(v, v.Len()) {
			s.items(v)
		}
	case reflect.Array:
		s.items(v)
	case reflect.Map:
		if s.isNew(v, 0) {
			for _, item := range v.Seq2() {
				s.in(item)
			}
		}
	}
}

func (s *secretSearch) items(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	for i := range v.Len() {
		s.in(v.Index(i))
	}
}

func (s *secretSearch) isNew(v reflect.Value, size int) bool {
	at := visit{v.Type(), v.Pointer(), size}
	if v.IsNil() || s.been[at] {
		return false
	}
	s.been[at] = true
	return true
}
