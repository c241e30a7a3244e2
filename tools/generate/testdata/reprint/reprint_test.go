// Package reprint calls an operation that was added to the description, and
// nothing else. The test of the generator puts it into a copy of the module.
package reprint

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestAddedOperation(t *testing.T) {
	var keys, bodies []string
	answers := []int{http.StatusServiceUnavailable, http.StatusCreated, http.StatusNotFound}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := "POST /v1/labels/lbl_1/reprint"; r.Method+" "+r.RequestURI != want {
			t.Errorf("request is %s %s, want %s", r.Method, r.RequestURI, want)
		}
		keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, string(body))
		switch status := answers[len(keys)-1]; status {
		case http.StatusCreated:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"printed":2}`)
		case http.StatusNotFound:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code":"label_not_found"}`)
		default:
			w.WriteHeader(status)
		}
	}))
	defer server.Close()
	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey("k"),
		carrier.WithRetry(carrier.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := carrier.ReprintRequest{Copies: 2, Tray: new(carrier.ReprintRequestTrayUpper)}

	printed, err := client.ReprintLabel(t.Context(), "lbl_1", request, carrier.WithIdempotencyKey("again-1"))
	if err != nil {
		t.Fatal(err)
	}
	var result *carrier.ErrorModel = printed
	if result.Printed == nil || *result.Printed != 2 {
		t.Errorf("result is %+v", result)
	}
	if len(keys) != 2 || keys[0] != "again-1" || keys[1] != "again-1" || bodies[0] != bodies[1] {
		t.Errorf("attempts had the keys %q and the bodies %q", keys, bodies)
	}

	_, err = client.ReprintLabel(t.Context(), "lbl_1", request)
	var failure *carrier.Error
	if !errors.Is(err, carrier.ErrNotFound) || !errors.As(err, &failure) || failure.Problem == nil || failure.Problem.Code != "label_not_found" {
		t.Errorf("error is %v", err)
	}
	if len(keys) != 3 || keys[2] == "" || keys[2] == "again-1" {
		t.Errorf("a new call has the key %q", keys)
	}

	for _, bad := range []struct {
		id     string
		copies int
	}{{"..", 1}, {"UPPER", 1}, {"ab", 1}, {"lbl_1", 4}} {
		if _, err := client.ReprintLabel(t.Context(), bad.id, carrier.ReprintRequest{Copies: bad.copies}); !errors.Is(err, carrier.ErrInvalidRequest) {
			t.Errorf("%+v: error is %v", bad, err)
		}
	}
	if len(keys) != 3 {
		t.Error("a bad request was sent")
	}
}

func TestTable(t *testing.T) {
	want := resilience.Operation{
		ID:              "reprintLabel",
		Method:          "POST",
		Path:            "/labels/{labelId}/reprint",
		KeyHeader:       "Idempotency-Key",
		KeyTTL:          time.Hour,
		Group:           "labels",
		Success:         []resilience.Success{{Status: 201, ContentTypes: []string{"application/json"}}},
		Timeout:         90 * time.Second,
		AttemptTimeout:  500 * time.Millisecond,
		MaxBody:         65536,
		InProgressCodes: []string{"busy"},
		KeyReusedCodes:  []string{"key_taken", "key_spent"},
	}
	if !reflect.DeepEqual(*api.OpReprintLabel, want) {
		t.Errorf("operation is\n%+v, want\n%+v", *api.OpReprintLabel, want)
	}
}

func TestMockHasIt(t *testing.T) {
	server := httptest.NewServer(mockcarrier.New())
	defer server.Close()
	client, err := carrier.New(server.URL+"/v1", carrier.WithAPIKey(mockcarrier.APIKey))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.ReprintLabel(t.Context(), "lbl_1", carrier.ReprintRequest{Copies: 1})
	var failure *carrier.Error
	if !errors.As(err, &failure) || failure.StatusCode != http.StatusNotImplemented || failure.Problem == nil || failure.Problem.Code != "not_implemented" {
		t.Errorf("error is %v", err)
	}
}
