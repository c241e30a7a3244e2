package idempotency_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

func TestParseKey(t *testing.T) {
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name            string
		Lines           []string
		Lenient, Strict string // "" for malformed
		Missing         bool
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, lines []string, strict bool, want string, wantErr error) {
		got, err := idempotency.ParseKey(lines, strict)
		if got != want || !errors.Is(err, wantErr) {
			t.Errorf("strict %v: got %q, %v; want %q, %v", strict, got, err, want, wantErr)
		}
	}
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			for strict, want := range map[bool]string{false: tc.Lenient, true: tc.Strict} {
				var wantErr error
				if tc.Missing {
					wantErr = idempotency.ErrMissing
				} else if want == "" {
					wantErr = idempotency.ErrMalformed
				}
				check(t, tc.Lines, strict, want, wantErr)
			}
		})
	}
	for length, wantErr := range map[int]error{255: nil, 256: idempotency.ErrMalformed} {
		long := strings.Repeat("x", length)
		want := long
		if wantErr != nil {
			want = ""
		}
		check(t, []string{`"` + long + `"`}, true, want, wantErr)
		check(t, []string{long}, false, want, wantErr)
	}
}

func TestFingerprint(t *testing.T) {
	base := idempotency.FingerprintOf("POST", "/v1/shipments", []byte(`{"a":1}`))
	if base != idempotency.FingerprintOf("POST", "/v1/shipments", []byte(`{"a":1}`)) {
		t.Error("the same request has two fingerprints")
	}
	for i, other := range []idempotency.Fingerprint{
		idempotency.FingerprintOf("PUT", "/v1/shipments", []byte(`{"a":1}`)),
		idempotency.FingerprintOf("POST", "/v1/pickups", []byte(`{"a":1}`)),
		idempotency.FingerprintOf("POST", "/v1/shipments", []byte(`{"a": 1}`)),
		idempotency.FingerprintOf("POST/", "v1/shipments", []byte(`{"a":1}`)),
	} {
		if other == base {
			t.Errorf("request %d has the same fingerprint as another", i)
		}
	}
}

// fixture is a store on a clock that stands still.
type fixture struct {
	*idempotency.Store
	now time.Time
}

func newFixture(storeServerErrors bool) *fixture {
	f := &fixture{now: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)}
	f.Store = idempotency.New(idempotency.Config{
		TTL: 24 * time.Hour, StoreServerErrors: storeServerErrors,
		Now: func() time.Time { return f.now },
	})
	return f
}

var (
	one   = idempotency.FingerprintOf("POST", "/", []byte("one"))
	other = idempotency.FingerprintOf("POST", "/", []byte("other"))
)

func TestStates(t *testing.T) {
	s := newFixture(false)
	expect := func(account, key string, f idempotency.Fingerprint, want idempotency.Verdict) *idempotency.Slot {
		t.Helper()
		got, answer, slot := s.Begin(account, key, f)
		if got != want || (answer != nil) != (want == idempotency.Replay) || (slot != nil) != (want == idempotency.Proceed) {
			t.Errorf("got %v, %v, %v, want verdict %v", got, answer, slot, want)
		}
		return slot
	}

	slot := expect("a", "k", one, idempotency.Proceed)
	expect("a", "k", one, idempotency.InProgress)
	expect("a", "k", other, idempotency.Reused)
	expect("b", "k", other, idempotency.Proceed) // another account
	slot.Finish(idempotency.Answer{Status: 201, Body: []byte("made")})
	slot.Release()
	expect("a", "k", one, idempotency.Replay)
	expect("a", "k", other, idempotency.Reused)
	if _, answer, _ := s.Begin("a", "k", one); answer.Status != 201 || string(answer.Body) != "made" {
		t.Errorf("the replay is %v", answer)
	}

	s.now = s.now.Add(24 * time.Hour)
	expect("a", "k", one, idempotency.Replay)
	s.now = s.now.Add(time.Nanosecond)
	expect("a", "k", other, idempotency.Proceed)

	s.now = s.now.Add(100 * time.Hour)
	expect("a", "k", other, idempotency.InProgress) // what is processed does not expire

	old := expect("a", "again", one, idempotency.Proceed)
	s.Reset()
	expect("a", "again", one, idempotency.Proceed)
	old.Release()
	expect("a", "again", one, idempotency.InProgress)
}

func TestWhichAnswersAreKept(t *testing.T) {
	for _, tc := range []struct {
		status                  int
		releasing, storingErors bool // kept under the policy
	}{
		{200, true, true}, {201, true, true}, {202, true, true}, {404, true, true}, {409, true, true}, {410, true, true},
		{400, false, false}, {401, false, false}, {403, false, false}, {413, false, false}, {415, false, false},
		{422, false, false}, {429, false, false},
		{500, false, true}, {503, false, true},
	} {
		for policy, kept := range map[bool]bool{false: tc.releasing, true: tc.storingErors} {
			s := newFixture(policy)
			_, _, slot := s.Begin("a", "k", one)
			slot.Finish(idempotency.Answer{Status: tc.status})
			want := idempotency.Proceed
			if kept {
				want = idempotency.Replay
			}
			if got, _, _ := s.Begin("a", "k", one); got != want {
				t.Errorf("%d, 5xx stored %v: got verdict %v, want %v", tc.status, policy, got, want)
			}
		}
	}
}

func TestOneOfManyProceeds(t *testing.T) {
	s := newFixture(false)
	var wg sync.WaitGroup
	var proceeded atomic.Int32
	for range 50 {
		wg.Go(func() {
			if verdict, _, slot := s.Begin("a", "k", one); verdict == idempotency.Proceed {
				proceeded.Add(1)
				slot.Finish(idempotency.Answer{Status: 201})
			}
		})
	}
	wg.Wait()
	if proceeded.Load() != 1 {
		t.Errorf("%d requests were processed", proceeded.Load())
	}
}

func TestExpiredAnswersAreRemoved(t *testing.T) {
	s := newFixture(false)
	for day := range 10 {
		for i := range 1000 {
			_, _, slot := s.Begin("a", fmt.Sprint(day, i), one)
			slot.Finish(idempotency.Answer{Status: 201, Body: make([]byte, 1)})
		}
		s.now = s.now.Add(25 * time.Hour)
	}
	if n := s.Len(); n > 3000 {
		t.Errorf("%d answers are kept, of at most 1,000 that have not expired", n)
	}
}
