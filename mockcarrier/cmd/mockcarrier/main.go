// Command mockcarrier is the carrier as a test server, for programs in any
// language. When it is ready it prints one line of JSON with its addresses:
//
//	$ mockcarrier
//	{"url":"http://127.0.0.1:52188/v1","admin":"http://127.0.0.1:52188/__mock/"}
//
// It logs to stderr and ends on SIGINT and SIGTERM. "mockcarrier --help" has
// its settings.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program, without what is the process's. It returns the exit status.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	s, err := parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "mockcarrier:", err)
		return 2
	}
	if err := serve(ctx, s, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "mockcarrier:", strings.TrimPrefix(err.Error(), "mockcarrier: "))
		return 1
	}
	return 0
}

// serve serves until ctx ends.
func serve(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	origin, loopback := originOf(listener.Addr())
	admin := s.admin == adminOn || s.admin == adminAuto && loopback
	carrier := mockcarrier.New(s.options(logger, admin)...)
	ready := map[string]string{"url": origin + "/v1"}
	if admin {
		ready["admin"] = origin + "/__mock/"
	} else if s.admin == adminAuto {
		logger.Warn("no admin API, since the address is not loopback; --admin=on has it all the same", "addr", s.addr)
	}
	server := &http.Server{
		Handler:           carrier,
		ConnContext:       carrier.ConnContext,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := json.NewEncoder(stdout).Encode(ready); err != nil {
		return errors.Join(err, server.Close())
	}

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping")
	server.RegisterOnShutdown(carrier.Close)
	patience, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if server.Shutdown(patience) != nil {
		_ = server.Close()
	}
	<-ended
	carrier.Close()
	return nil
}

// originOf returns how the listener is reached on this machine, and whether it
// is reached from nowhere else.
func originOf(addr net.Addr) (string, bool) {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port)), tcp.IP.IsLoopback()
}
