package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The clients.
const (
	nothing = "nothing"
	whole   = "whole"
	stream  = "stream"
)

// fetch is one run of a client in a process of its own.
type fetch struct {
	how  string
	cuts int

	outcome
	hash     string // of the file; "" if there is none
	requests []request
}

func fetchAll(ctx context.Context, doc document, dir string) ([]fetch, error) {
	fetches := []fetch{
		{how: nothing},
		{how: whole},
		{how: stream},
		{how: whole, cuts: cuts},
		{how: stream, cuts: cuts},
	}
	for i := range fetches {
		if err := fetches[i].run(ctx, doc, filepath.Join(dir, "label.pdf")); err != nil {
			return nil, err
		}
	}
	return fetches, nil
}

// run runs this program again, as a client, and looks at the file that it wrote.
func (f *fetch) run(ctx context.Context, doc document, file string) error {
	u := startUpstream(doc, f.cuts)
	defer u.close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, clientCommand, f.how, u.URL+"/v1", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the client %q: %w\n%s", f.how, err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &f.outcome); err != nil {
		return err
	}
	f.requests = u.close()
	if f.how == nothing || f.Error != "" {
		return nil
	}
	if f.hash, err = hashOfFile(file); err != nil {
		return err
	}
	return os.Remove(file)
}
