package mockcarrier

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/openapi"
)

// The description has each operation that there is, and no other.
func TestAdminOperationsAreDescribed(t *testing.T) {
	worlds, err := NewWorlds(1, WithAdmin(true))
	if err != nil {
		t.Fatal(err)
	}
	defer worlds.Close()
	paths, _, _ := strings.Cut(openapi.Admin(), "\ncomponents:\n")
	described := map[string]bool{}
	path := ""
	for _, line := range strings.Split(paths, "\n") {
		if m := regexp.MustCompile(`^  (/\S*):$`).FindStringSubmatch(line); m != nil {
			path = m[1]
		}
		if m := regexp.MustCompile(`^    (get|put|post|delete|patch|head|options):$`).FindStringSubmatch(line); m != nil {
			described[strings.ToUpper(m[1])+" "+path] = true
		}
	}
	if len(described) < 15 {
		t.Fatalf("only %d operations are found in the description", len(described))
	}
	names := map[string]bool{}
	for operation := range described {
		_, path, _ := strings.Cut(operation, " ")
		names[path] = true
	}
	for path := range names {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "PATCH"} {
			req, _ := http.NewRequest(method, "/__mock"+strings.NewReplacer("{id}", "1", "{world}", "w").Replace(path), http.NoBody)
			req.Host = "localhost"
			rec := &recorder{header: http.Header{}}
			worlds.ServeHTTP(rec, req)
			if got := rec.status != http.StatusMethodNotAllowed; got != described[method+" "+path] {
				t.Errorf("%s %s: answered with %d, described: %v", method, path, rec.status, described[method+" "+path])
			}
		}
	}
}

// The schemas have the members that the Go types have.
func TestAdminSchemasAreComplete(t *testing.T) {
	probability, later, yes := 0.5, time.Second, true
	matcher := Matcher{In: InBody, Name: "x", Equals: "x", Includes: "x", Matches: "x", OneOf: []any{"x"}, Present: &yes}
	for name, v := range map[string]any{
		"Request": Request{
			Seq: 1, Operation: "x", Method: "x", Path: "x", Query: "x", Parameters: map[string]string{"x": "x"},
			Header: http.Header{}, Body: []byte("x"), BodySize: 1, Key: "x", Connection: 1, Nth: 1, ResentOf: 1,
			Expected: "x", Unexpected: true, RequestID: "x", Fault: "x", Status: 200, Replayed: true, Answer: []byte("x"),
			At: time.Unix(1, 0), Duration: 1,
		},
		"Charge": Charge{
			Key: "x", Reference: "x", ShipmentID: "x", TrackingNumber: "x", Amount: "x", Currency: "x", At: time.Unix(1, 0),
		},
		"Delivery": Delivery{
			Seq: 1, Notification: "x", Type: "x", TrackingNumber: "x", Subscription: "x", Attempt: 1, Duplicate: true,
			Signature: SignatureGood, Fault: "x", Status: 204, Err: "x", At: time.Unix(1, 0),
		},
		"Fault": Fault{
			Kind: KindStatus, Phase: PhaseAfter, Operations: []string{"x"}, Keys: []string{"x"}, References: []string{"x"},
			TrackingNumbers: []string{"x"}, Match: []Matcher{matcher}, After: 1, First: 1, Every: 1, AllBut: 2,
			Probability: &probability, Seed: 1, Lasts: 1, Ends: time.Unix(1, 0), Optional: true, Steps: []Fault{{Kind: KindNone}}, Loop: true,
			Status: 503, Code: "x", Header: http.Header{"X": {"x"}}, RetryDate: &later, Body: "x", Wait: 1, MaxWait: 2, Sigma: 1,
			Bytes: 1, Framing: ByLength, Count: 1,
		},
		"Matcher": matcher,
		"Expectation": expectationOrder{
			Operation: "x", With: []Matcher{matcher}, Times: new(int), AtLeast: new(int), AtMost: new(int),
		},
		"ExpectationReport": ExpectationReport{Operation: "x", With: []string{"x"}, Wanted: "x", Came: 1, Met: true},
		"Verdict":           Verdict{What: "x", Applies: true, Criteria: []Criterion{{}}},
		"Criterion":         Criterion{What: "x", OK: true, Want: "x", Got: "x", Diff: []string{"x"}},
	} {
		// A field that is added has to be set above, so that its member is seen.
		value := reflect.ValueOf(v)
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Errorf("%s.%s is not set in this test", name, value.Type().Field(i).Name)
			}
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(encoded, &members); err != nil {
			t.Fatal(err)
		}
		got, want := propertiesOf(t, name), sortedNames(members)
		if !slices.Equal(got, want) {
			t.Errorf("%s: described are %v, there are %v", name, got, want)
		}
	}
}

func TestAdminDescribesEachKind(t *testing.T) {
	section := schemaOf(t, "FaultKind")
	var described []string
	for _, m := range regexp.MustCompile(`(?m)^        - (\S+)$`).FindAllStringSubmatch(section, -1) {
		described = append(described, m[1])
	}
	slices.Sort(described)
	var there []string
	for kind := range kinds {
		there = append(there, string(kind))
	}
	slices.Sort(there)
	if !slices.Equal(described, there) {
		t.Errorf("described are %v, there are %v", described, there)
	}
}

// schemaOf returns the lines of a schema in the description.
func schemaOf(t *testing.T, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(openapi.Admin(), "\n    "+name+":\n      type: ")
	if !ok {
		t.Fatalf("there is no schema %s", name)
	}
	if end := regexp.MustCompile(`(?m)^    \S`).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

func propertiesOf(t *testing.T, name string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(schemaOf(t, name), "\n      properties:\n")
	if !ok {
		t.Fatalf("the schema %s has no properties", name)
	}
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^        (\w+):$`).FindAllStringSubmatch(rest, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return found
}
