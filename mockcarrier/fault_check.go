package mockcarrier

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier/api"
)

// kinds has the phases in which each kind can strike, its usual one first, the
// statuses that it takes, and what it strikes.
var kinds = map[Kind]struct {
	phases      []Phase
	least, most int
	target      target
}{
	KindNone:     {},
	KindSequence: {},

	KindStatus:   {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 200, most: 599},
	KindHTML:     {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 200, most: 599},
	KindRedirect: {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}, least: 300, most: 399},
	KindDelay:    {phases: []Phase{PhaseDuring, PhaseBefore, PhaseAfter}},
	KindStall:    {phases: []Phase{PhaseBefore, PhaseDuring, PhaseAfter}},
	KindReset:    {phases: []Phase{PhaseBefore, PhaseAfter}},
	KindClose:    {phases: []Phase{PhaseBefore, PhaseAfter}},
	KindGarbage:  {phases: []Phase{PhaseAfter, PhaseBefore}},

	KindStallBody:     {phases: []Phase{PhaseAfter}},
	KindDrip:          {phases: []Phase{PhaseAfter}},
	KindTruncate:      {phases: []Phase{PhaseAfter}},
	KindResetBody:     {phases: []Phase{PhaseAfter}},
	KindBadChunk:      {phases: []Phase{PhaseAfter}},
	KindOverlong:      {phases: []Phase{PhaseAfter}},
	KindLargeHeader:   {phases: []Phase{PhaseAfter}},
	KindMalformedJSON: {phases: []Phase{PhaseAfter}},
	KindContentType:   {phases: []Phase{PhaseAfter}},
	KindBadGzip:       {phases: []Phase{PhaseAfter}},
	KindEmpty:         {phases: []Phase{PhaseAfter}},
	KindNoContentBody: {phases: []Phase{PhaseAfter}},
	KindOversize:      {phases: []Phase{PhaseAfter}},
	KindUnknownFields: {phases: []Phase{PhaseAfter}},
	KindUnknownEnums:  {phases: []Phase{PhaseAfter}},
	KindNulls:         {phases: []Phase{PhaseAfter}},
	KindZonelessTimes: {phases: []Phase{PhaseAfter}},
	KindEndlessPages:  {phases: []Phase{PhaseAfter}},
	KindDuplicate:     {phases: []Phase{PhaseAfter}},
	KindInformational: {phases: []Phase{PhaseAfter}, least: 100, most: 199},

	KindRefuse:    {target: connections},
	KindBlackhole: {target: connections},
	KindHandshake: {target: connections},

	KindRedeliver:      {target: deliveries},
	KindUnacknowledged: {target: deliveries},
	KindDeliverLate:    {target: deliveries},
	KindOutOfOrder:     {target: deliveries},
	KindBadSignature:   {target: deliveries},
	KindStaleSignature: {target: deliveries},
}

