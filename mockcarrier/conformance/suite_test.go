package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs what comes behind an answer
	os.Exit(m.Run())
}

var update = flag.Bool("update", false, "write the golden files in testdata")

// unlike runs a client, and says where its verdicts are not those that are
// wanted. On a busy machine some come by accident: those cases are run again,
// and count if they are the same each time.
func unlike(newClient func(string) conformance.Client, want []string, only ...string) (*conformance.Scorecard, []string) {
	card := conformance.CheckOnce(newClient, only...)
	diff := differences(card, want)
	for run := 0; run < 3 && len(diff) > 0; run++ {
		var ids []string
		for id := range diff {
			ids = append(ids, id)
		}
		again := conformance.CheckOnce(newClient, ids...)
		diff = differences(again, want)
		for _, score := range again.Scores {
			i := slices.IndexFunc(card.Scores, func(s conformance.Score) bool { return s.ID == score.ID })
			card.Scores[i] = score
		}
	}
	var all []string
	for id, what := range diff {
		all = append(all, id+": "+what)
	}
	slices.Sort(all)
	return card, all
}

// differences are the cases of a scorecard whose verdicts are not as wanted.
func differences(card *conformance.Scorecard, want []string) map[string]string {
	diff := map[string]string{}
	for _, s := range card.Scores {
		wanted := conformance.Holds
		for _, v := range []conformance.Verdict{conformance.Fails, conformance.NotTold} {
			if slices.Contains(want, string(v)+": "+s.ID) {
				wanted = v
			}
		}
		if s.Verdict != wanted {
			diff[s.ID] = fmt.Sprintf("%s, and the golden file has: %s; %q", s.Verdict, wanted, s.Findings)
		}
	}
	return diff
}

// merged are the lines of a golden file with those of a scorecard in place of
// what it has of the same cases.
func merged(want []string, card *conformance.Scorecard) []string {
	verdicts := map[string]string{}
	for _, line := range want {
		_, id, _ := strings.Cut(line, ": ")
		verdicts[id] = line
	}
	for _, s := range card.Scores {
		verdicts[s.ID] = string(s.Verdict) + ": " + s.ID
	}
	all := []string{}
	for _, c := range conformance.Cases() {
		if line, ok := verdicts[c.ID]; ok && line != string(conformance.Holds)+": "+c.ID {
			all = append(all, line)
		}
	}
	return all
}

func readGolden(t *testing.T, name string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][]string
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

func writeGolden(t *testing.T, name string, golden map[string][]string) {
	t.Helper()
	data, err := json.MarshalIndent(golden, "", "  ")
	if err == nil {
		err = os.WriteFile(name, append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A call by hand with net/http breaks exactly the rules of the golden file.
func TestPlainHTTPClient(t *testing.T) {
	t.Parallel()
	const golden = "testdata/nethttp.json"
	want := readGolden(t, golden)["net/http"]
	card, diff := unlike(newPlain, want)
	for _, d := range diff {
		t.Error(d)
	}
	if *update {
		writeGolden(t, golden, map[string][]string{"net/http": merged(want, card)})
	}
	t.Log("\n" + card.String())
}

func TestScorecardAsJSON(t *testing.T) {
	t.Parallel()
	card := conformance.Check(newPlain, "errors/status", "idempotency/key-made")
	card.Name = "net/http"
	data, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Name   string
		Total  conformance.Total
		Groups []conformance.Total
		Scores []struct {
			ID, Title, Source string
			Verdict           conformance.Verdict
			Findings          []string
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	if document.Name != "net/http" || len(document.Groups) != 2 || len(document.Scores) != 2 ||
		document.Total != (conformance.Total{Cases: 2, Holds: 1, Fails: 1}) {
		t.Errorf("%s", data)
	}
}

// The cases have what a reader needs, and an ID of their own.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		if seen[c.ID] || c.Title == "" || c.Source == "" || c.Group() == "" || c.Group() == c.ID {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		if outside.MatchString(c.Source) {
			t.Errorf("%s: nobody can look %q up", c.ID, c.Source)
		}
	}
}

// outside are the names of notes that are not in this repository.
var outside = regexp.MustCompile(`anchors|design|semantics|standards`)

// Every kind of fault of the carrier is in the matrix, but for that of lists,
// which a Client has none of.
func TestEveryKindOfFault(t *testing.T) {
	source, err := os.ReadFile("../fault.go")
	if err != nil {
		t.Fatal(err)
	}
	matrix, err := os.ReadFile("cases/faults.json")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`Kind\w+\s+Kind = "([^"]+)"`).FindAllSubmatch(source, -1)
	if len(kinds) < 30 {
		t.Fatalf("%d kinds are found", len(kinds))
	}
	for _, kind := range kinds {
		if name := string(kind[1]); name != string(mockcarrier.KindEndlessPages) && !bytes.Contains(matrix, []byte(`"kind": "`+name+`"`)) {
			t.Errorf("%s is not in the matrix", name)
		}
	}
}

// crude is a client that panics or hangs.
type crude struct{ track func(context.Context) }

func (c crude) Track(ctx context.Context, _ string) conformance.Result {
	c.track(ctx)
	return conformance.Result{}
}
func (c crude) Ship(context.Context, string, []byte) conformance.Result {
	return conformance.Result{}
}
func (c crude) Label(context.Context, string, io.Writer) conformance.Result {
	return conformance.Result{}
}
func (c crude) Close() error { return errors.New("the door is stuck") }

func TestCrudeClients(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(context.Context)
		want []string
	}{
		"panics":       {func(context.Context) { panic("no\nway") }, []string{"panics: no", "its Close fails: the door is stuck"}},
		"hangs":        {func(context.Context) { select {} }, []string{"the call is still running after 2.1s", "its Close fails: the door is stuck"}},
		"does nothing": {func(context.Context) {}, []string{"the call succeeds, with the value \"\"; it must fail", "its Close fails: the door is stuck"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			card := conformance.Check(func(string) conformance.Client { return crude{test.do} }, "deadlines/no-answer/track")
			got := card.Scores[0].Findings
			if len(got) < len(test.want) {
				t.Fatal(got)
			}
			for i, finding := range test.want {
				if !slices.Contains(got, finding) {
					t.Errorf("finding %d of %q is not %q", i, got, finding)
				}
			}
		})
	}
}
