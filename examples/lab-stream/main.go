// Lab-stream fetches a document of 256 MiB to a file: read whole by net/http,
// and as a stream by carrier-go. Each client is a process of its own, so that
// its peak memory can be measured. Then the carrier cuts the connection three
// times.
//
//	go run ./examples/lab-stream
//
// It ends with an error if what it claims does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const mib = 1 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := run
	if isClient(os.Args) {
		command = client
	}
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab-stream:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("lab-stream", flag.ContinueOnError)
	flags.SetOutput(stdout)
	size := flags.Int64("size", 256, "the size of the document in `MiB`, 32 to 1024")
	dir := flags.String("dir", "", "write the files into a new directory below this `directory`; default: that for temporary files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *size < 32 || *size > 1024 {
		return errors.New("-size must lie between 32 and 1024")
	}
	files, err := os.MkdirTemp(*dir, "lab-stream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	doc := document{size: *size * mib}
	fmt.Fprintf(stdout, "A document of %d MiB goes to a file. Each client is a process of its own.\n\n", *size)
	fetches, err := fetchAll(ctx, doc, files)
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	printFetches(stdout, fetches)
	hash, err := doc.hash()
	if err != nil {
		return err
	}
	if err := check(doc.size, hash, fetches); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "\nA stream needs the same little memory for any size, and goes on where it was cut.")
	return nil
}
