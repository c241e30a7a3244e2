package mockcarrier_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// inOrder writes each attempt as the status that it told, with marks: * for a
// duplicate, ! for one whose signature was refused.
func inOrder(list []mockcarrier.Delivery, s *shop) string {
	statuses := map[string]string{}
	for _, u := range s.updates {
		statuses[u.ID] = string(u.Data.Status)
	}
	var all []string
	for _, d := range list {
		what := statuses[d.Notification]
		if d.Duplicate {
			what += "*"
		}
		if d.Status == 401 {
			what += "!"
		}
		all = append(all, what)
	}
	return strings.Join(all, " ")
}

func TestFaultsOfDeliveries(t *testing.T) {
	const well = "label_created picked_up in_transit in_transit out_for_delivery delivered"
	for name, tc := range map[string]struct {
		faults []mockcarrier.Fault
		want   string
		at     string // when, behind the first; "" for whenever
	}{
		"none":               {nil, well, "0s 4h0m0s 8h0m0s 20h0m0s 44h0m0s 48h0m0s"},
		"redelivered":        {list(mockcarrier.Redeliver().Times(1)), "label_created label_created* picked_up in_transit in_transit out_for_delivery delivered", ""},
		"redelivered thrice": {list(counting(mockcarrier.Redeliver().Skip(5), 3)), well + " delivered* delivered* delivered*", ""},
		"all redelivered": {
			list(mockcarrier.Redeliver()),
			"label_created label_created* picked_up picked_up* in_transit in_transit* in_transit in_transit* out_for_delivery out_for_delivery* delivered delivered*",
			"0s 0s 4h0m0s 4h0m0s 8h0m0s 8h0m0s 20h0m0s 20h0m0s 44h0m0s 44h0m0s 48h0m0s 48h0m0s",
		},
		"unacknowledged": {
			list(mockcarrier.Unacknowledged().Times(2)),
			"label_created label_created* label_created* picked_up in_transit in_transit out_for_delivery delivered",
			"0s 1m0s 6m0s 4h0m0s 8h0m0s 20h0m0s 44h0m0s 48h0m0s",
		},
		"late": {
			list(mockcarrier.DeliverLate(5 * time.Hour).Skip(1).Times(1)),
			"label_created in_transit picked_up in_transit out_for_delivery delivered", "0s 8h0m0s 9h0m0s 20h0m0s 44h0m0s 48h0m0s",
		},
		"all late": {list(mockcarrier.DeliverLate(time.Hour)), well, "1h0m0s 5h0m0s 9h0m0s 21h0m0s 45h0m0s 49h0m0s"},
		"out of order": {
			list(mockcarrier.DeliverOutOfOrder().EveryNth(2)),
			"label_created in_transit picked_up out_for_delivery in_transit delivered", "0s 8h0m0s 8h0m0s 44h0m0s 44h0m0s 48h0m0s",
		},
		"the last is not held back": {list(mockcarrier.DeliverOutOfOrder().With(mockcarrier.Body("/type", "tracking_delivered"))), well, ""},
		"bad signature": {
			list(mockcarrier.BadSignature().Times(1)),
			"label_created! label_created picked_up in_transit in_transit out_for_delivery delivered", "0s 1m0s 4h0m0s 8h0m0s 20h0m0s 44h0m0s 48h0m0s",
		},
		"stale signature": {
			list(mockcarrier.StaleSignature(6 * time.Minute).ForReference("order-1001").Skip(5).Times(1)),
			"label_created picked_up in_transit in_transit out_for_delivery delivered! delivered", "",
		},
		"almost stale": {list(mockcarrier.StaleSignature(5 * time.Minute)), well, ""},
		"a sequence": {
			list(mockcarrier.Sequence(mockcarrier.Redeliver(), mockcarrier.None(), mockcarrier.BadSignature()).ForTracking("BK2001TR").On("trackingUpdated")),
			"label_created label_created* picked_up in_transit! in_transit in_transit out_for_delivery delivered", "",
		},
		"others are left alone": {list(mockcarrier.Redeliver().ForTracking("BK2002TR").MayNotFire(), mockcarrier.Status(503).On("getTracking").MayNotFire()), well, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{}
				a := s.opened(t)
				for _, f := range tc.faults {
					a.Inject(f)
				}
				a.subscribe(t, shopURL)
				began := a.Now()
				a.buy(t, "1", order).want(t, 201)
				a.Advance(60 * time.Hour)
				if got := inOrder(a.Deliveries(), s); got != tc.want {
					t.Errorf("got %s\nwant %s", got, tc.want)
				}
				if got := offsets(a.Deliveries(), began); tc.at != "" && got != tc.at {
					t.Errorf("at %s\nwant %s", got, tc.at)
				}
				struck := 0
				for _, d := range a.Deliveries() {
					if d.Fault != "" {
						struck++
					}
					if bad := d.Status == 401; bad != (d.Signature == mockcarrier.SignatureBad || name != "almost stale" && d.Signature == mockcarrier.SignatureStale) {
						t.Errorf("%+v", d)
					}
				}
				if sent := strings.Contains(tc.want, "*") || strings.Contains(tc.want, "!"); sent && struck == 0 {
					t.Error("the deliveries name no fault")
				}
			})
		})
	}
}

