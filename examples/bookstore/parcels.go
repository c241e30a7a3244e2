package main

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// parcel is where a parcel is, as staff see it. It is a type of the shop's own,
// so that nothing of the carrier's gets out that nobody has looked at.
type parcel struct {
	TrackingNumber string        `json:"trackingNumber"`
	Status         string        `json:"status"`
	Description    string        `json:"description,omitempty"`
	UpdatedAt      string        `json:"updatedAt,omitempty"`
	DeliveredAt    string        `json:"deliveredAt,omitempty"`
	SignedBy       string        `json:"signedBy,omitempty"`
	Events         []parcelEvent `json:"events"`
}

type parcelEvent struct {
	At       string `json:"at,omitempty"`
	Status   string `json:"status"`
	Location string `json:"location,omitempty"`
}

var trackingNumber = regexp.MustCompile(`^[A-Z0-9]{6,20}$`)

// getParcel asks the carrier where a parcel is. The context is the request's: a
// client that leaves ends the call and its retries.
func (s *shop) getParcel(w http.ResponseWriter, r *http.Request) error {
	number := r.PathValue("trackingNumber")
	if !trackingNumber.MatchString(number) {
		return newProblem(http.StatusBadRequest, "bad_tracking_number", "A tracking number has 6 to 20 upper-case letters or digits.")
	}
	tracking, err := s.carrier.GetTracking(r.Context(), number, passID(r.Context()))
	switch {
	case errors.Is(err, carrier.ErrNotFound):
		return newProblem(http.StatusNotFound, "unknown_parcel", "The carrier knows no parcel of this number.")
	case err != nil:
		return err
	}
	writeJSON(w, http.StatusOK, parcelOf(number, tracking))
	return nil
}

func parcelOf(number string, t *carrier.Tracking) parcel {
	p := parcel{
		TrackingNumber: number,
		Status:         status(t.Status),
		Description:    t.StatusDescription,
		UpdatedAt:      moment(t.UpdatedAt),
		DeliveredAt:    moment(t.DeliveredAt),
		SignedBy:       t.SignedBy,
		Events:         []parcelEvent{},
	}
	// The carrier promises no order.
	events := slices.SortedStableFunc(slices.Values(t.Events), func(a, b carrier.TrackingEvent) int {
		return a.At.Time().Compare(b.At.Time())
	})
	for _, e := range events {
		p.Events = append(p.Events, parcelEvent{At: moment(e.At), Status: status(e.Status), Location: e.Location})
	}
	return p
}

func status(s carrier.TrackingStatus) string {
	if s == "" {
		return string(carrier.TrackingStatusUnknown)
	}
	return string(s)
}

// moment writes a time with its offset, without one where the carrier did not
// say which it meant, and not at all where it is no time.
func moment(t carrier.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.HasZone():
		return t.Time().Format(time.RFC3339)
	default:
		return t.Time().Format("2006-01-02T15:04:05")
	}
}
