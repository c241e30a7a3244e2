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
	var found []string
	collectSecrets(reflect.ValueOf(model), &found)
	return found
}

var secretType = reflect.TypeFor[Secret]()

// collectSecrets ends, since a value that has been encoded holds no circle.
func collectSecrets(v reflect.Value, found *[]string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == secretType && v.Len() >= leastSecret {
			*found = append(*found, v.String())
		}
	case reflect.Pointer, reflect.Interface:
		collectSecrets(v.Elem(), found)
	case reflect.Struct:
		for _, field := range v.Fields() {
			collectSecrets(field, found)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			collectSecrets(v.Index(i), found)
		}
	case reflect.Map:
		for _, item := range v.Seq2() {
			collectSecrets(item, found)
		}
	}
}
