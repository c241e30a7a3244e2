package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// end ends a program and waits for it.
func end(t *testing.T, cmd *exec.Cmd, sig os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && sig != syscall.SIGKILL {
		t.Fatal(err)
	}
}

// What was bought is bought, however the program ended.
func TestStateSurvivesRestarts(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.json")
			a, cmd, _ := launch(t, nil, "--port", "0", "--state", file)
			resp, first := buy(t, a, "k1")
			if resp.StatusCode != 201 {
				t.Fatalf("got %s %s", resp.Status, first)
			}
			buy(t, a, "k1", "X-Mock-World", "w")
			if resp, body, err := send(t, "POST", a.Admin+"clock", `{"advance":"20h"}`); err != nil || resp.StatusCode != 200 {
				t.Fatal(body, err)
			}
			end(t, cmd, sig)

			a, cmd, _ = launch(t, []string{"CARRIER_STATE=" + file}, "--port", "0")
			resp, again := buy(t, a, "k1")
			if resp.Header.Get("Idempotency-Replayed") != "true" || again != first {
				t.Errorf("got %s %v\n%s, was\n%s", resp.Status, resp.Header, again, first)
			}
			if n := charges(t, a); n != 1 {
				t.Errorf("%d charges", n)
			}
			if n := charges(t, a, "X-Mock-World", "w"); n != 1 {
				t.Errorf("%d charges in the other world", n)
			}
			if _, body := get(t, a.URL+"/tracking/BK2001TR", mockcarrier.APIKey); !strings.Contains(body, `"status":"in_transit"`) {
				t.Errorf("after 20 hours and a restart the parcel is %s", body)
			}
			if resp, body, err := send(t, "POST", a.URL+"/shipments/shp_2001/cancel", "", "X-Mock-World", "w"); err != nil || resp.StatusCode != 200 {
				t.Error(resp, body, err)
			}
			end(t, cmd, sig)

			a, _, _ = launch(t, nil, "--port", "0", "--state", file)
			_, body, err := send(t, "GET", a.URL+"/shipments/shp_2001", "", "X-Mock-World", "w")
			if err != nil || !strings.Contains(body, `"status":"cancelled"`) {
				t.Error(body, err)
			}
			if _, body := buy(t, a, "k2"); !strings.Contains(body, "shp_2002") {
				t.Errorf("the next is %s", body)
			}
		})
	}
}

// Also where the answer was lost, the state is not.
func TestStateOfLostAnswers(t *testing.T) {
	for _, fault := range []string{`{"kind":"reset","phase":"after"}`, `{"kind":"stall","phase":"after"}`} {
		file := filepath.Join(t.TempDir(), "state.json")
		a, cmd, _ := launch(t, nil, "--port", "0", "--state", file)
		if resp, body, err := send(t, "POST", a.Admin+"faults", fault); err != nil || resp.StatusCode != 201 {
			t.Fatal(body, err)
		}
		lost := make(chan error, 1)
		go func() {
			_, _, err := send(t, "POST", a.URL+"/shipments", order, "Idempotency-Key", "k")
			lost <- err
		}()
		for {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), `"key":"k","fingerprint"`) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		end(t, cmd, syscall.SIGKILL)
		if err := <-lost; err == nil {
			t.Errorf("%s: an answer came", fault)
		}
		a, _, _ = launch(t, nil, "--port", "0", "--state", file)
		if resp, body := buy(t, a, "k"); resp.Header.Get("Idempotency-Replayed") != "true" || charges(t, a) != 1 {
			t.Errorf("%s: got %s %s, %d charges", fault, resp.Status, body, charges(t, a))
		}
	}
}

func TestBrokenStateIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "cut": `{"version":1,"worlds":{"":{"version":1,"sta`, "another file": "name,price\n", "newer": `{"version":7,"worlds":{"":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr strings.Builder
			status := run(t.Context(), []string{"--port", "0", "--state", file}, func(string) string { return "" }, nil, &stdout, &stderr)
			if status != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), file+" is no state that this program can read, and was left as it is: ") {
				t.Errorf("exit status %d, %q, %s", status, stdout.String(), stderr.String())
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != content {
				t.Errorf("the file is %q, %v", got, err)
			}
		})
	}
}

func openTestKeeper(t *testing.T, file string, log *strings.Builder) *keeper {
	t.Helper()
	worlds, err := mockcarrier.NewWorlds(3)
	if err != nil {
		t.Fatal(err)
	}
	k, err := openKeeper(file, worlds, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worlds.Close)
	return k
}

// Whoever reads the file while it is written finds a whole state, and no other
// file is left beside it.
func TestStateIsReplacedAsAWhole(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "state.json")
	k := openTestKeeper(t, file, new(strings.Builder))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 6 {
				req := httptest.NewRequest("POST", "/v1/shipments", strings.NewReader(order))
				req.Header.Set("X-Api-Key", mockcarrier.APIKey)
				req.Header.Set("Content-Type", "application/json")
				key := fmt.Sprintf("%d-%d", i, j)
				req.Header.Set("Idempotency-Key", key)
				rec := httptest.NewRecorder()
				k.ServeHTTP(rec, req)
				content, err := os.ReadFile(file)
				if rec.Code != 201 || err != nil || !strings.Contains(string(content), `"key":"`+key+`","fingerprint"`) {
					t.Errorf("%s: got %d, and the file does not have it (%v)", key, rec.Code, err)
				}
				other, err := mockcarrier.NewWorlds(3)
				if err == nil {
					err = other.Restore(content)
				}
				if err != nil {
					t.Errorf("%s: the file is %v", key, err)
				}
			}
		})
	}
	wg.Wait()
	if err := k.close(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if content, err := os.ReadFile(file); err != nil || strings.Contains(string(content), mockcarrier.APIKey) {
		t.Errorf("the API key is in the file, or %v", err)
	}
}

func TestStateThatCannotBeSaved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	log := new(strings.Builder)
	k := openTestKeeper(t, filepath.Join(folder, "state.json"), log)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/v1/shipments", strings.NewReader(order))
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	rec := httptest.NewRecorder()
	k.ServeHTTP(rec, req)
	if rec.Code != 201 || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("got %d, and the log is %s", rec.Code, log)
	}
	if err := k.close(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