// Validate says what is wrong with the rule, or returns nil.
func (f Fault) Validate() error {
	kind, ok := kinds[f.Kind]
	if !ok {
		return fmt.Errorf("mockcarrier: no fault is of kind %q", f.Kind)
	}
	var problems []string
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	complain(f.Phase != "" && !slices.Contains(kind.phases, f.Phase), "phase %q is none of %q", f.Phase, kind.phases)
	complain(f.After < 0 || f.First < 0 || f.Every < 0 || f.AllBut < 0 || f.Count < 0, "a count is negative")
	complain(f.AllBut == 1, "all but each request is none")
	complain(f.Probability != nil && !(*f.Probability >= 0 && *f.Probability <= 1), "the probability is not from 0 to 1")
	complain(f.Wait < 0 || f.MaxWait < 0, "the wait is negative")
	complain(f.MaxWait != 0 && f.MaxWait < f.Wait, "the longest wait is shorter than the shortest")
	complain(!(f.Sigma >= 0) || math.IsInf(f.Sigma, 0), "sigma is not a number of at least 0")
	complain((f.MaxWait != 0 || f.Sigma != 0) && f.Kind != KindDelay && f.Kind != KindDeliverLate, "its waits do not vary")
	complain(f.Lasts < 0, "the time that it lasts is negative")
	complain(f.Bytes < 0, "the number of bytes is negative")
	complain(f.Status != 0 && kind.least == 0, "it has no status")
	complain(kind.least != 0 && (f.Status < kind.least || f.Status > kind.most),
		"status %d is not from %d to %d", f.Status, kind.least, kind.most)
	complain(f.Kind == KindInformational && f.Status == http.StatusSwitchingProtocols, "101 ends HTTP")
	complain(f.Kind == KindDrip && f.Bytes == 0, "pieces of no bytes never end")
	complain(!slices.Contains([]Framing{"", ByLength, ByChunks, ByClose}, f.Framing), "framing %q is unknown", f.Framing)
	complain(f.Framing != "" && f.Kind != KindTruncate && f.Kind != KindOversize, "it has no framing")
	complain(f.Kind == KindOversize && f.Framing == ByClose, "it comes by length or in chunks")
	complain(f.Code != "" && f.Kind != KindStatus, "it has no code")
	complain(f.RetryDate != nil && f.Kind != KindStatus && f.Kind != KindHTML && f.Kind != KindRedirect, "it has no Retry-After")
	complain(f.strikes() == connections && f.narrowed(), "a connection has no operation, key, reference, parcel or member")
	for _, name := range f.Operations {
		err := checkOperation(name)
		complain(err != nil && name != CallbackOperation, "%v", err)
	}
	ofCallback := slices.Contains(f.Operations, CallbackOperation)
	complain(f.strikes() == deliveries && (len(f.Keys) > 0 || len(f.Operations) > 1 || len(f.Operations) == 1 && !ofCallback),
		"a delivery has no key, and no operation but %s", CallbackOperation)
	complain(f.strikes() == requests && ofCallback && f.Kind != KindNone, "%s is no request that comes: only faults of deliveries strike it", CallbackOperation)
	complain(f.Kind == KindRedeliver && f.Count > mostRepetitions, "it repeats a notification up to %d times", mostRepetitions)
	complain(f.Kind == KindStaleSignature && f.Wait == 0, "it needs the age of the signature as its wait")
	for _, problem := range f.checkSteps() {
		complain(true, "%s", problem)
	}
	if _, err := compileAll(f.Match); err != nil {
		complain(true, "%s", strings.ReplaceAll(strings.ReplaceAll(err.Error(), "mockcarrier: ", ""), "\n", "; "))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New("mockcarrier: fault " + string(f.Kind) + ": " + strings.Join(problems, "; "))
}

// checkOperation refuses what is neither an operationId of the API nor
// [TokenOperation].
func checkOperation(name string) error {
	known := []string{}
	for _, o := range api.Operations() {
		known = append(known, o.ID)
	}
	if name == TokenOperation || slices.Contains(known, name) {
		return nil
	}
	slices.Sort(known)
	return fmt.Errorf("the API has no operation %q; it has %s", name, strings.Join(known, ", "))
}

// narrowed says whether the rule is for some requests only.
func (f Fault) narrowed() bool {
	return len(f.Operations)+len(f.Keys)+len(f.References)+len(f.TrackingNumbers)+len(f.Match) > 0
}

func (f Fault) checkSteps() []string {
	switch {
	case f.Kind == KindSequence && len(f.Steps) == 0:
		return []string{"it has no steps"}
	case f.Kind != KindSequence && (len(f.Steps) > 0 || f.Loop):
		return []string{"only a sequence has steps"}
	}
	var problems []string
	for i, step := range f.Steps {
		switch err := step.Validate(); {
		case err != nil:
			problems = append(problems, fmt.Sprintf("step %d: %s", i+1, strings.TrimPrefix(err.Error(), "mockcarrier: ")))
		case step.Kind == KindSequence:
			problems = append(problems, fmt.Sprintf("step %d is a sequence itself", i+1))
		case step.narrowed() || step.After != 0 || step.Every != 0 || step.AllBut != 0 || step.Probability != nil ||
			step.Lasts != 0 || !step.Ends.IsZero():
			problems = append(problems, fmt.Sprintf("step %d is narrowed down, which the whole can be", i+1))
		case step.Kind != KindNone && step.strikes() != f.strikes():
			problems = append(problems, fmt.Sprintf("step %d strikes something else than others do", i+1))
		}
	}
	return problems
}
