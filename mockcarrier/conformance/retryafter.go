package conformance

import (
	"net/http"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var retryAfterCases = []Case{
	{ID: "retry-after/date-imf", Title: "a date as in Sun, 06 Nov 1994 08:49:37 GMT is waited for", Source: "RFC 9110 §5.6.7, §10.2.3",
		run: dated(http.TimeFormat)},
	{ID: "retry-after/date-rfc850", Title: "a date as in Sunday, 06-Nov-94 08:49:37 GMT is waited for", Source: "RFC 9110 §5.6.7, §10.2.3",
		run: dated("Monday, 02-Jan-06 15:04:05 GMT")},
	{ID: "retry-after/date-asctime", Title: "a date as in Sun Nov  6 08:49:37 1994 is waited for", Source: "RFC 9110 §5.6.7, §10.2.3",
		run: dated(time.ANSIC)},
}

// dated has a carrier that wants to be left alone until the second after the next.
func dated(layout string) func(*stage) {
	return func(s *stage) {
		until := time.Now().Add(2 * time.Second).Truncate(time.Second)
		s.mock.Inject(mockcarrier.Status(503).WithHeader("Retry-After", until.UTC().Format(layout)).Times(1))
		r := s.within(defaultLimit, s.track)
		s.want(r.Err == nil, "the call fails: %s; it must succeed", line(r.Err))
		requests := s.sent("getTracking")
		if s.want(len(requests) > 1, "no second request comes") {
			early := until.Sub(requests[1].At)
			s.want(early < 20*time.Millisecond, "the second request comes %v before the date", early.Round(time.Millisecond))
		}
	}
}
