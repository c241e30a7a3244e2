package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/internal/leaktest"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("BE_MOCKCARRIER") != "" {
		main()
	}
	os.Exit(leaktest.Run(m))
}

// addresses is the line that says that the program is ready.
type addresses struct{ URL, Admin, Certificate string }

func (a addresses) origin() string { return strings.TrimSuffix(a.URL, "/v1") }

// launch runs the program in a process of its own until the test ends.
func launch(t *testing.T, env []string, args ...string) (addresses, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append([]string{"BE_MOCKCARRIER=1", "GORACE=atexit_sleep_ms=0"}, env...)
	logs := new(bytes.Buffer)
	cmd.Stderr = logs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return awaitReady(t, cmd, stdout, logs), cmd, logs
}

// awaitReady waits until the program is.
func awaitReady(t *testing.T, cmd *exec.Cmd, stdout io.Reader, logs *bytes.Buffer) addresses {
	t.Helper()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, logs)
	}
	var a addresses
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	return a
}

func get(t *testing.T, url, key string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestProgram(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			a, cmd, logs := launch(t, []string{"CARRIER_ADDR=127.0.0.1:0", "CARRIER_API_KEY=mine", "CARRIER_LATENCY=1ms", "CARRIER_SEED=5"})
			if resp, body := get(t, a.URL+"/tracking/BK1001TR", "mine"); resp.StatusCode != 200 || !strings.Contains(body, "in_transit") {
				t.Errorf("got %s %s", resp.Status, body)
			}
			if resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey); resp.StatusCode != 401 {
				t.Errorf("another key: %s", resp.Status)
			}
			if resp, body := get(t, a.Admin+"requests", ""); resp.StatusCode != 200 || !strings.Contains(body, `"operation":"getTracking"`) {
				t.Errorf("got %s %s", resp.Status, body)
			}

			// A request that is held does not hold up the end.
			resp, err := http.Post(a.Admin+"faults", "application/json", strings.NewReader(`{"kind":"stall"}`))
			if err != nil || resp.StatusCode != 201 {
				t.Fatal(resp, err)
			}
			_ = resp.Body.Close()
			held := make(chan error, 1)
			go func() {
				resp, err := http.Get(a.URL + "/status")
				if err == nil {
					_ = resp.Body.Close()
				}
				held <- err
			}()
			for strings.Count(readAll(t, a.Admin+"requests"), `"fault":"stall"`) == 0 {
				time.Sleep(time.Millisecond)
			}
			start := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v: %s", err, logs)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("it took %v to end", took)
			}
			if err := <-held; err == nil {
				t.Error("the request that was held got an answer")
			}
			if !strings.Contains(logs.String(), "operation=getTracking") || strings.Contains(logs.String(), "mine") {
				t.Errorf("the log is\n%s", logs)
			}
		})
	}
}

func readAll(t *testing.T, url string) string {
	t.Helper()
	_, body := get(t, url, "")
	return body
}

func TestFailEvery(t *testing.T) {
	for name, launched := range map[string]func() addresses{
		"environment": func() addresses {
			a, _, _ := launch(t, []string{"CARRIER_FAIL_EVERY=3"}, "-addr", "127.0.0.1:0")
			return a
		},
		"flag": func() addresses {
			a, _, _ := launch(t, []string{"CARRIER_FAIL_EVERY=2"}, "-addr", "127.0.0.1:0", "--fail-every=3")
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := launched()
			var got []int
			for range 6 {
				resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey)
				got = append(got, resp.StatusCode)
				if resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
				}
			}
			if fmt.Sprint(got) != "[503 503 200 503 503 200]" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAdminIsForThisMachine(t *testing.T) {
	for _, tc := range []struct {
		addr, admin string
		has         bool
	}{
		{"127.0.0.1:0", "auto", true}, {"127.0.0.1:0", "off", false}, {"127.0.0.1:0", "on", true},
		{"0.0.0.0:0", "auto", false}, {"0.0.0.0:0", "off", false}, {"0.0.0.0:0", "on", true},
	} {
		t.Run(tc.addr+" "+tc.admin, func(t *testing.T) {
			a, _, _ := launch(t, []string{"CARRIER_ADMIN=" + tc.admin}, "-addr", tc.addr)
			if (a.Admin != "") != tc.has {
				t.Errorf("got %+v", a)
			}
			want := 404
			if tc.has {
				want = 200
			}
			if resp, _ := get(t, strings.TrimSuffix(a.URL, "/v1")+"/__mock/health", ""); resp.StatusCode != want {
				t.Errorf("got %s, want %d", resp.Status, want)
			}
		})
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	none := func(string) string { return "" }
	for name, tc := range map[string]struct {
		args   []string
		env    map[string]string
		status int
		says   string
	}{
		"help":             {args: []string{"--help"}, says: "two of three for 3, get 503"},
		"address":          {args: []string{"-addr", "52188"}, status: 2, says: "is not like 127.0.0.1:52188"},
		"unknown flag":     {args: []string{"-colour"}, status: 2, says: "colour"},
		"argument":         {args: []string{"start"}, status: 2, says: `"start"`},
		"no key":           {args: []string{"-api-key", ""}, status: 2, says: "empty"},
		"negative":         {args: []string{"-fail-every", "-1"}, status: 2, says: "at least 0"},
		"negative latency": {args: []string{"-latency", "-1s"}, status: 2, says: "at least 0"},
		"admin":            {args: []string{"-admin", "maybe"}, status: 2, says: "auto, on or off"},
		"port":             {args: []string{"-port", "65536"}, status: 2, says: "at most 65535"},
		"no port":          {args: []string{"-port", "http"}, status: 2, says: "http"},
		"label time":       {args: []string{"-label-time", "-1s"}, status: 2, says: "label-time is -1s"},
		"rate limit":       {args: []string{"-rate-limit", "-1"}, status: 2, says: "rate-limit is -1"},
		"worlds":           {args: []string{"-worlds", "-1"}, status: 2, says: "worlds is -1"},
		"journal":          {args: []string{"-journal", "0"}, status: 2, says: "journal is 0"},
		"certificate":      {args: []string{"-tls-cert", "x.pem"}, status: 2, says: "needs tls"},
		"log":              {args: []string{"-log", "xml"}, status: 2, says: "text, json or off"},
		"admin hosts":      {args: []string{"-port", "0", "-admin-hosts", "a:1"}, status: 1, says: "without a port"},
		"certificate file": {args: []string{"-port", "0", "-tls", "-tls-cert", "/nowhere/x.pem"}, status: 1, says: "certificate: "},
		"state folder":     {args: []string{"-port", "0", "-state", "/nowhere/state.json"}, status: 1, says: "state: "},
		"bool":             {env: map[string]string{"CARRIER_TLS": "perhaps"}, status: 2, says: "CARRIER_TLS=perhaps"},
		"environment":      {env: map[string]string{"CARRIER_LATENCY": "long"}, status: 2, says: "CARRIER_LATENCY=long"},
		"address in use":   {args: []string{"-addr", "256.0.0.1:1"}, status: 1, says: "listen"},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := none
			if tc.env != nil {
				getenv = func(name string) string { return tc.env[name] }
			}
			var stdout, stderr bytes.Buffer
			if status := run(context.Background(), tc.args, getenv, strings.NewReader(""), &stdout, &stderr); status != tc.status {
				t.Errorf("exit status %d, want %d", status, tc.status)
			}
			if !strings.Contains(stderr.String(), tc.says) || stdout.Len() > 0 {
				t.Errorf("stdout %q, stderr\n%s", stdout.String(), stderr.String())
			}
		})
	}
}
