package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// It takes some 30 ms; the bound is for a machine that is busy, with the race
// detector on.
func TestReadySoon(t *testing.T) {
	var times []time.Duration
	for range 5 {
		start := time.Now()
		launch(t, nil, "--port", "0")
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	t.Logf("ready after %v", times)
	if times[2] > time.Second {
		t.Errorf("it was ready after %v", times)
	}
}

func TestPort(t *testing.T) {
	a, _, _ := launch(t, []string{"CARRIER_PORT=1"}, "--addr", "127.0.0.1:52188", "--port", "0")
	if _, port, err := net.SplitHostPort(strings.TrimPrefix(a.origin(), "http://")); err != nil || port == "52188" || port == "1" {
		t.Errorf("it listens at %s", a.URL)
	}
	if resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}
}

func TestVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"--version"}, func(string) string { return "" }, nil, &stdout, &stderr)
	if status != 0 || stdout.String() != "mockcarrier "+carrier.Version+"\n" {
		t.Errorf("exit status %d, %q, %q", status, &stdout, &stderr)
	}
}

func TestEndsWithStdin(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--port", "0", "--exit-on-stdin-close")
	cmd.Env = []string{"BE_MOCKCARRIER=1", "GORACE=atexit_sleep_ms=0"}
	logs := new(bytes.Buffer)
	cmd.Stderr = logs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	a := awaitReady(t, cmd, stdout, logs)
	if _, err := stdin.Write([]byte("not the end\n")); err != nil {
		t.Fatal(err)
	}
	if resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(logs.String(), "stopping") {
		t.Errorf("it ended with %v: %s", err, logs)
	}
}

// Without being asked to, it does not look at its stdin.
func TestGoesOnWithoutStdin(t *testing.T) {
	a, _, _ := launch(t, nil, "--port", "0") // stdin is the null device
	if resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}
}

func TestTLS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "carrier.pem")
	a, _, _ := launch(t, []string{"CARRIER_TLS=true"}, "--port", "0", "--tls-cert", file)
	if !strings.HasPrefix(a.URL, "https://127.0.0.1:") || !strings.HasPrefix(a.Admin, "https://") || a.Certificate != file {
		t.Errorf("got %+v", a)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(pem, []byte("PRIVATE")) {
		t.Error("the private key is in the file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", pem)
	}
	for name, tc := range map[string]struct {
		host  string
		http2 bool
		proto string
	}{
		"HTTP 1.1, address": {"127.0.0.1", false, "HTTP/1.1"},
		"HTTP 2, name":      {"localhost", true, "HTTP/2.0"},
	} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: tc.host}, ForceAttemptHTTP2: tc.http2, DisableKeepAlives: true,
		}}
		resp, err := client.Get(a.URL + "/status")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = resp.Body.Close()
		if resp.Proto != tc.proto {
			t.Errorf("%s: got %s", name, resp.Proto)
		}
	}
	stranger := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if _, err := stranger.Get(a.URL + "/status"); err == nil {
		t.Error("a client that does not know the certificate trusts it")
	}
}

func TestHTTP2InTheClear(t *testing.T) {
	a, _, _ := launch(t, nil, "--port", "0")
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(a.URL + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.Proto != "HTTP/2.0" {
		t.Errorf("got %s", resp.Proto)
	}
}

func TestLogs(t *testing.T) {
	for form, check := range map[string]func(t *testing.T, logs string){
		"json": func(t *testing.T, logs string) {
			var found bool
			for _, line := range strings.Split(strings.TrimSpace(logs), "\n") {
				var entry struct {
					Msg, Operation string
					Status         int
				}
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Errorf("%v in %s", err, line)
				}
				found = found || entry.Msg == "request" && entry.Operation == "getStatus" && entry.Status == 200
			}
			if !found {
				t.Errorf("the request is not in\n%s", logs)
			}
		},
		"text": func(t *testing.T, logs string) {
			if !strings.Contains(logs, "msg=request operation=getStatus") {
				t.Errorf("the request is not in\n%s", logs)
			}
		},
		"off": func(t *testing.T, logs string) {
			if logs != "" {
				t.Errorf("got\n%s", logs)
			}
		},
	} {
		t.Run(form, func(t *testing.T) {
			a, cmd, logs := launch(t, []string{"CARRIER_LOG=" + form}, "--port", "0")
			get(t, a.URL+"/status", mockcarrier.APIKey)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			check(t, logs.String())
		})
	}
}

