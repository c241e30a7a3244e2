package resilience

import "fmt"

// PathSegment checks a path parameter's value and returns it ready for use in
// a path. It refuses whatever could turn the path into another operation's, on
// the way or at the carrier: an empty value, "." and "..", and a slash,
// backslash, percent sign, control or non-ASCII character. What else is not
// allowed bare in a path segment (RFC 3986, section 3.3) comes back escaped.
//
// An error is a [FieldErrors], so that it Is [ErrInvalidRequest]; it does not
// repeat the value.
func PathSegment(name, value string) (string, error) {
	bad := func(message string) (string, error) {
		return "", FieldErrors{{Pointer: name, Rule: "path", Message: message}}
	}
	switch value {
	case "":
		return bad("must not be empty")
	case ".", "..":
		return bad("must not be a dot segment")
	}
	escape := 0
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '/' || c == '\\' || c == '%':
			return bad(fmt.Sprintf("must not hold %q", c))
		case c < 0x20 || c == 0x7f:
			return bad("must not hold a control character")
		case c >= 0x80:
			return bad("must hold ASCII characters only")
		case !bareInSegment(c):
			escape++
		}
	}
	if escape == 0 {
		return value, nil
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(value)+2*escape)
	for i := 0; i < len(value); i++ {
		c := value[i]
		if bareInSegment(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out), nil
}

// bareInSegment holds for the unreserved characters of RFC 3986, section 2.3.
func bareInSegment(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}
