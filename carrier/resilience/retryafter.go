package resilience

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads how long the carrier wants to be left alone. Retry-After
// (RFC 9110, section 10.2.3) comes first; below it in rank are retry-after-ms,
// RateLimit (draft-ietf-httpapi-ratelimit-headers) and X-RateLimit-Reset. The
// result saturates; ok is false where nothing valid came.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	if values := h["Retry-After"]; len(values) > 0 {
		for _, v := range values {
			if d, valid := parseRetryAfter(v, h.Get("Date"), now); valid {
				wait, ok = max(wait, d), true
			}
		}
		if ok {
			return wait, true
		}
	}
	if d, valid := parseMillis(h.Get("Retry-After-Ms")); valid {
		return d, true
	}
	if d, valid := parseRateLimit(h["Ratelimit"]); valid && !cached(h) {
		return d, true
	}
	for _, name := range []string{"X-Ratelimit-Reset", "X-Rate-Limit-Reset"} {
		if d, valid := parseReset(h.Get(name), now); valid {
			return d, true
		}
	}
	return 0, false
}

// parseRetryAfter takes digits, or one of the three forms of an HTTP date. A
// date counts from the answer's own Date header where it has one, so that a
// clock that is wrong on either side does no harm.
func parseRetryAfter(value, date string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if digits(value) {
		return seconds(value), true
	}
	at, ok := parseHTTPDate(value, now)
	if !ok {
		return 0, false
	}
	from := now
	if d, ok := parseHTTPDate(strings.Trim(date, " \t"), now); ok {
		from = d
	}
	return max(at.Sub(from), 0), true // Sub saturates
}

// digits holds for 1*DIGIT, and for ASCII digits only.
func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// seconds saturates.
func seconds(digits string) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Second
}

func parseMillis(digitsOnly string) (time.Duration, bool) {
	if !digits(digitsOnly) {
		return 0, false
	}
	n, err := strconv.ParseInt(digitsOnly, 10, 64)
	if err != nil || n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * time.Millisecond, true
}

const (
	imfFixdate = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850Date = "Monday, 02-Jan-06 15:04:05 GMT"
	ascTime    = "Mon Jan _2 15:04:05 2006"
)

// parseHTTPDate takes the three forms of RFC 9110, section 5.6.7, to the
// letter: http.ParseTime alone also takes other zones and other case. A
// two-digit year that seems more than 50 years ahead is in the past.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{imfFixdate, rfc850Date, ascTime} {
		t, err := time.Parse(layout, s)
		if err != nil || t.Format(layout) != s && layout != rfc850Date {
			continue
		}
		if layout == rfc850Date {
			// time.Parse reads 69 to 99 as 1969 to 1999, and the rest as 2000 to
			// 2068: choose the century first, then see that the weekday is right.
			year := t.Year()%100 + now.UTC().Year()/100*100
			if year > now.UTC().Year()+50 {
				year -= 100
			}
			t = time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
			if t.Format(layout) != s {
				continue
			}
		}
		return t, true
	}
	return time.Time{}, false
}

// cached holds for an answer out of a cache: its RateLimit is as old as it is.
func cached(h http.Header) bool { return strings.Trim(h.Get("Age"), "0") != "" }

// parseRateLimit reads the longest t among the items whose r is 0:
// `"default";r=0;t=7`. An item that is malformed is ignored, as the draft says.
func parseRateLimit(lines []string) (wait time.Duration, ok bool) {
	for _, line := range lines {
		for _, item := range splitUnquoted(line, ',') {
			params := splitUnquoted(item, ';')
			name := strings.TrimSpace(params[0])
			if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
				continue
			}
			r, t := "", ""
			for _, p := range params[1:] {
				switch k, v, _ := strings.Cut(strings.TrimSpace(p), "="); k {
				case "r":
					r = v
				case "t":
					t = v
				}
			}
			if digits(r) && strings.Trim(r, "0") == "" && digits(t) {
				wait, ok = max(wait, seconds(t)), true
			}
		}
	}
	return wait, ok
}

// splitUnquoted splits s at each separator that is not within a quoted string.
func splitUnquoted(s string, separator byte) (parts []string) {
	begin, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}

// parseReset reads the ambiguous X-RateLimit-Reset: over 10^9 it is a moment
// in Unix seconds, else a number of seconds from now.
func parseReset(value string, now time.Time) (time.Duration, bool) {
	if !digits(value) {
		return 0, false
	}
	d := seconds(value)
	if d <= 1e9*time.Second {
		return d, true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > 1<<40 {
		return math.MaxInt64, true
	}
	return max(time.Unix(n, 0).Sub(now), 0), true
}
