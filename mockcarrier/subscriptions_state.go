package mockcarrier

import (
	"fmt"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// savedSubscription is a subscription in a state. The secrets are in what
// [Carrier.Snapshot] returns, since a program that starts again goes on to sign,
// and not in what the admin API shows.
type savedSubscription struct {
	Account     string                  `json:"account"`
	Key         string                  `json:"idempotencyKey"`
	Seq         int                     `json:"seq"`
	ID          string                  `json:"id"`
	URL         string                  `json:"url"`
	Secrets     []resilience.Secret     `json:"secrets,omitempty"`
	Events      []api.SubscriptionEvent `json:"events"`
	Description string                  `json:"description,omitempty"`
	Made        time.Time               `json:"made"`
	Ended       bool                    `json:"ended,omitempty"`
	Suspended   bool                    `json:"suspended,omitempty"`
	Failing     time.Time               `json:"failing,omitzero"`
	Told        position                `json:"told"`
	Waiting     []savedNotification     `json:"waiting,omitempty"`
}

type savedNotification struct {
	ShipmentID string    `json:"shipmentId"`
	At         position  `json:"at"`
	Due        time.Time `json:"due"`
	First      time.Time `json:"first,omitzero"`
	Attempts   int       `json:"attempts,omitempty"`
	Delayed    bool      `json:"delayed,omitempty"`
	Delivered  bool      `json:"delivered,omitempty"`
	Again      int       `json:"again,omitempty"`
}

// save writes them into a state. The accounts are as they are.
func (ss *subscriptions) save(s *state) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, sub := range ss.list {
		saved := savedSubscription{
			Account: sub.account, Key: sub.key, Seq: sub.seq, ID: sub.id, URL: sub.url, Secrets: sub.secrets, Events: sub.events,
			Description: sub.description, Made: sub.made, Ended: sub.ended, Suspended: sub.suspended, Failing: sub.failing, Told: sub.told,
		}
		for _, n := range sub.waiting {
			saved.Waiting = append(saved.Waiting, savedNotification{
				ShipmentID: n.shipmentID, At: n.at, Due: n.due, First: n.first, Attempts: n.attempts,
				Delayed: n.delayed, Delivered: n.delivered, Again: n.again,
			})
		}
		s.Subscriptions = append(s.Subscriptions, saved)
	}
}

// load replaces them by those of a state. What has no secrets cannot be told of
// anything, and is suspended.
func (ss *subscriptions) load(s *state) {
	var list []*subscription
	for _, saved := range s.Subscriptions {
		sub := &subscription{
			account: saved.Account, key: saved.Key, seq: saved.Seq, id: saved.ID, url: saved.URL, secrets: saved.Secrets, events: saved.Events,
			description: saved.Description, made: saved.Made, ended: saved.Ended, suspended: saved.Suspended || len(saved.Secrets) == 0,
			failing: saved.Failing, told: saved.Told,
		}
		for _, n := range saved.Waiting {
			sub.waiting = append(sub.waiting, &notification{
				shipmentID: n.ShipmentID, at: n.At, due: n.Due, first: n.First, attempts: n.Attempts,
				delayed: n.Delayed, delivered: n.Delivered, again: n.Again,
			})
		}
		list = append(list, sub)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.list = list
}

// checkSubscriptions checks what others rely on.
func (s *state) checkSubscriptions() error {
	last := 0
	for i, sub := range s.Subscriptions {
		if err := checkID(subscriptionID, sub.ID, sub.Seq, last); err != nil {
			return fmt.Errorf("subscriptions[%d]: %w", i, err)
		}
		switch {
		case len(checkTarget(sub.URL)) > 0:
			return fmt.Errorf("subscriptions[%d]: its url is none that is posted to", i)
		case slices.Contains(sub.Secrets, ""):
			return fmt.Errorf("subscriptions[%d]: a secret is empty", i)
		case slices.ContainsFunc(sub.Waiting, func(n savedNotification) bool {
			return !isCount(n.Attempts) || n.Again < 0 || n.Again > mostRepetitions
		}):
			return fmt.Errorf("subscriptions[%d]: the attempts of a notification are none", i)
		}
		last = sub.Seq
	}
	return nil
}

// withoutSecrets takes the secrets of the subscriptions away.
func (s *state) withoutSecrets() {
	for i := range s.Subscriptions {
		s.Subscriptions[i].Secrets = nil
	}
}
