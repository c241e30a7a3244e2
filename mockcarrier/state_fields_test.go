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
		{reflect.TypeFor[world](), []string{"mu", "started", "shipments", "charges", "byID", "byNumber"}},
		{reflect.TypeFor[shipment](), []string{
			"account", "id", "seq", "number", "parcels", "key", "request", "charge", "made", "ready", "cancelledAt", "refund",
		}},
	} {
		for i := range tc.of.NumField() {
			if name := tc.of.Field(i).Name; !slices.Contains(tc.known, name) {
				t.Errorf("state.go does not save the field %s of %s", name, tc.of.Name())
			}
		}
	}
}
