package resilience

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Time is a moment as a carrier wrote it. Carriers send RFC 3339, but also
// times without a zone, "+0200", a space for the T, a date or a time of day
// alone, an empty string, null, or a remark. No such value makes a decode fail:
// what no known form fits keeps its raw text with a zero time.
//
// The zero value is "no time", and encodes as null.
type Time struct {
	at   time.Time
	raw  string
	zone bool
}

// NewTime returns t as a Time with a known zone, written as RFC 3339.
func NewTime(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{at: t, zone: true}
}

// ParseTime reads s leniently; see [Time]. A time without a zone is read as
// UTC, and HasZone tells.
func ParseTime(s string) Time {
	t := Time{raw: s}
	trimmed := strings.TrimSpace(s)
	if trimmed == "" {
		return t
	}
	for _, f := range timeForms {
		if at, err := time.Parse(f.layout, trimmed); err == nil {
			t.at, t.zone = at, f.zone
			return t
		}
	}
	return t
}

// timeForms are tried in this order. time.Parse takes a fraction of a second
// after the seconds field of any layout.
var timeForms = []struct {
	layout string
	zone   bool
}{
	{time.RFC3339, true},
	{"2006-01-02T15:04:05Z0700", true},
	{"2006-01-02T15:04:05Z07", true},
	{"2006-01-02T15:04Z07:00", true},
	{"2006-01-02T15:04Z0700", true},
	{"2006-01-02 15:04:05Z07:00", true},
	{"2006-01-02 15:04:05Z0700", true},
	{"2006-01-02 15:04:05 Z07:00", true},
	{"2006-01-02 15:04:05 Z0700", true},
	{"2006-01-02T15:04:05", false},
	{"2006-01-02T15:04", false},
	{"2006-01-02 15:04:05", false},
	{"2006-01-02 15:04", false},
	{"2006-01-02", false},
	{"20060102T150405Z0700", true},
	{"20060102T150405", false},
	{"20060102150405", false},
	{"20060102", false},
	{time.RFC1123Z, true},
	{"Mon, 02 Jan 2006 15:04:05 GMT", true}, // of other names of zones time.Parse knows no offset
	{"Mon, 02 Jan 2006 15:04:05 UTC", true},
}

// Time returns the moment, or the zero time if the text was none. A time
// without a zone is given in UTC.
func (t Time) Time() time.Time { return t.at }

// Raw returns the text as it came; for a Time made here, its RFC 3339 form.
func (t Time) Raw() string {
	if t.raw == "" && !t.at.IsZero() {
		return t.at.Format(time.RFC3339Nano)
	}
	return t.raw
}

// HasZone reports whether the text said which zone it meant.
func (t Time) HasZone() bool { return t.zone }

// IsZero reports whether there is no moment: nothing came, or what came could
// not be read. Raw tells the two apart.
func (t Time) IsZero() bool { return t.at.IsZero() }

// String returns Raw.
func (t Time) String() string { return t.Raw() }

// MarshalText writes Raw, so that what came in goes out unchanged.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.Raw()), nil }

// UnmarshalText reads as [ParseTime] does. It never fails.
func (t *Time) UnmarshalText(text []byte) error {
	*t = ParseTime(string(text))
	return nil
}

// Bind reads a query parameter, for generated servers. It never fails.
func (t *Time) Bind(src string) error { return t.UnmarshalText([]byte(src)) }

// MarshalJSON writes Raw as a string, and null for the zero value.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.raw == "" && t.at.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.Raw())
}

// UnmarshalJSON reads a string as [ParseTime] does, a whole number as Unix
// seconds, and keeps the text of anything else. It never fails.
func (t *Time) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0 || bytes.Equal(data, []byte("null")):
		*t = Time{}
	case data[0] == '"':
		*t = ParseTime(unquote(data))
	default:
		*t = Time{raw: string(data)}
		var seconds int64
		if json.Unmarshal(data, &seconds) == nil && plausibleUnix(seconds) {
			t.at, t.zone = time.Unix(seconds, 0).UTC(), true
		}
	}
	return nil
}

// unquote returns the text of a JSON string. Most times hold no escape, and
// then json.Unmarshal is not asked.
func unquote(data []byte) string {
	if len(data) >= 2 && bytes.IndexByte(data, '\\') < 0 {
		return string(data[1 : len(data)-1])
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return string(data)
	}
	return s
}

// plausibleUnix keeps numbers that are something else (a compact date, a
// count) from being read as seconds: 2001-09-09 to 2286-11-20.
func plausibleUnix(seconds int64) bool { return seconds >= 1e9 && seconds < 1e10 }
