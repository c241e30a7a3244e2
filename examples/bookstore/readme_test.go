package main

import (
	"bufio"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

var update = flag.Bool("update", false, "write what the commands of README.md answer into it")

// TestReadme starts what README.md starts, runs its commands in one shell, and
// compares what they answer with what stands there.
func TestReadme(t *testing.T) {
	for _, program := range []string{"sh", "curl", "grep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mock := mockcarrier.Start(t, mockcarrier.WithAPIKey(exported(t, readme, "CARRIER_API_KEY")))
	getenv := func(name string) string {
		switch name {
		case "CARRIER_API_KEY", "BOOKSTORE_TOKENS":
			return exported(t, readme, name)
		case "CARRIER_URL":
			return mock.URL
		}
		return ""
	}
	openWith(t, mock, listener, new(http.Transport), getenv)
	sh := startShell(t)

	carrierHost := strings.TrimSuffix(strings.TrimPrefix(mock.URL, "http://"), "/v1")
	here := strings.NewReplacer("127.0.0.1:8080", listener.Addr().String(), "127.0.0.1:52188", carrierHost)
	there := strings.NewReplacer(listener.Addr().String(), "127.0.0.1:8080", carrierHost, "127.0.0.1:52188")
	ran := 0
	got := consoleBlock.ReplaceAllStringFunc(string(readme), func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for _, command := range promptLine.FindAllStringSubmatch(block, -1) {
			ran++
			b.WriteString(command[0] + "\n" + there.Replace(sh.run(here.Replace(command[1]))))
		}
		return b.String() + "```\n"
	})
	if ran == 0 {
		t.Fatal("README.md has no commands")
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, should := strings.Split(timeless(got), "\n"), strings.Split(timeless(string(readme)), "\n")
	for i := range min(len(is), len(should)) {
		if is[i] != should[i] {
			t.Fatalf("line %d of README.md is\n%s\nand should be (go test -run TestReadme -update)\n%s", i+1, should[i], is[i])
		}
	}
	if len(is) != len(should) {
		t.Errorf("README.md has %d lines, and should have %d", len(should), len(is))
	}
}

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```\n")
	promptLine   = regexp.MustCompile(`(?m)^\$ (.*)$`)
	varying      = regexp.MustCompile(`"requestId":"[^"]*"|Retry-After: \d+|\d{4}-\d\d-\d\dT[0-9:]+(Z|[+-][0-9:]+)`)
)

// timeless takes out what is different each time.
func timeless(s string) string { return varying.ReplaceAllString(s, "…") }

// exported is what README.md tells to export.
func exported(t *testing.T, readme []byte, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^export ` + name + `=(.*)$`).FindSubmatch(readme)
	if m == nil {
		t.Fatalf("README.md does not export %s", name)
	}
	return string(m[1])
}

// shell runs one command after the other, as a person does at a terminal.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T) *shell {
	t.Helper()
	cmd := exec.Command("sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &shell{t, in, bufio.NewReader(out)}
}

func (sh *shell) run(command string) string {
	sh.t.Helper()
	const end = "--end--"
	if _, err := io.WriteString(sh.in, command+"\necho "+end+"\n"); err != nil {
		sh.t.Fatal(err)
	}
	var answer strings.Builder
	for {
		line, err := sh.out.ReadString('\n')
		if err != nil {
			sh.t.Fatalf("%s: %v", command, err)
		}
		if line == end+"\n" {
			return answer.String()
		}
		answer.WriteString(strings.ReplaceAll(line, "\r", ""))
	}
}
