package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a Chromium without a window, with one page open, that is spoken to
// over pipes by the DevTools protocol.
type browser struct {
	t       *testing.T
	to      io.Writer
	session string

	mu       sync.Mutex
	last     int
	waiting  map[int]chan message
	problems []string // what the console says
	asked    []string // the URLs of all requests
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patience is how long the browser may take for anything.
const patience = 30 * time.Second

// openBrowser starts a browser until the test ends. It skips the test where
// there is none, or PAGE_TEST does not ask for it.
func openBrowser(t *testing.T, flags ...string) *browser {
	t.Helper()
	if os.Getenv("PAGE_TEST") == "" {
		t.Skip("make page-test runs this, in a browser")
	}
	program := ""
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
		"--user-data-dir=" + t.TempDir(),
	}, flags...)...)
	cmd.ExtraFiles = []*os.File{theirs, ours} // 3 and 4, as the flag has it
	if err := cmd.Start(); err != nil {
		t.Skipf("Chromium does not start: %v", err)
	}
	_, _ = theirs.Close(), ours.Close()
	b := &browser{t: t, to: to, waiting: make(map[int]chan message)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.read(from)
	}()
	t.Cleanup(func() {
		b.call("Browser.close", nil, nil)
		_ = to.Close()
		<-ended
		_ = cmd.Wait()
	})
	b.attach()
	return b
}

func (b *browser) attach() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		b.call(domain+".enable", nil, nil)
	}
}

// read takes what the browser says, until it ends.
func (b *browser) read(from io.Reader) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c, ok := b.waiting[m.ID]; ok && m.ID != 0 {
			delete(b.waiting, m.ID)
			c <- m
		}
		switch m.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded":
			b.problems = append(b.problems, string(m.Params))
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			_ = json.Unmarshal(m.Params, &sent)
			b.asked = append(b.asked, sent.Request.URL)
		}
		b.mu.Unlock()
	}
}

// call does something in the browser. The result is nil if it does not matter.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.mu.Lock()
	b.last++
	id, c := b.last, make(chan message, 1)
	if b.waiting == nil {
		b.mu.Unlock()
		b.t.Errorf("%s: the browser has ended", method)
		return
	}
	b.waiting[id] = c
	b.mu.Unlock()
	request := map[string]any{"id": id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") && !strings.HasPrefix(method, "Target.") {
		request["sessionId"] = b.session
	}
	line, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(line, 0)); err != nil {
		b.t.Errorf("%s: %v", method, err)
		return
	}
	select {
	case m := <-c:
		switch {
		case m.Error != nil:
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		case result != nil:
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(patience):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.await(`document.readyState === "complete"`)
}

// eval returns what an expression of JavaScript, or its promise, comes to.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	return answer.Result.Value
}

// await waits until an expression of JavaScript is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if b.eval(expression) == true {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("it never came true: %s\nthe page says: %v", expression, b.eval("document.body.innerText"))
		}
	}
}

// press presses and releases a key.
func (b *browser) press(key string) {
	b.t.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key}
	switch key {
	case "Tab":
		event["windowsVirtualKeyCode"] = 9
	case "Enter":
		event["windowsVirtualKeyCode"], event["text"] = 13, "\r"
	case "Space":
		event["key"], event["windowsVirtualKeyCode"], event["text"] = " ", 32, " "
	}
	b.call("Input.dispatchKeyEvent", event, nil)
	delete(event, "text")
	event["type"] = "keyUp"
	b.call("Input.dispatchKeyEvent", event, nil)
}

// look sets the width of the page and the colours that its reader prefers.
func (b *browser) look(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// picture saves a picture of the page in the folder PAGE_OUT, if there is one.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("PAGE_OUT")
	if folder == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	content, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// complaints returns what the console has said so far, and forgets it.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.problems = nil }()
	return b.problems
}

// requested returns the URLs of all requests so far.
func (b *browser) requested() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// named is an element as assistive technology has it.
type named struct{ role, name string }

func (b *browser) accessible() []named {
	b.t.Helper()
	type value struct{ Value any }
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name value
		}
	}
	b.call("Accessibility.getFullAXTree", nil, &tree)
	var list []named
	for _, node := range tree.Nodes {
		if !node.Ignored {
			list = append(list, named{fmt.Sprint(node.Role.Value), strings.TrimSpace(fmt.Sprint(node.Name.Value))})
		}
	}
	return list
}
