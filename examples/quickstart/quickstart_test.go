package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// Twice against the same carrier: the keys come from the orders, so the second
// run buys nothing.
func TestTwiceAgainstTheSameCarrier(t *testing.T) {
	mock := mockcarrier.New()
	t.Cleanup(mock.Close)
	server := httptest.NewUnstartedServer(mock)
	server.Config.ConnContext = mock.ConnContext
	server.Start()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	for n := range 2 {
		var out bytes.Buffer
		err := run(t.Context(), []string{"-url", server.URL + "/v1", "-out", dir, "-attempt-timeout", "100ms"}, &out)
		if err != nil {
			t.Fatalf("run %d: %v\n%s", n+1, err, out.String())
		}
		if !strings.Contains(out.String(), "Every order was bought exactly once.") {
			t.Errorf("run %d:\n%s", n+1, out.String())
		}
		if charges := len(mock.Ledger()); charges != 20 {
			t.Errorf("run %d: %d charges, want 20", n+1, charges)
		}
	}
	labels, err := filepath.Glob(filepath.Join(dir, "label-*.pdf"))
	if err != nil || len(labels) != 1 {
		t.Fatalf("labels: %v, %v", labels, err)
	}
	saved, err := os.ReadFile(labels[0])
	if err != nil || !bytes.HasPrefix(saved, []byte("%PDF-")) {
		t.Errorf("the label is no PDF: %v", err)
	}
	var struck strings.Builder
	for _, r := range mock.Requests() {
		struck.WriteString(r.Fault + "\n")
	}
	for _, kind := range []mockcarrier.Kind{mockcarrier.KindStatus, mockcarrier.KindReset, mockcarrier.KindStallBody} {
		if !strings.Contains(struck.String(), string(kind)) {
			t.Errorf("no %s among the faults that struck", kind)
		}
	}
}

// A double charge must not go by unseen.
func TestCompareSeesADoubleCharge(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /__mock/ledger", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"reference":"order-1001","shipmentId":"a"},{"reference":"order-1001","shipmentId":"b"}]`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	orders, err := readOrders("")
	if err != nil {
		t.Fatal(err)
	}
	bought := make([]purchase, 1)
	bought[0].Shipment = newShipment("a")
	err = compare(t.Context(), admin{server.URL}, orders[:1], bought, new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "charged 2 times") {
		t.Errorf("compare: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"no mock":        {},
		"no such file":   {"-url", "http://127.0.0.1:1/v1", "-orders", filepath.Join(t.TempDir(), "none.json")},
		"no such flag":   {"-nonsense"},
		"no carrier":     {"-url", "http://127.0.0.1:1/v1"},
		"a bad URL":      {"-url", "ftp://127.0.0.1/v1"},
		"no such binary": {"-mock", filepath.Join(t.TempDir(), "none")},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
				t.Error("no error")
			}
			if d := time.Since(begun); d > 10*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

func newShipment(id string) *carrier.Shipment { return &carrier.Shipment{ID: id} }
