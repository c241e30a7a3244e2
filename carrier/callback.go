package carrier

import (
	"context"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// Secret is a text that is never printed, such as what notifications are signed
// with; see [resilience.Secret].
type Secret = resilience.Secret

// NewCallbackHandler returns an [http.Handler] for the address that was given to
// [Client.CreateSubscription]. It checks who has signed a notification and when,
// hands it to handle, by its id once, and answers 2xx only after that has
// returned nil; what was not taken in, the carrier delivers again, for 3 days.
// See [callback.NewReceiver], and its options:
//
//	handler, err := carrier.NewCallbackHandler(func(ctx context.Context, u carrier.TrackingUpdate) error {
//		…
//	}, callback.WithSecrets(secret))
//
// Notifications come in no order: use [Advances] before a parcel is changed. The
// Data of one that is about something else than a parcel is nil. handle runs for
// several notifications at the same time.
func NewCallbackHandler(handle func(context.Context, TrackingUpdate) error, opts ...callback.Option) (*callback.Receiver[TrackingUpdate], error) {
	return callback.NewReceiver(handle, func(u TrackingUpdate) string { return u.ID }, opts...)
}

// Advances says whether news of a parcel are newer than what is known of it:
// whether to replace known by news. It is for notifications and exports, which
// come in no order, and more than once. The rules, of which the first that
// applies holds:
//
//  1. news of nothing (nil) never are; if nothing is known (nil), all others are.
//  2. News of another parcel never are, by tracking number or shipment.
//  3. What is returned stays so. What is delivered can only be delivered again,
//     with more said of it, go back to the sender, or be returned. It is the
//     same whichever comes in first, and so whatever the moments are.
//  4. News of a later moment are, and of an earlier one are not. The moment is
//     the latest of UpdatedAt and the times of the events. Times without a zone
//     are taken as UTC.
//  5. At the same moment, or where there is none: news of a status further on
//     the way are, and those of a status as far with more events.
//
// A status that this version does not know comes in by its moment alone.
func Advances(known, news *Tracking) bool {
	switch {
	case news == nil:
		return false
	case known == nil:
		return true
	case differ(known.TrackingNumber, news.TrackingNumber) || differ(known.ShipmentID, news.ShipmentID):
		return false
	case stays(known.Status, news.Status):
		return false
	case stays(news.Status, known.Status):
		return true
	}
	was, is := latest(known), latest(news)
	if !was.IsZero() && !is.IsZero() && !is.Equal(was) {
		return is.After(was)
	}
	if before, now := progress[known.Status], progress[news.Status]; now != before {
		return now > before
	}
	return len(news.Events) > len(known.Events)
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// stays says whether a parcel of a status stays so, although another is told.
func stays(s, other TrackingStatus) bool {
	switch s {
	case TrackingStatusReturned:
		return other != TrackingStatusReturned
	case TrackingStatusDelivered:
		return other != TrackingStatusDelivered && other != TrackingStatusReturnToSender && other != TrackingStatusReturned
	}
	return false
}

// latest returns the moment that a tracking tells of; zero if it has none.
func latest(t *Tracking) time.Time {
	at := t.UpdatedAt.Time()
	for _, e := range t.Events {
		if e.At.Time().After(at) {
			at = e.At.Time()
		}
	}
	return at
}

// progress is how far on its way a parcel is; 0 for what says nothing of that.
var progress = map[TrackingStatus]int{
	TrackingStatusLabelCreated:       1,
	TrackingStatusPickedUp:           2,
	TrackingStatusInTransit:          3,
	TrackingStatusDelayed:            3,
	TrackingStatusException:          3,
	TrackingStatusOutForDelivery:     4,
	TrackingStatusAvailableForPickup: 5,
	TrackingStatusDeliveryAttempted:  5,
	TrackingStatusDelivered:          6,
	TrackingStatusCancelled:          6,
	TrackingStatusLost:               6,
	TrackingStatusExpired:            6,
	TrackingStatusReturnToSender:     7,
	TrackingStatusReturned:           8,
}
