package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"

	"github.com/carrier-sdk/carrier-go/carrier"
)

//go:embed orders.json
var builtInOrders []byte

// orderBook stands for the shop's database.
type orderBook struct {
	From   carrier.Address `json:"from"`
	Orders []order         `json:"orders"`
}

// order is an order of a customer that is to be sent.
type order struct {
	ID string `json:"id"`
	// Revision goes up by one when what is to be sent changes, or where: that is
	// another intent, and needs another key.
	Revision int             `json:"revision"`
	Service  string          `json:"service"`
	To       carrier.Address `json:"to"`
	Weight   carrier.Weight  `json:"weight"`
}

// key is the idempotency key of buying the shipment of this order: the same for
// each attempt and each repeated request, in every replica and after a restart.
func (o *order) key() string {
	return carrier.DeriveIdempotencyKey("createShipment", o.ID, o.Revision)
}

// request is what the carrier is sent for an order. It depends on the order
// alone, since a key must always come with the same bytes.
func (b *orderBook) request(o *order) carrier.ShipmentRequest {
	return carrier.ShipmentRequest{
		Reference: o.ID,
		Service:   o.Service,
		From:      b.From,
		To:        o.To,
		Parcels:   []carrier.Parcel{{Weight: o.Weight}},
	}
}

var orderID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// find returns the order of a request's path.
func (b *orderBook) find(r *http.Request) (*order, error) {
	id := r.PathValue("orderId")
	if !orderID.MatchString(id) {
		return nil, newProblem(http.StatusBadRequest, "bad_order_id", "An order id has 1 to 64 letters, digits or hyphens.")
	}
	for i := range b.Orders {
		if b.Orders[i].ID == id {
			return &b.Orders[i], nil
		}
	}
	return nil, newProblem(http.StatusNotFound, "unknown_order", "There is no order of this id.")
}

func readOrders(file string) (*orderBook, error) {
	data := builtInOrders
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var b orderBook
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	seen := map[string]bool{}
	for _, o := range b.Orders {
		if !orderID.MatchString(o.ID) || seen[o.ID] || o.Revision < 1 {
			return nil, fmt.Errorf("orders: %q needs an id of its own and a revision of at least 1", o.ID)
		}
		seen[o.ID] = true
	}
	return &b, nil
}
