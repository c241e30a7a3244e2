package resilience

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// RedirectError is part of the [Error] for an answer that sends the client
// elsewhere (3xx, other than 304). No redirect is ever followed: net/http would
// send the API key along, turn a POST into a GET, or send its body to whoever
// was named. To follow one on purpose, give its Location to [Doer.Fetch].
//
// It is never printed, since a Location may be a secret.
type RedirectError struct {
	// Location is the absolute URL that the answer named; "" if there is none
	// that is valid. It comes from outside.
	Location string
	// SameOrigin says that it has the origin of what was asked.
	SameOrigin bool
}

// Error tells whether the target is of another origin, and not what it is.
func (e *RedirectError) Error() string {
	switch {
	case e.Location == "":
		return "redirect without a valid target"
	case e.SameOrigin:
		return "redirect, not followed"
	default:
		return "redirect to another origin, not followed"
	}
}

// Format writes Error for every verb.
func (e *RedirectError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

// LogValue is Error's text.
func (e *RedirectError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// redirected reads the target of a redirect of what u has asked for.
func redirected(u *url.URL, location string) *RedirectError {
	if location == "" {
		return &RedirectError{}
	}
	to, err := u.Parse(location)
	if err != nil || to.Host == "" {
		return &RedirectError{}
	}
	return &RedirectError{Location: to.String(), SameOrigin: sameOrigin(u, to)}
}
