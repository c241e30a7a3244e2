package mockcarrier

import (
	"fmt"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// parcelCase is a parcel that is there from the start and stays as it is. Its
// times count back from when the carrier began.
type parcelCase struct {
	service string
	city    string // of the destination
	events  []caseEvent
	change  func(*api.Tracking) // the last touch; nil for none

	scripted bool // the answer is not the same at each call; see trackScenario
}

type caseEvent struct {
	hoursAgo float64
	status   api.TrackingStatus
	location string
	signedBy string
}

// finishedCases are the cases that have a number of their own.
var finishedCases = map[string]parcelCase{
	"BK1001TR": {service: "standard", city: "Ankara", events: []caseEvent{
		{40, api.TrackingStatusLabelCreated, "Istanbul", ""},
		{24, api.TrackingStatusInTransit, "Istanbul hub", ""},
	}},
	"BK1002TR": {service: "express", city: "Ankara", events: []caseEvent{
		{72, api.TrackingStatusLabelCreated, "Istanbul", ""},
		{66, api.TrackingStatusPickedUp, "Istanbul", ""},
		{60, api.TrackingStatusInTransit, "Istanbul hub", ""},
		{34, api.TrackingStatusOutForDelivery, "Ankara", ""},
		{30, api.TrackingStatusDelivered, "Ankara", "A. Yılmaz"},
	}},
	"BK1003TR": {service: "standard", city: "Izmir", events: []caseEvent{
		{52, api.TrackingStatusLabelCreated, "Istanbul", ""},
		{46, api.TrackingStatusPickedUp, "Istanbul", ""},
		{40, api.TrackingStatusInTransit, "Istanbul hub", ""},
		{20, api.TrackingStatusInTransit, "Izmir hub", ""},
		{2, api.TrackingStatusOutForDelivery, "Izmir", ""},
	}},
}

// tracking returns the tracking of a case under a number.
func (c parcelCase) tracking(number string, started time.Time) api.Tracking {
	t := api.Tracking{
		TrackingNumber: number, Service: c.service,
		Weight:      &api.Weight{Value: 1.2, Unit: api.WeightUnitKg},
		Origin:      &api.Place{City: "Istanbul", Country: "TR"},
		Destination: &api.Place{City: c.city, Country: "TR"},
	}
	for _, e := range c.events {
		known := stageOf(e.status)
		t.Events = append(t.Events, api.TrackingEvent{
			At:     moment(local(started.Add(-hours(e.hoursAgo)))),
			Status: e.status, Location: e.location, SignedBy: e.signedBy,
			Description: known.description, Code: known.code,
		})
	}
	if len(t.Events) > 0 {
		settle(&t, t.Events[len(t.Events)-1])
	}
	if t.DeliveredAt.IsZero() {
		tomorrow := started.Add(24 * time.Hour)
		t.EstimatedDelivery = &api.EstimatedDelivery{Date: day(tomorrow), Kind: api.DeliveryEstimateKindEstimated}
	}
	if c.change != nil {
		c.change(&t)
	}
	return t
}

// stageOf returns the first stage of the journey with a status.
func stageOf(status api.TrackingStatus) stage {
	for _, s := range journey {
		if s.status == status {
			return s
		}
	}
	return stage{}
}

// onItsWay is a case that has got as far as the last of the statuses.
func onItsWay(statuses ...api.TrackingStatus) parcelCase {
	c := parcelCase{service: "standard", city: "Ankara", events: []caseEvent{
		{72, api.TrackingStatusLabelCreated, "Istanbul", ""},
	}}
	if len(statuses) > 0 {
		c.events = append(c.events,
			caseEvent{66, api.TrackingStatusPickedUp, "Istanbul", ""},
			caseEvent{60, api.TrackingStatusInTransit, "Istanbul hub", ""})
	}
	for i, status := range statuses {
		e := caseEvent{float64(30 - 5*i), status, "Ankara", ""}
		if status == api.TrackingStatusDelivered {
			e.signedBy = "A. Yılmaz"
		}
		c.events = append(c.events, e)
	}
	return c
}

func (c parcelCase) with(change func(*api.Tracking)) parcelCase {
	c.change = change
	return c
}

func (c parcelCase) fromCallToCall() parcelCase {
	c.scripted = true
	return c
}

// upTo returns the case with its first n events, or all if it has fewer.
func (c parcelCase) upTo(n int) parcelCase {
	c.events = c.events[:min(n, len(c.events))]
	return c
}

// scenarios are the cases whose number begins with these letters, whatever
// comes behind. Those from MC40 on fail as well; see scenarioFaults. What
// changes from call to call is in trackScenario.
var scenarios = map[string]parcelCase{
	"MC01": onItsWay(),
	"MC02": onItsWay(api.TrackingStatusInTransit),
	"MC03": onItsWay(api.TrackingStatusOutForDelivery),
	"MC04": onItsWay(api.TrackingStatusOutForDelivery, api.TrackingStatusDelivered),
	"MC05": onItsWay(api.TrackingStatusAvailableForPickup),
	"MC06": onItsWay(api.TrackingStatusDeliveryAttempted, api.TrackingStatusOutForDelivery, api.TrackingStatusDelivered),
	"MC07": onItsWay(api.TrackingStatusException).with(func(t *api.Tracking) {
		t.Substatus = "customs_hold"
		t.Events[len(t.Events)-1].Reason = "Customs ask for an invoice."
	}),
	"MC08": onItsWay(api.TrackingStatusDeliveryAttempted, api.TrackingStatusReturnToSender),
	"MC09": onItsWay(api.TrackingStatusReturnToSender, api.TrackingStatusReturned),
	"MC10": onItsWay(api.TrackingStatusCancelled),
	"MC11": onItsWay(api.TrackingStatusLost),
	"MC12": parcelCase{}.fromCallToCall(),
	"MC13": onItsWay("handed_to_a_drone"),
	"MC14": onItsWay(api.TrackingStatusInTransit).fromCallToCall(),
	"MC15": onItsWay(api.TrackingStatusInTransit, api.TrackingStatusOutForDelivery, api.TrackingStatusDelivered).fromCallToCall(),
	"MC16": onItsWay(api.TrackingStatusInTransit).with(func(t *api.Tracking) {
		for i := range 3 {
			t.Parcels = append(t.Parcels, api.TrackingParcel{
				TrackingNumber: fmt.Sprintf("%sP%d", t.TrackingNumber, i+1), Status: t.Status, Weight: t.Weight,
			})
		}
	}),
	"MC17": onItsWay().fromCallToCall(),
	"MC18": onItsWay(api.TrackingStatusInTransit).with(func(t *api.Tracking) {
		for i, e := range t.Events {
			t.Events[i].At = resilience.ParseTime(e.At.Time().Format("2006-01-02T15:04:05"))
		}
		t.UpdatedAt = t.Events[len(t.Events)-1].At
	}),
	"MC20": onItsWay(api.TrackingStatusInTransit).with(func(t *api.Tracking) {
		t.Events[0].Location, t.Events[1].Location, t.Events[2].Location = "İstanbul, Şişli", "東京", "Αθήνα 📦"
	}),
	"MC21": onItsWay(api.TrackingStatusInTransit).with(func(t *api.Tracking) {
		for len(t.Events) < 500 {
			t.Events = append(t.Events, t.Events[len(t.Events)%3])
		}
	}),
	"MC22": onItsWay(api.TrackingStatusOutForDelivery, api.TrackingStatusDelivered).with(func(t *api.Tracking) {
		e := t.Events
		t.Events = []api.TrackingEvent{e[2], e[0], e[4], e[4], e[1], e[3]} // neither sorted nor each once
	}),
}

// caseOf returns the case that a number stands for.
func caseOf(number string) (parcelCase, bool) {
	if c, ok := finishedCases[number]; ok {
		return c, true
	}
	name := scenarioOf(number)
	if c, ok := scenarios[name]; ok {
		return c, true
	}
	if _, ok := scenarioFaults[name]; ok {
		return scenarios["MC02"], true
	}
	return parcelCase{}, false
}

// scenarioOf returns the first four letters of a number.
func scenarioOf(number string) string { return number[:min(4, len(number))] }
