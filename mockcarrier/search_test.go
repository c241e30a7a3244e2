package mockcarrier_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// found returns the numbers of a page of searchTracking, and its nextCursor.
func found(t *testing.T, a api, query string) (numbers []string, next string) {
	t.Helper()
	page := a.get(t, "/tracking?"+query).want(t, 200)
	for _, item := range page["items"].([]any) {
		numbers = append(numbers, item.(map[string]any)["trackingNumber"].(string))
	}
	next, _ = page["nextCursor"].(string)
	return numbers, next
}

// twoParcels is an order of two parcels.
func twoParcels(body string) string {
	return strings.Replace(body, `"parcels":[`, `"parcels":[{"weight":{"value":3,"unit":"lb"}},`, 1)
}

func TestSearchTracking(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithAPIKey(mockcarrier.APIKey, "other")))
	for i, body := range []string{
		orderFor("order-1"), twoParcels(orderFor("order-1")), orderFor("order-2"), twoParcels(orderFor("order-1")),
	} {
		a.buy(t, fmt.Sprint(i), body).want(t, 201)
	}
	other := a
	other.key = "other"
	other.buy(t, "k", orderFor("order-1")).want(t, 201) // BK2005TR
	a.buy(t, "pending", orderFor("order-1"), "Prefer", "respond-async").want(t, 202)
	a.do(t, "POST", "/shipments/shp_2002/cancel", "").want(t, 200)

	all := []string{"BK2004TR", "BK2004P2TR", "BK2002TR", "BK2002P2TR", "BK2001TR"}
	for query, want := range map[string][]string{
		"reference=order-1": all, "reference=order-1&limit=5": all, "reference=order-2": {"BK2003TR"}, "reference=order-3": nil,
		"reference=order-1&cursor=ZW5k": nil,
	} {
		if got, next := found(t, a, query); !slices.Equal(got, want) || next != "" {
			t.Errorf("%s: got %v, then %q, want %v", query, got, next, want)
		}
	}
	if empty := a.get(t, "/tracking?reference=order-3").body; strings.TrimSpace(empty) != `{"items":[]}` {
		t.Errorf("the empty page is %s", empty)
	}
	if got, _ := found(t, other, "reference=order-1"); !slices.Equal(got, []string{"BK2005TR"}) {
		t.Errorf("another account finds %v", got)
	}
	items := a.get(t, "/tracking?reference=order-1").want(t, 200)["items"].([]any)
	for i, number := range all {
		if one := a.get(t, "/tracking/"+number).want(t, 200); !reflect.DeepEqual(items[i], any(one)) {
			t.Errorf("found %v\nand getTracking has %v", items[i], one)
		}
	}

	// What is made meanwhile moves nothing.
	for size := 1; size <= 4; size++ {
		want := allOf(t, a)
		walked, next := found(t, a, fmt.Sprint("reference=order-1&limit=", size))
		for next != "" {
			a.buy(t, fmt.Sprint(size, next), orderFor("order-1")).want(t, 201)
			var page []string
			page, next = found(t, a, fmt.Sprintf("reference=order-1&limit=%d&cursor=%s", size, next))
			walked = append(walked, page...)
		}
		if !slices.Equal(walked, want) {
			t.Errorf("%d at a time: %v, want %v", size, walked, want)
		}
	}
	a.Advance(2 * time.Second)
	if !slices.Contains(allOf(t, a), "BK2006TR") {
		t.Error("the shipment that was pending is not found")
	}

	for query, name := range map[string]string{
		"": "reference", "reference=": "reference", "reference=" + strings.Repeat("x", 65): "reference",
		"reference=x&limit=0": "limit", "reference=x&limit=101": "limit", "reference=x&limit=x": "limit",
		"reference=x&cursor=": "cursor", "reference=x&cursor=%25": "cursor", "reference=x&cursor=bm9wZQ": "cursor",
		"reference=x&cursor=QksyMDA1VFI": "cursor", // BK2005TR, of another account
	} {
		problem := a.get(t, "/tracking?"+query).want(t, 400, "malformed_parameter")
		if pointers(problem) != name {
			t.Errorf("%s: %v", query, problem)
		}
	}
}

func allOf(t *testing.T, a api) []string {
	t.Helper()
	all, _ := found(t, a, "reference=order-1&limit=100")
	return all
}

func TestSearchTrackingPageByPage(t *testing.T) {
	s := mockcarrier.StartInMemory(t, frozen())
	client := sdk(t, s)
	want := []string(nil)
	for i := range 5 {
		request := shipmentRequest()
		made, err := client.CreateShipment(t.Context(), request)
		if err != nil {
			t.Fatal(i, err)
		}
		want = append([]string{made.TrackingNumber}, want...)
	}
	limit, got := 2, []string(nil)
	for tracking, err := range client.AllTracking(t.Context(), carrier.SearchTrackingParams{Reference: "order-1001", Limit: &limit}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tracking.TrackingNumber)
	}
	if !slices.Equal(got, want) || len(s.Requests()) != 5+3 {
		t.Errorf("got %v in %d requests, want %v in 3", got, len(s.Requests())-5, want)
	}
}
