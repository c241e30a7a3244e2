package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestNothingIsFetched puts the address of a server into every place that could
// name one. Nobody may ask there, and no file may change, though the
// configurations give leave to all.
func TestNothingIsFetched(t *testing.T) {
	const api, shared = "openapi/api.cfg.yaml", "openapi/shared.yaml"
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("A: {type: object, properties: {a: {type: string}}}\n"))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http:")
	schema := "#/components/schemas/Tracking'"
	cases := []struct {
		name           string
		path, old, new string
		want           string // "" where what is named is no reference, and nothing is wrong
	}{
		{"schema", specFile, schema, server.URL + "/a.yaml#/A'", "refusing"},
		{"schema, scheme in capitals", specFile, schema, "HTTP:" + host + "/a.yaml#/A'", "refusing"},
		{"schema, no scheme", specFile, schema, host + "/a.yaml#/A'", host},
		{"by a file beside", specFile, schema, "shared.yaml#/A'", "refusing"},
		{"path", specFile, "\npaths:\n", "\npaths:\n  /elsewhere:\n    $ref: '" + server.URL + "/a.yaml#/A'\n", "refusing"},
		{"answer", specFile, "#/components/responses/BadRequest'", server.URL + "/a.yaml#/A'", "refusing"},
		{"words", specFile, "version: 1.0.0", "version: 1.0.0\n  termsOfService: " + server.URL, ""},
		{"template", api, "client.tmpl: openapi/templates/requests.tmpl", "client.tmpl: " + server.URL, "no such file"},
	}
	root := checkout(t)
	must(t, root)
	before := generated(t, root)
	for _, c := range []string{api, "openapi/methods.cfg.yaml", "openapi/server.cfg.yaml", "openapi/server-base.cfg.yaml"} {
		change(t, root, c, "allow-remote-refs-from: []", "allow-remote-refs-from: ['*']")
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			whole, err := os.ReadFile(filepath.Join(root, tc.path))
			if err != nil {
				t.Fatal(err)
			}
			defer write(t, root, tc.path, string(whole))
			write(t, root, shared, "A: {$ref: '"+server.URL+"/a.yaml#/A'}\n")
			change(t, root, tc.path, tc.old, tc.new)
			_, err = generate(root)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
			if n := asked.Swap(0); n != 0 {
				t.Errorf("the server was asked %d times", n)
			}
			if !same(before, generated(t, root)) {
				t.Error("a file has changed")
			}
		})
	}
}

// TestGenerateIsOffline does the whole of it, with no way out.
func TestGenerateIsOffline(t *testing.T) {
	root := checkout(t)
	must(t, root)
	want := generated(t, root)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	t.Setenv("GOPROXY", "off")
	way := http.DefaultTransport
	defer func() { http.DefaultTransport = way }()
	http.DefaultTransport = noWay{t}
	write(t, root, methodsFile, "package carrier\n")
	must(t, root)
	if have := generated(t, root); !same(have, want) {
		t.Errorf("files are %v, want %v", have.paths(), want.paths())
	}
}

// noWay is a transport that leads nowhere, and tells.
type noWay struct{ t *testing.T }

func (n noWay) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("%s was asked for", r.URL)
	return nil, http.ErrAbortHandler
}
