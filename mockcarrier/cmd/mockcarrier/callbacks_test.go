package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/callback"
)

// The program tells subscribers by itself, and when its clock is moved; also
// after a restart, which does not forget how to sign.
func TestSubscribersAreTold(t *testing.T) {
	const secret = "whsec_Zm9vYmFyYmF6cXV4"
	told := make(chan string, 100)
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = callback.Verify(r.Header.Get(callback.DefaultHeader), body, time.Now(), 0, secret)
		}
		if err != nil {
			t.Error(err)
		}
		told <- string(body)
	}))
	defer shop.Close()
	file := filepath.Join(t.TempDir(), "state.json")
	for i, sig := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		a, cmd, logs := launch(t, nil, "--port", "0", "--state", file)
		if i == 0 {
			resp, body, err := send(t, "POST", a.URL+"/subscriptions", `{"url":"`+shop.URL+`","secret":"`+secret+`"}`, "Idempotency-Key", "k")
			if err != nil || resp.StatusCode != 201 {
				t.Fatal(body, err)
			}
			buy(t, a, "k1")
			if got := <-told; !strings.Contains(got, `"status":"label_created"`) {
				t.Errorf("told %s", got)
			}
		}
		if resp, body, err := send(t, "POST", a.Admin+"clock", `{"advance":"5h"}`); err != nil || resp.StatusCode != 200 {
			t.Fatal(body, err)
		}
		want := []string{"picked_up", "in_transit"}[i]
		if got := <-told; !strings.Contains(got, `"status":"`+want+`"`) || len(told) > 0 {
			t.Errorf("told %s, and %d more", got, len(told))
		}
		end(t, cmd, sig)
		if strings.Contains(logs.String(), secret) {
			t.Error("the secret is in the log")
		}
	}
}
