package mockcarrier

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// subscriptions are those who are to be told what happens to parcels.
type subscriptions struct {
	mu   sync.Mutex
	list []*subscription // in the order of their making
}

// subscription is what is known of one. Only what is behind the empty line
// changes.
type subscription struct {
	account     string
	key         string
	seq         int
	id          string
	url         string
	secrets     []resilience.Secret
	events      []api.SubscriptionEvent
	description string
	made        time.Time

	ended     bool
	suspended bool
	failing   time.Time       // since when nothing was taken in; zero if the last was
	told      position        // of the last event that there is or was a notification of
	waiting   []*notification // those that are still to be delivered
	feed      *feed           // what happens behind told; nil until it is asked for
	ahead     *notification   // of what is next in feed; nil if nothing is
	asOf      int             // the world's turns when ahead was found
}

const firstSubscription = 5001

func subscriptionID(seq int) string { return fmt.Sprintf("sub_%d", seq) }

// suspendAfter is how long deliveries fail until no more are made.
const suspendAfter = 72 * time.Hour

func (s *subscription) status(now time.Time) api.SubscriptionStatus {
	switch {
	case s.ended:
		return api.SubscriptionStatusEnded
	case s.suspended || !s.failing.IsZero() && now.Sub(s.failing) >= suspendAfter:
		return api.SubscriptionStatusSuspended
	}
	return api.SubscriptionStatusActive
}

// end ends it for good. Nothing is delivered any more.
func (s *subscription) end() {
	s.ended = true
	s.forget()
}

// forget drops what was to be delivered.
func (s *subscription) forget() { s.waiting, s.feed, s.ahead = nil, nil, nil }

func (s *subscription) present(now time.Time) api.Subscription {
	return api.Subscription{
		ID: s.id, Status: s.status(now), URL: s.url, Events: s.events, Description: s.description, CreatedAt: moment(s.made),
	}
}

func (ss *subscriptions) reset() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.list = nil
}

// any says whether there is one that is not ended.
func (ss *subscriptions) any() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.ContainsFunc(ss.list, func(s *subscription) bool { return !s.ended })
}

// add gives a subscription its id, and returns it as it is then.
func (ss *subscriptions) add(s *subscription) api.Subscription {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.seq = firstSubscription
	if n := len(ss.list); n > 0 {
		s.seq = ss.list[n-1].seq + 1
	}
	s.id = subscriptionID(s.seq)
	ss.list = append(ss.list, s)
	return s.present(s.made)
}

// find returns an account's subscription, or nil. They are locked.
func (ss *subscriptions) find(account, id string) *subscription {
	for _, s := range ss.list {
		if s.account == account && s.id == id {
			return s
		}
	}
	return nil
}

// allEvents are what a subscription tells of that does not say.
var allEvents = []api.SubscriptionEvent{
	api.SubscriptionEventTrackingUpdated, api.SubscriptionEventTrackingDelivered, api.SubscriptionEventTrackingException,
}

// CreateSubscription makes a subscription. That it is done once for each key has
// been seen to before.
func (h handlers) CreateSubscription(ctx context.Context, req server.CreateSubscriptionRequestObject) (server.CreateSubscriptionResponseObject, error) {
	x, now := exchangeOf(ctx), h.now()
	wrong := checkTarget(req.Body.URL)
	if len(wrong) > 0 {
		return nil, invalid(wrong)
	}
	s := &subscription{
		account: x.account, key: x.key, url: req.Body.URL, description: value(req.Body.Description), made: now,
		secrets: append([]resilience.Secret{req.Body.Secret}, req.Body.Secrets...),
		events:  req.Body.Events, told: h.world.here(now),
	}
	if len(s.events) == 0 {
		s.events = allEvents
	}
	body := h.subscriptions.add(s)
	h.deliverByItself()
	location := basePath + "/subscriptions/" + body.ID
	return server.CreateSubscription201JSONResponse{
		Body:    body,
		Headers: server.CreateSubscription201ResponseHeaders{Location: &location},
	}, nil
}

// checkTarget refuses an address that notifications are not posted to.
func checkTarget(target string) resilience.FieldErrors {
	var wrong resilience.FieldErrors
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		wrong.Add("/url", "format", "must be an address")
		return wrong
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		wrong.Add("/url", "https", "must be an address with https, or with http on this machine's loopback interface")
	}
	if u.User != nil {
		wrong.Add("/url", "userinfo", "must not have a user")
	}
	if u.Fragment != "" {
		wrong.Add("/url", "fragment", "must not have a fragment")
	}
	return wrong
}

// ListSubscriptions answers with a page of subscriptions, the newest first,
// those that have ended included.
func (h handlers) ListSubscriptions(ctx context.Context, req server.ListSubscriptionsRequestObject) (server.ListSubscriptionsResponseObject, error) {
	if r := parameters(api.NewListSubscriptionsRequest(req.Params)); r != nil {
		return nil, r
	}
	account, now, limit := exchangeOf(ctx).account, h.now(), 20
	if req.Params.Limit != nil {
		limit = *req.Params.Limit
	}
	ss := &h.subscriptions
	ss.mu.Lock()
	defer ss.mu.Unlock()
	page := listing[api.Subscription]{Items: []api.Subscription{}}
	before := 0
	if cursor := req.Params.Cursor; cursor != nil && *cursor == endCursor {
		return page, nil
	} else if cursor != nil {
		s := ss.find(account, lastBefore(*cursor))
		if s == nil {
			return nil, noCursor()
		}
		before = s.seq
	}
	for _, s := range slices.Backward(ss.list) {
		switch {
		case s.account != account, before != 0 && s.seq >= before:
			continue
		case len(page.Items) == limit:
			page.NextCursor = cursorBehind(page.Items[limit-1].ID)
			return page, nil
		}
		page.Items = append(page.Items, s.present(now))
	}
	return page, nil
}

// DeleteSubscription ends a subscription, once or again.
func (h handlers) DeleteSubscription(ctx context.Context, req server.DeleteSubscriptionRequestObject) (server.DeleteSubscriptionResponseObject, error) {
	if r := parameters(api.NewDeleteSubscriptionRequest(req.SubscriptionID)); r != nil {
		return nil, r
	}
	ss := &h.subscriptions
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.find(exchangeOf(ctx).account, req.SubscriptionID)
	if s == nil {
		return nil, refuse(http.StatusNotFound, "subscription_not_found", "Subscription not found",
			"There is no subscription %s.", req.SubscriptionID)
	}
	s.end()
	return server.DeleteSubscription204Response{}, nil
}

// withoutSecrets returns the body of a new subscription as the journal keeps it:
// of what is not known to be no secret, only that it was there.
func withoutSecrets(body []byte) []byte {
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return []byte(redacted)
	}
	for name, value := range members {
		text, isText := value.(string)
		u, err := url.Parse(text)
		switch {
		case name == "description" && isText:
		case name == "url" && isText && (err != nil || u.User == nil):
		case name == "events" && isEvents(value):
		default:
			members[name] = redacted
		}
	}
	return encode(members)
}

func isEvents(value any) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool {
		text, ok := item.(string)
		return !ok || !api.SubscriptionEvent(text).Valid()
	})
}