const order = `{"reference":"order-1001","service":"standard",` +
	`"from":{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"},` +
	`"to":{"name":"Deniz Kaya","line1":"12 Park Avenue","city":"Ankara","postalCode":"06000","country":"TR"},` +
	`"parcels":[{"weight":{"value":1.2,"unit":"kg"}}]}`

// send sends a request as a program does. Headers come in pairs.
func send(t *testing.T, method, url, body string, headers ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", mockcarrier.APIKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp, string(content), err
}

func buy(t *testing.T, a addresses, key string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp, body, err := send(t, "POST", a.URL+"/shipments", order, append([]string{"Idempotency-Key", key}, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func charges(t *testing.T, a addresses, headers ...string) int {
	t.Helper()
	_, body, err := send(t, "GET", a.Admin+"ledger", "", headers...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(body, `"shipmentId"`)
}

func TestWorldsOfTheProgram(t *testing.T) {
	a, _, _ := launch(t, nil, "--port", "0", "--worlds", "2")
	for i, world := range []string{"a", "b"} {
		for n := range i + 1 {
			if resp, body := buy(t, a, fmt.Sprint(n), "X-Mock-World", world); resp.StatusCode != 201 {
				t.Errorf("got %s %s", resp.Status, body)
			}
		}
	}
	if charges(t, a) != 0 || charges(t, a, "X-Mock-World", "a") != 1 || charges(t, a, "X-Mock-World", "b") != 2 {
		t.Error("the worlds are not apart")
	}
	if resp, body := buy(t, a, "k", "X-Mock-World", "c"); resp.StatusCode != 409 {
		t.Errorf("a third world: got %s %s", resp.Status, body)
	}
}

// Connections can be refused as well as requests.
func TestFaultsOfConnections(t *testing.T) {
	a, _, _ := launch(t, nil, "--port", "0")
	if resp, body, err := send(t, "POST", a.Admin+"faults", `{"kind":"refuse","first":1}`); err != nil || resp.StatusCode != 201 {
		t.Fatal(body, err)
	}
	if _, _, err := send(t, "GET", a.URL+"/status", ""); err == nil {
		t.Error("the connection was not refused")
	}
	if resp, _, err := send(t, "GET", a.URL+"/status", ""); err != nil || resp.StatusCode != 200 {
		t.Error(resp, err)
	}
}

func TestBehaviourByFlags(t *testing.T) {
	a, _, _ := launch(t, []string{"CARRIER_UNIQUE_REFERENCES=true", "CARRIER_STORE_SERVER_ERRORS=true"},
		"--port", "0", "--strict-keys", "--rate-limit", "8", "--label-time", "1h")
	if resp, body := buy(t, a, "plain"); resp.StatusCode != 400 {
		t.Errorf("a key without quotes: got %s %s", resp.Status, body)
	}
	if resp, body, err := send(t, "POST", a.Admin+"faults", `{"kind":"status","status":500,"phase":"during","first":1}`); err != nil || resp.StatusCode != 201 {
		t.Fatal(body, err)
	}
	for range 2 {
		if resp, body := buy(t, a, `"failed"`); resp.StatusCode != 500 {
			t.Errorf("got %s %s", resp.Status, body)
		}
	}
	if resp, body := buy(t, a, `"one"`); resp.StatusCode != 201 {
		t.Errorf("got %s %s", resp.Status, body)
	}
	if resp, body := buy(t, a, `"two"`); resp.StatusCode != 409 || !strings.Contains(body, "duplicate_reference") {
		t.Errorf("got %s %s", resp.Status, body)
	}
	if resp, _ := get(t, a.URL+"/shipments/shp_2001/label", mockcarrier.APIKey); resp.StatusCode != 202 {
		t.Errorf("got %s", resp.Status)
	}
	var last int
	for range 4 {
		resp, _ := get(t, a.URL+"/status", mockcarrier.APIKey)
		last = resp.StatusCode
	}
	if last != 429 {
		t.Errorf("after too many requests: got %d", last)
	}
}

func TestAdminHosts(t *testing.T) {
	a, _, _ := launch(t, []string{"CARRIER_ADMIN_HOSTS=carrier.internal,other.internal"}, "--port", "0")
	for host, want := range map[string]int{"carrier.internal": 200, "other.internal:80": 200, "attacker.example": 403} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", a.Admin+"health", http.NoBody)
		req.Host = host
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", host, resp.Status, want)
		}
	}
}
