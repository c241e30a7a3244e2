package mockcarrier

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// subject is what a request is about, as far as rules and expectations can tell
// requests apart. It is taken apart only as far as somebody asks. One goroutine
// uses it at a time.
type subject struct {
	operation string            // operationId; "" if none matched
	key       string            // the idempotency key
	params    map[string]string // of the path
	request   *http.Request
	body      []byte
	world     *world

	looked          bool
	references      []string
	trackingNumbers []string

	query    url.Values
	decoded  bool
	document any  // the body, with numbers as json.Number
	isJSON   bool // whether it is one document of JSON
}

// about returns the references and the tracking numbers that the request names,
// directly or by the shipment that it is for.
func (s *subject) about() (references, trackingNumbers []string) {
	if s.looked {
		return s.references, s.trackingNumbers
	}
	s.looked = true
	add := func(list *[]string, values ...string) {
		for _, v := range values {
			if v != "" {
				*list = append(*list, v)
			}
		}
	}
	var named struct {
		Reference       string
		TrackingNumbers []string
		ShipmentIDs     []string
	}
	if len(s.body) > 0 && json.Unmarshal(s.body, &named) == nil {
		add(&s.references, named.Reference)
		add(&s.trackingNumbers, named.TrackingNumbers...)
	}
	if s.request.URL.RawQuery != "" {
		add(&s.references, s.values().Get("reference"))
	}
	add(&s.trackingNumbers, s.params["trackingNumber"])
	shipment := func(id, number string) {
		if found, ok := s.world.find(id, number); ok {
			add(&s.references, found.request.Reference)
			add(&s.trackingNumbers, found.number)
		}
	}
	shipment(s.params["shipmentId"], s.params["trackingNumber"])
	for _, id := range named.ShipmentIDs {
		shipment(id, "")
	}
	return s.references, s.trackingNumbers
}

func (s *subject) values() url.Values {
	if s.query == nil {
		s.query = s.request.URL.Query()
	}
	return s.query
}

// parameter returns the values of a parameter of the path or the query.
func (s *subject) parameter(name string) []string {
	if v, ok := s.params[name]; ok {
		return []string{v}
	}
	return s.values()[name]
}

// json returns the body as a document, and whether it is one.
func (s *subject) json() (any, bool) {
	if !s.decoded {
		s.decoded = true
		s.document, s.isJSON = decodeJSON(s.body)
	}
	return s.document, s.isJSON
}

// publicBody returns the body of a request without its secrets.
func publicBody(operation string, body []byte) []byte {
	switch operation {
	case TokenOperation:
		return withoutSecret(body)
	case api.OpCreateSubscription.ID:
		return withoutSecrets(body)
	}
	return body
}

// shown returns what may be told of a member of the body.
func (s *subject) shown(pointer string) string {
	document, _ := s.json()
	member, ok := memberAt(document, pointer)
	if !ok {
		return nothing
	}
	if s.operation == api.OpCreateSubscription.ID {
		public, isJSON := decodeJSON(publicBody(s.operation, s.body))
		if member, ok = memberAt(public, pointer); !ok || !isJSON {
			return redacted
		}
	}
	return textOf(member)
}

// decodeJSON reads one document, with numbers as [json.Number].
func decodeJSON(data []byte) (any, bool) {
	if !json.Valid(data) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var document any
	err := decoder.Decode(&document)
	return document, err == nil
}
