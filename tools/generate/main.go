// Command generate writes everything in this module that follows from
// openapi/carrier.yaml: models, request builders, operation table, typed
// methods and the mock's server interface.
//
// It runs oapi-codegen once for each openapi/*.cfg.yaml that names an output,
// adds what the templates cannot see, checks that the result compiles, and only
// then puts all files into place. If anything fails, every file is as it was.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", ".", "folder of the module")
	check := flag.Bool("check", false, "write nothing; fail if a file would change")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", oneLine(err))
		os.Exit(1)
	}
}

// run generates below root. With check it only compares.
func run(root string, check bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	files, err := generate(root)
	if err != nil {
		return err
	}
	changes, err := changed(root, files)
	if err != nil || len(changes) == 0 {
		return err
	}
	if check {
		return fmt.Errorf("make generate would change %s", strings.Join(changes, ", "))
	}
	if err := compiles(root, files); err != nil {
		return err
	}
	return replace(root, files)
}

func oneLine(err error) string {
	const most = 600
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > most {
		s = s[:most] + " …"
	}
	return s
}
