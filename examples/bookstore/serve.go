package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

const (
	toReadHeader = 5 * time.Second
	toRead       = 10 * time.Second // header and body
	toWrite      = 5 * time.Second  // an answer, when the time limit of its request has run out
)

// serve runs the service on listener until ctx ends, and stops it in order: the
// server, which lets the requests under way end, and then the client that they
// use.
func serve(ctx context.Context, cfg config, listener net.Listener, log *slog.Logger, more ...carrier.Option) error {
	defer listener.Close()
	orders, err := readOrders(cfg.orders)
	if err != nil {
		return err
	}
	client, err := newClient(cfg, log, more...)
	if err != nil {
		return err
	}
	defer client.Close()
	shop := &shop{carrier: client, orders: orders, tokens: cfg.tokens, cfg: cfg, log: log}
	server := newServer(cfg, shop.handler(), log)

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	log.Info("listening", "addr", listener.Addr().String())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return shop.stop(server)
	}
}

// stop says that the service is not ready, goes on for as long as load balancers
// need to see it, and stops the server. Every request ends within its own time
// limit, so that waiting for them costs no purchase its answer.
func (s *shop) stop(server *http.Server) error {
	s.stopping.Store(true)
	s.log.Info("stopping", "within", (s.cfg.drain + server.WriteTimeout).String())
	time.Sleep(s.cfg.drain)
	patience, cancel := context.WithTimeout(context.Background(), server.WriteTimeout)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		return errors.Join(fmt.Errorf("stopping: %w", err), server.Close())
	}
	s.log.Info("stopped")
	return nil
}

// newServer sets the limits that a server on a network needs. Those of the
// requests lie inside: WriteTimeout counts from the end of the header and cuts
// the connection without an answer, so that it has to be the last to run out.
func newServer(cfg config, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: toReadHeader,
		ReadTimeout:       toRead,
		WriteTimeout:      toRead + longest(cfg) + toWrite,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

func longest(cfg config) time.Duration { return max(cfg.trackTimeout, cfg.buyTimeout) }
