package mockcarrier_test

import (
	"sync"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// The clock goes as far as it can, and does not come round.
func TestTheClockHasAnEnd(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for name, step := range map[string]time.Duration{"forth": century, "back": -century} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t, frozen()))
			for range 4 {
				a.Advance(step)
			}
			if moved := a.Now().Sub(noon); (step < 0) != (moved < 0) || moved.Abs() < 2*century {
				t.Errorf("it is %v", a.Now())
			}
			a.buy(t, "k", order).want(t, 201)
			if err := a.Restore(a.Snapshot()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestManualClock(t *testing.T) {
	clock := mockcarrier.NewManualClock(noon)
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithClock(clock.Now)))
	other := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithClock(clock.Now)))
	a.buy(t, "k", order).want(t, 201)
	other.buy(t, "k", order).want(t, 201)
	status := func(a api, want string) {
		t.Helper()
		if got := a.get(t, "/tracking/BK2001TR").want(t, 200)["status"]; got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	clock.Advance(8 * time.Hour)
	status(a, "in_transit")
	a.Advance(40 * time.Hour) // of one carrier alone
	status(a, "delivered")
	status(other, "in_transit")
	clock.Set(noon.Add(4 * time.Hour))
	status(other, "picked_up")
	clock.Advance(-time.Hour)
	status(other, "label_created")
	if !a.Now().Equal(noon.Add(43*time.Hour)) || !other.Now().Equal(clock.Now()) {
		t.Errorf("it is %v, %v and %v", a.Now(), other.Now(), clock.Now())
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { clock.Advance(time.Second) })
	}
	wg.Wait()
	if got := clock.Now().Sub(noon); got != 3*time.Hour+8*time.Second {
		t.Errorf("it is %v after noon", got)
	}
}
