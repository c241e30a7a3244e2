package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// killedInBetween is the second scene: the process that buys is killed after
// the carrier has acted and before it has answered. A new one buys what it finds
// unfinished.
func killedInBetween(ctx context.Context, u *upstream, stdout io.Writer) error {
	fmt.Fprintln(stdout, "\n2. The buying process is killed before the answer comes, and a new one goes on.")
	for _, c := range []struct{ order, key, where string }{
		{randomKey, "random", "a random key, which dies with the process"},
		{derivedKey, "derived", "a key derived from the order, the same in every process"},
	} {
		fmt.Fprintf(stdout, "\n   %s, %s:\n", c.order, c.where)
		if err := killedOnce(ctx, u, c.order, c.key, stdout); err != nil {
			return err
		}
	}
	return nil
}

func killedOnce(ctx context.Context, u *upstream, order, key string, stdout io.Writer) error {
	first, err := startBuyer(ctx, u.url, order, key)
	if err != nil {
		return err
	}
	notBought := u.bought(ctx, order)
	notKilled := first.Process.Kill()
	_ = first.Wait()
	first.show(stdout)
	if err := errors.Join(notBought, notKilled); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "     the carrier has bought, and not answered; kill -9 %d: %s\n", first.Process.Pid, first.ProcessState)

	second, err := startBuyer(ctx, u.url, order, key)
	if err != nil {
		return err
	}
	err = second.Wait()
	second.show(stdout)
	return err
}

// process is a buyer in a process of its own.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

// startBuyer runs this program again, as a buyer.
func startBuyer(ctx context.Context, url, order, key string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{Cmd: exec.CommandContext(ctx, self, buyCommand, url, order, key)}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p, p.Start()
}

// show prints what the process has said.
func (p *process) show(w io.Writer) {
	for line := range strings.Lines(p.stdout.String() + p.stderr.String()) {
		fmt.Fprintf(w, "     process %d: %s\n", p.Process.Pid, strings.TrimSpace(line))
	}
}
