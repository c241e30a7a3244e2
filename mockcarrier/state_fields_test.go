package mockcarrier

import (
	"reflect"
	"slices"
	"testing"
)

// A field that is added to what the carrier remembers has to be saved, or to be
// listed here.
func TestSnapshotKnowsEachField(t *testing.T) {
	for _, tc := range []struct {
		of    reflect.Type
		known []string
	}{
		{reflect.TypeFor[world](), []string{"mu", "started", "shipments", "charges", "byID", "byNumber", "rates", "lastRate", "pickups", "manifests",
			"turns", "cancelled", "proofs"}},
		{reflect.TypeFor[shipment](), []string{
			"account", "id", "seq", "number", "parcels", "key", "request", "charge", "made", "ready", "cancelledAt", "refund", "manifest",
			"turn", "cancelTurn",
		}},
		{reflect.TypeFor[subscription](), []string{
			"account", "key", "seq", "id", "url", "secrets", "events", "description", "made", "ended", "suspended", "failing", "told", "waiting",
			"feed", "ahead", "asOf", // which begin behind told
		}},
		{reflect.TypeFor[notification](), []string{"shipmentID", "at", "due", "first", "attempts", "delayed", "delivered", "again"}},
	} {
		for i := range tc.of.NumField() {
			if name := tc.of.Field(i).Name; !slices.Contains(tc.known, name) {
				t.Errorf("state.go does not save the field %s of %s", name, tc.of.Name())
			}
		}
	}
}
