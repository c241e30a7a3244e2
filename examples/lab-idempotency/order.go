package main

import "github.com/carrier-sdk/carrier-go/carrier"

// shipmentOf is what has to be bought for an order.
func shipmentOf(order string) carrier.ShipmentRequest {
	return carrier.ShipmentRequest{
		Reference: order, Service: "standard",
		From:    carrier.Address{Name: "Ada Books", Line1: "1 Main Street", City: "Istanbul", PostalCode: "34000", Country: "TR"},
		To:      carrier.Address{Name: "Jane Reader", Line1: "2 Side Street", City: "Ankara", PostalCode: "06000", Country: "TR"},
		Parcels: []carrier.Parcel{{Weight: carrier.Weight{Value: 1.2, Unit: carrier.WeightUnitKg}}},
	}
}
