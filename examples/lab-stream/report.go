package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

func printFetches(stdout io.Writer, fetches []fetch) {
	names := map[string]string{
		nothing: "a process that does nothing",
		whole:   "net/http and io.ReadAll",
		stream:  "carrier-go and io.Copy",
	}
	var most int64
	for _, f := range fetches {
		most = max(most, f.Peak)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   CLIENT\tCONNECTION\tREQUESTS\tFILE\tPEAK MEMORY")
	for _, f := range fetches {
		connection, file := "whole", "complete"
		switch {
		case f.how == nothing:
			connection, file = "", ""
		case f.how == whole && f.cuts > 0:
			connection = "cut" // the first is the last
		case f.cuts > 0:
			connection = fmt.Sprintf("cut %d times", f.cuts)
		}
		if f.Error != "" {
			file = "none: " + f.Error
		}
		bar := strings.Repeat("█", int((f.Peak*32+most/2)/most))
		fmt.Fprintf(w, "   %s\t%s\t%d\t%s\t%4d MiB %s\n", names[f.how], connection, len(f.requests), file, f.Peak/mib, bar)
	}
	_ = w.Flush()

	last := fetches[len(fetches)-1]
	fmt.Fprintln(stdout, "\nWhat the carrier saw of the last one:")
	fmt.Fprintln(w, "\n   ASKED FOR\tANSWER\tSENT")
	for _, r := range last.requests {
		asked := "everything"
		if r.Range != "" {
			asked = fmt.Sprintf("Range: %s, If-Range: %s", r.Range, r.ifRange)
		}
		fmt.Fprintf(w, "   %s\t%d\t%d MiB\n", asked, r.status, r.sent/mib)
	}
	_ = w.Flush()
}

// check compares what has happened with what the lab claims of a document of
// this size and hash.
func check(size int64, hash string, fetches []fetch) error {
	idle := fetches[0].Peak
	var wrong []error
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	for _, f := range fetches[1:] {
		name := fmt.Sprintf("%s with %d cuts", f.how, f.cuts)
		if f.how == whole && f.cuts > 0 {
			claim(f.Error != "", "%s: a file was written", name)
			continue
		}
		claim(f.Error == "" && f.hash == hash, "%s: another file: %s", name, f.Error)
		if f.how == whole {
			claim(f.Peak-idle >= size, "%s: %d MiB of memory, and the document has %d", name, (f.Peak-idle)/mib, size/mib)
		} else {
			claim(f.Peak-idle <= flat, "%s: %d MiB of memory more than a process that does nothing", name, (f.Peak-idle)/mib)
			claim(resumed(f.requests, f.cuts), "%s: these requests: %+v", name, f.requests)
		}
	}
	return errors.Join(wrong...)
}

// flat is what a stream may need more than a process that does nothing, however
// large the document.
const flat = 16 * mib

// resumed holds if each request begins where the one before was cut.
func resumed(requests []request, cuts int) bool {
	var from int64
	for i, r := range requests {
		if i > 0 && (r.Range != "bytes="+strconv.FormatInt(from, 10)+"-" || r.ifRange == "" || r.status != 206) {
			return false
		}
		from += r.sent
	}
	return len(requests) == cuts+1
}
