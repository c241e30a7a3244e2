// Command compare puts this SDK and what others use in its place to the same
// test, mockcarrier/conformance, and prints how many rules of each group hold.
//
//	go run . [-only net/http,resty] [-group retries] [-cases] [-json]
//
// Each library is set up as its documentation shows, with three attempts, the
// backoff of this SDK's defaults and an attempt time limit of a second, where it
// has an option for that. Around it is what its users write: make the request,
// look at the status, read and decode the body. What a library does not tell, such
// as the outcome of a call, counts as a rule that does not hold.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

func main() {
	log.SetOutput(io.Discard) // net/http writes there when a server says too much
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(progress)
	only := flags.String("only", "", "the libraries, with commas between; all of them by default")
	groups := flags.String("group", "", "the groups or cases, with commas between; all of them by default")
	cases := flags.Bool("cases", false, "print the whole scorecard of each")
	asJSON := flags.Bool("json", false, "print the scorecards as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	var cards []*conformance.Scorecard
	for _, l := range chosen {
		fmt.Fprintln(progress, l.name)
		card := conformance.Check(l.new, list(*groups)...)
		if len(card.Scores) == 0 {
			return fmt.Errorf("there is no case %s", *groups)
		}
		card.Name = l.name
		cards = append(cards, card)
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(cards)
	}
	if *cases {
		for _, card := range cards {
			fmt.Fprintf(out, "== %s\n%s\n", card.Name, card)
		}
	}
	return conformance.WriteTable(out, cards...)
}

// choose returns the libraries that are named, in the order of the table.
func choose(names string) ([]library, error) {
	wanted := list(names)
	if len(wanted) == 0 {
		return libraries, nil
	}
	var chosen []library
	for _, l := range libraries {
		if i := slices.Index(wanted, l.name); i >= 0 {
			chosen, wanted = append(chosen, l), slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("there is no library %s", strings.Join(wanted, ", "))
	}
	return chosen, nil
}

func list(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
}