func list(faults ...mockcarrier.Fault) []mockcarrier.Fault { return faults }

func counting(f mockcarrier.Fault, n int) mockcarrier.Fault { f.Count = n; return f }

// The same seed brings the same disorder, and another seed another.
func TestDisorderOfASeed(t *testing.T) {
	disorder := func(seed uint64) (got string) {
		synctest.Test(t, func(t *testing.T) {
			s := &shop{}
			a := s.opened(t)
			a.Inject(mockcarrier.Redeliver().Chance(0.3, seed))
			a.Inject(mockcarrier.DeliverLate(0).UpTo(20*time.Hour).Chance(0.5, seed))
			a.subscribe(t, shopURL)
			for i := range 10 {
				a.buy(t, fmt.Sprint(i), order).want(t, 201)
				a.Advance(time.Hour)
			}
			a.Advance(100 * time.Hour)
			got = s.got()
		})
		return got
	}
	if first, again := disorder(7), disorder(7); first != again || first == disorder(8) {
		t.Errorf("got %s\nand %s", first, again)
	}
}

func TestFaultsOfDeliveriesAreChecked(t *testing.T) {
	for says, f := range map[string]mockcarrier.Fault{
		"a delivery has no key":        mockcarrier.Redeliver().ForKey("k"),
		"no operation but trackingUpd": mockcarrier.BadSignature().On("createShipment"),
		"is no request that comes":     mockcarrier.Status(503).On("trackingUpdated"),
		"the age of the signature":     mockcarrier.StaleSignature(0),
		"strikes something else than":  mockcarrier.Sequence(mockcarrier.Redeliver(), mockcarrier.Status(503)),
		`phase "after" is none of`:     mockcarrier.Redeliver().AfterProcessing(),
		"its waits do not vary":        mockcarrier.Redeliver().UpTo(time.Hour),
		"up to 1000 times":             {Kind: mockcarrier.KindRedeliver, Count: 1001},
		"the longest wait is shorter":  mockcarrier.DeliverLate(time.Hour).UpTo(time.Minute),
	} {
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want one that says %q", err, says)
		}
	}
	for _, f := range list(mockcarrier.Redeliver().On("trackingUpdated"), mockcarrier.DeliverLate(time.Hour).Spread(0.5), mockcarrier.None().On("trackingUpdated")) {
		if err := f.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// A fault of deliveries that never strikes fails the test, as others do.
func TestAFaultOfDeliveriesThatNeverStrikes(t *testing.T) {
	c := mockcarrier.New()
	c.Inject(mockcarrier.BadSignature())
	err := c.Verify()
	if err == nil || !strings.Contains(err.Error(), "bad-signature  all deliveries") {
		t.Errorf("got %v", err)
	}
}
