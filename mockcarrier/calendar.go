package mockcarrier

import (
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// local is a time on the clocks of the carrier's addresses, which all show
// UTC+3.
func local(t time.Time) time.Time { return t.In(localZone()) }

func localZone() *time.Location { return time.FixedZone("", 3*60*60) }

// day is the local day of a time, as YYYY-MM-DD.
func day(t time.Time) string { return local(t).Format(time.DateOnly) }

// checkDay notes that the date of a request is in the past. It says whether it
// is a date at all.
func checkDay(date string, now time.Time, wrong *resilience.FieldErrors) bool {
	_, err := time.Parse(time.DateOnly, date)
	switch {
	case err != nil:
		wrong.Add("/date", "format", "must be a day of the calendar")
	case date < day(now):
		wrong.Add("/date", "past", "must not be in the past")
	}
	return err == nil
}
