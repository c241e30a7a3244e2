package mockcarrier_test

import (
	"regexp"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The cursors of an export outlive a restart, and a state of a program that had
// none yet is exported in the order of its shipments.
func TestExportAfterARestart(t *testing.T) {
	old := newAPI(mockcarrier.Start(t, frozen()))
	for _, key := range []string{"1", "2", "3"} {
		old.buy(t, key, order).want(t, 201)
	}
	old.do(t, "POST", "/shipments/shp_2002/cancel", "").want(t, 200)
	old.do(t, "POST", "/shipments/shp_2001/cancel", "").want(t, 200)
	const path = "/tracking/events?since=2026-03-02T00:00:00Z"
	all := eventsOf(t, old.get(t, path))
	if got := inShort(all); got != "BK2001TR label_created, BK2002TR label_created, BK2003TR label_created, BK2002TR cancelled, BK2001TR cancelled" {
		t.Errorf("got %s", got)
	}
	for name, snapshot := range map[string][]byte{
		"new": old.Snapshot(),
		"old": regexp.MustCompile(`,"(turns?|cancelTurn)":\d+`).ReplaceAll(old.Snapshot(), nil),
	} {
		a := newAPI(mockcarrier.Start(t, frozen()))
		if err := a.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		a.buy(t, "4", order).want(t, 201)
		a.do(t, "POST", "/shipments/shp_2003/cancel", "").want(t, 200)
		want := inShort(all) + ", BK2004TR label_created, BK2003TR cancelled"
		if name == "old" {
			want = "BK2001TR label_created, BK2002TR label_created, BK2003TR label_created, BK2001TR cancelled, BK2002TR cancelled, BK2004TR label_created, BK2003TR cancelled"
		}
		if got := inShort(eventsOf(t, a.get(t, path))); got != want {
			t.Errorf("%s: got %s\nwant %s", name, got, want)
		}
		if got := inShort(eventsOf(t, a.get(t, "/tracking/events?cursor="+all[4].Cursor))); got != "BK2004TR label_created, BK2003TR cancelled" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
