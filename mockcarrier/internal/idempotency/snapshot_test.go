package idempotency_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

func TestEntriesAndRestore(t *testing.T) {
	old := newFixture(false)
	finish := func(account, key string, a idempotency.Answer) {
		t.Helper()
		_, _, slot := old.Begin(account, key, one)
		slot.Finish(a)
	}
	finish("a", "expired", idempotency.Answer{Status: 201})
	old.now = old.now.Add(25 * time.Hour)
	made := idempotency.Answer{Status: 201, Header: http.Header{"Location": {"/1"}}, Body: []byte("made")}
	finish("b", "k", made)
	finish("a", "z", made)
	finish("a", "k", made)
	_, _, inProgress := old.Begin("a", "busy", one)

	for key, want := range map[string]bool{"k": true, "busy": true, "expired": false, "never": false} {
		if old.Knows("a", key) != want {
			t.Errorf("the store knows %q: %v", key, !want)
		}
	}

	entries := old.Entries()
	var got []string
	for _, e := range entries {
		got = append(got, e.Account+e.Key)
	}
	if !reflect.DeepEqual(got, []string{"ak", "az", "bk"}) {
		t.Fatalf("got %v", got)
	}
	if e := entries[0]; e.Fingerprint != one || !e.Began.Equal(old.now) || !reflect.DeepEqual(e.Answer, made) {
		t.Errorf("got %+v", e)
	}

	s := newFixture(false)
	s.now = old.now.Add(time.Hour)
	_, _, before := s.Begin("a", "before", one)
	s.Restore(entries)
	before.Finish(made)
	for key, want := range map[string]idempotency.Verdict{
		"k": idempotency.Replay, "z": idempotency.Replay, "busy": idempotency.Proceed, "before": idempotency.Proceed,
	} {
		if verdict, _, _ := s.Begin("a", key, one); verdict != want {
			t.Errorf("%s: got %v, want %v", key, verdict, want)
		}
	}
	if verdict, _, _ := s.Begin("a", "k", other); verdict != idempotency.Reused {
		t.Errorf("another request under the key: got %v", verdict)
	}
	s.now = old.now.Add(25 * time.Hour) // their time goes on from when they began
	if verdict, _, _ := s.Begin("b", "k", one); verdict != idempotency.Proceed {
		t.Errorf("expired: got %v", verdict)
	}
	inProgress.Release()
}
