package conformance

import (
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var errorCases = []Case{
	{ID: "errors/status", Title: "an error tells the status", Source: "RFC 9110 §15", run: tellsStatus(mockcarrier.Status(404), 404)},
	{ID: "errors/status-of-html", Title: "an error that is a page of HTML tells the status", Source: "RFC 9110 §15", run: tellsStatus(mockcarrier.HTML(502), 502)},
	{ID: "errors/status-of-a-cut", Title: "a success whose body is cut tells the status", Source: "RFC 9110 §15", run: tellsStatus(mockcarrier.ResetBody(20), 200)},
	{ID: "errors/status-of-no-json", Title: "a success that does not decode tells the status", Source: "RFC 9110 §15", run: tellsStatus(mockcarrier.MalformedJSON(), 200)},
	{ID: "errors/request-id", Title: "an error tells the carrier's id of the request", Source: "the API's description: X-Request-Id", run: tellsRequestID(mockcarrier.Status(400))},
	{ID: "errors/request-id-of-html", Title: "an error that is a page of HTML tells the id too", Source: "the API's description: X-Request-Id", run: tellsRequestID(mockcarrier.HTML(502))},
	{ID: "errors/attempts", Title: "an error tells how many attempts were made", Source: "package resilience, Error", run: tellsAttempts},
	{ID: "errors/sends", Title: "it tells how often the request went out, the repeats of the HTTP library included", Source: "package net/http, Transport: it sends again by itself", run: tellsSends},
	{ID: "errors/key", Title: "an error tells the key, also one that the client made", Source: keyDraft + " §2", run: tellsKey},
}

// failing makes a call that must fail. It says whether it did.
func (s *stage) failing(f mockcarrier.Fault) (reply, bool) {
	s.mock.Inject(f)
	r := s.within(defaultLimit, s.ship("", "order-1"))
	return r, s.want(r.Err != nil, "the call succeeds; it must fail")
}

func tellsStatus(f mockcarrier.Fault, status int) func(*stage) {
	return func(s *stage) {
		s.mock.Inject(f)
		r := s.within(defaultLimit, s.track)
		if s.want(r.Err != nil, "the call succeeds; it must fail") {
			told(&s.findings, "status", r.StatusCode, status)
		}
	}
}

func tellsRequestID(f mockcarrier.Fault) func(*stage) {
	return func(s *stage) {
		r, ok := s.failing(f)
		requests := s.sent("createShipment")
		if ok && s.want(len(requests) > 0, "no request comes") {
			told(&s.findings, "request id", r.RequestID, requests[len(requests)-1].RequestID)
		}
	}
}

func tellsAttempts(s *stage) {
	if r, ok := s.failing(mockcarrier.Status(503)); ok {
		told(&s.findings, "number of attempts", r.Attempts, len(s.sent("createShipment")))
	}
}

// tellsSends loses answers on connections that were used before.
func tellsSends(s *stage) {
	s.within(defaultLimit, s.track)
	if r, ok := s.failing(mockcarrier.ResetAfter().On("createShipment")); ok {
		told(&s.findings, "number of sends", r.Sends, len(s.sent("createShipment")))
	}
}

func tellsKey(s *stage) {
	r, ok := s.failing(mockcarrier.Status(400))
	if requests := s.sent("createShipment"); ok && s.want(len(requests) > 0, "no request comes") {
		told(&s.findings, "key", r.Key, requests[0].Header.Get("Idempotency-Key"))
	}
}
