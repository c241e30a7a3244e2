package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// mock is a mockcarrier in a process of its own.
type mock struct {
	url string
	cmd *exec.Cmd
}

// startMock starts program on a free port, and returns when it is ready: it
// then prints one line of JSON with its address.
func startMock(ctx context.Context, program string, stdout io.Writer) (*mock, error) {
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "CARRIER_ADDR=127.0.0.1:0", "CARRIER_API_KEY=", "CARRIER_FAIL_EVERY=", "CARRIER_LATENCY=")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &mock{cmd: cmd}
	line, err := bufio.NewReader(pipe).ReadBytes('\n')
	var ready struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil || ctx.Err() != nil {
		m.stop()
		return nil, fmt.Errorf("%s did not start: %w\n%s", program, errors.Join(err, ctx.Err()), stderr.Bytes())
	}
	m.url = ready.URL
	fmt.Fprintf(stdout, "mockcarrier is process %d at %s\n", cmd.Process.Pid, m.url)
	return m, nil
}

// stop asks the process to end, and waits for it.
func (m *mock) stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	_ = m.cmd.Wait()
}

// admin is the mock's API for tests.
type admin struct{ base string }

// origin is the mock's address without the path of its API.
func origin(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return baseURL
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// breakThings makes most attempts to buy fail, in the three ways that hurt:
// not processed, processed with the answer lost, and processed with an answer
// that never ends.
func (a admin) breakThings(ctx context.Context) error {
	for _, f := range []mockcarrier.Fault{
		mockcarrier.Status(http.StatusServiceUnavailable).EveryNth(3),
		mockcarrier.ResetAfter().EveryNth(4),
		mockcarrier.StallBody(40).EveryNth(5),
	} {
		if err := a.do(ctx, http.MethodPost, "/__mock/faults", f.On("createShipment").MayNotFire(), nil); err != nil {
			return err
		}
	}
	return nil
}

func (a admin) repair(ctx context.Context) error {
	return a.do(ctx, http.MethodDelete, "/__mock/faults", nil, nil)
}

func (a admin) advance(ctx context.Context, d time.Duration) error {
	return a.do(ctx, http.MethodPost, "/__mock/clock", map[string]string{"advance": d.String()}, nil)
}

func (a admin) ledger(ctx context.Context) (charges []mockcarrier.Charge, err error) {
	err = a.do(ctx, http.MethodGet, "/__mock/ledger", nil, &charges)
	return charges, err
}

func (a admin) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
