package mockcarrier

import (
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// stage is a step of a parcel's way, so long after its shipment was made.
type stage struct {
	after       time.Duration
	status      api.TrackingStatus
	code        string
	description string
	at          func(from, to string) string
}

func origin(from, _ string) string       { return from }
func firstHub(from, _ string) string     { return from + " hub" }
func lastHub(_, to string) string        { return to + " hub" }
func destination(_, to string) string    { return to }
func hours(h float64) time.Duration      { return time.Duration(h * float64(time.Hour)) }
func moment(t time.Time) resilience.Time { return resilience.NewTime(t.Truncate(time.Second)) }

// journey is the way of a parcel that travels as standard.
var journey = []stage{
	{hours(0), api.TrackingStatusLabelCreated, "LC", "The label was made.", origin},
	{hours(4), api.TrackingStatusPickedUp, "PU", "The parcel was handed over.", origin},
	{hours(8), api.TrackingStatusInTransit, "AR", "The parcel arrived at the hub.", firstHub},
	{hours(20), api.TrackingStatusInTransit, "DP", "The parcel arrived at the hub of the destination.", lastHub},
	{hours(44), api.TrackingStatusOutForDelivery, "OD", "The parcel is out for delivery.", destination},
	{hours(48), api.TrackingStatusDelivered, "DL", "The parcel was delivered.", destination},
}

func (s shipment) reaches(i int) time.Time {
	by, _ := serviceOf(s.request.Service)
	return s.ready.Add(time.Duration(float64(journey[i].after) * by.pace))
}

func (s shipment) handedOver(now time.Time) bool {
	return s.cancelledAt.IsZero() && !now.Before(s.reaches(1))
}

// stages returns how many stages of its journey the shipment has reached.
func (s shipment) stages(now time.Time) int {
	n := 0
	for n < len(journey) {
		at := s.reaches(n)
		if at.After(now) || !s.cancelledAt.IsZero() && at.After(s.cancelledAt) {
			break
		}
		n++
	}
	return n
}

// events returns what has happened to the parcels of the shipment until now.
func (s shipment) events(now time.Time) []api.TrackingEvent {
	var events []api.TrackingEvent
	for i, st := range journey[:s.stages(now)] {
		e := api.TrackingEvent{
			At: moment(s.reaches(i)), Status: st.status, Code: st.code, Description: st.description,
			Location: st.at(s.request.From.City, s.request.To.City),
		}
		if st.status == api.TrackingStatusDelivered {
			e.SignedBy = s.request.To.Name
		}
		events = append(events, e)
	}
	if !s.cancelledAt.IsZero() {
		events = append(events, api.TrackingEvent{
			At: moment(s.cancelledAt), Status: api.TrackingStatusCancelled, Code: "CA",
			Description: "The shipment was cancelled.", Location: s.request.From.City,
		})
	}
	return events
}

// estimate is when the parcels are expected.
func (s shipment) estimate() *api.EstimatedDelivery {
	at := s.reaches(len(journey) - 1).Truncate(time.Hour)
	return &api.EstimatedDelivery{
		Date: at.Format(time.DateOnly), From: moment(at.Add(-2 * time.Hour)), To: moment(at.Add(2 * time.Hour)),
		Kind: api.DeliveryEstimateKindEstimated,
	}
}

// tracking returns the tracking of one of the shipment's parcels.
func (s shipment) tracking(number string, now time.Time) api.Tracking {
	events := s.events(now)
	last := events[len(events)-1]
	t := api.Tracking{
		TrackingNumber: number, Service: s.request.Service, Reference: s.request.Reference, ShipmentID: s.id,
		Origin: place(s.request.From), Destination: place(s.request.To),
		Weight: &s.request.Parcels[slices.Index(s.parcels, number)].Weight,
		Events: events,
	}
	settle(&t, last)
	if last.Status != api.TrackingStatusCancelled {
		t.EstimatedDelivery = s.estimate()
	}
	if len(s.parcels) > 1 {
		for i, n := range s.parcels {
			t.Parcels = append(t.Parcels, api.TrackingParcel{
				TrackingNumber: n, Status: t.Status, Weight: &s.request.Parcels[i].Weight, DeliveredAt: t.DeliveredAt,
			})
		}
	}
	return t
}

// settle sets what follows from the last event.
func settle(t *api.Tracking, last api.TrackingEvent) {
	t.Status, t.StatusDescription, t.UpdatedAt = last.Status, inWords[last.Status], last.At
	if last.Status == api.TrackingStatusDelivered {
		t.DeliveredAt, t.SignedBy = last.At, last.SignedBy
	}
}

var inWords = map[api.TrackingStatus]string{
	api.TrackingStatusLabelCreated:       "The label was made.",
	api.TrackingStatusPickedUp:           "Your parcel was handed over.",
	api.TrackingStatusInTransit:          "Your parcel is on its way.",
	api.TrackingStatusOutForDelivery:     "Your parcel comes today.",
	api.TrackingStatusAvailableForPickup: "Your parcel waits for you at the service point.",
	api.TrackingStatusDeliveryAttempted:  "Nobody was there to take your parcel.",
	api.TrackingStatusDelivered:          "Your parcel was delivered.",
	api.TrackingStatusException:          "Your parcel is held up.",
	api.TrackingStatusReturnToSender:     "Your parcel goes back to the sender.",
	api.TrackingStatusReturned:           "Your parcel is back at the sender's.",
	api.TrackingStatusCancelled:          "The shipment was cancelled.",
	api.TrackingStatusLost:               "Your parcel could not be found.",
}

func place(a api.Address) *api.Place {
	return &api.Place{City: a.City, Region: value(a.Region), PostalCode: a.PostalCode, Country: a.Country}
}
