package conformance

import (
	"bytes"
	"context"
	"encoding/json"
)

// label is a download of a label.
type label struct {
	shipment string
	whole    []byte
	got      bytes.Buffer
	client   Client
}

// make buys a shipment past the client, and keeps its label.
func (l *label) make(s *stage) bool {
	answer, err := s.direct("POST", "/shipments", order("order-label"), "Idempotency-Key", "key-label")
	var shipment struct{ ID string }
	if err == nil {
		err = json.Unmarshal(answer, &shipment)
	}
	if err == nil {
		l.whole, err = s.direct("GET", "/shipments/"+shipment.ID+"/label", nil)
	}
	l.shipment, l.client = shipment.ID, s.client
	return s.want(err == nil, "the suite could not buy a label: %v", err)
}

func (l *label) download(ctx context.Context) Result { return l.client.Label(ctx, l.shipment, &l.got) }
