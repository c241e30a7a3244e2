package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/carrier-sdk/carrier-go/carrier"
)

const clientCommand = "fetch"

func isClient(args []string) bool { return len(args) == 5 && args[1] == clientCommand }

// outcome is what a client's process says at its end.
type outcome struct {
	Peak  int64  // memory, in bytes
	Error string // "" if the file is written
}

// client is a process that fetches the document: fetch HOW URL FILE.
func client(ctx context.Context, args []string, stdout io.Writer) error {
	url, file := args[2], args[3]
	var err error
	switch how := args[1]; how {
	case nothing:
	case whole:
		err = fetchWhole(ctx, url, file)
	case stream:
		err = fetchStream(ctx, url, file)
	default:
		return fmt.Errorf("no client %q", how)
	}
	o := outcome{Peak: peakMemory()}
	if err != nil {
		o.Error = err.Error()
	}
	return json.NewEncoder(stdout).Encode(o)
}

// fetchWhole reads the document into memory, and writes it to a file.
func fetchWhole(ctx context.Context, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/shipments/shp_1/label", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	label, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, label, 0o600)
}

// fetchStream copies the document to a file as it comes.
func fetchStream(ctx context.Context, url, file string) (err error) {
	client, err := carrier.New(url)
	if err != nil {
		return err
	}
	defer client.Close()
	label, err := client.GetLabel(ctx, "shp_1", carrier.GetLabelParams{})
	if err != nil {
		return err
	}
	defer label.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, label)
	return errors.Join(err, f.Close())
}
