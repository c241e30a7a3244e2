package idempotency

import (
	"errors"
	"strings"
)

// What is wrong with the header.
var (
	ErrMissing   = errors.New("idempotency key missing")
	ErrMalformed = errors.New("idempotency key malformed")
)

const maxKeyLength = 255

// ParseKey reads the lines of an Idempotency-Key header. A value in quotes is a
// string of the structured fields (RFC 9651), whose parameters are ignored;
// any other is taken as it stands, unless strict is set, which refuses it. A key
// has 1 to 255 characters of printable ASCII.
func ParseKey(lines []string, strict bool) (string, error) {
	if len(lines) == 0 {
		return "", ErrMissing
	}
	if len(lines) > 1 {
		return "", ErrMalformed
	}
	key, ok := strings.Trim(lines[0], " "), true
	switch {
	case strings.HasPrefix(key, `"`):
		key, ok = quoted(key)
	case strict:
		ok = false
	}
	if !ok || key == "" || len(key) > maxKeyLength || !printable(key) {
		return "", ErrMalformed
	}
	return key, nil
}

// quoted reads a structured-field string, which may have parameters.
func quoted(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			rest := strings.TrimLeft(s[i+1:], " ")
			return b.String(), rest == "" || parameters(rest)
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// parameters says whether s is a list such as ";a=1;b".
func parameters(s string) bool {
	for _, p := range strings.Split(s, ";")[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(p, " "), "=")
		if name == "" || name[0] != '*' && (name[0] < 'a' || name[0] > 'z') {
			return false
		}
	}
	return s[0] == ';'
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
