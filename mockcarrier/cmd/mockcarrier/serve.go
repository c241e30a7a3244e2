package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/selfsigned"
)

// ready is the line that says that the program answers.
type ready struct {
	URL   string `json:"url"`
	Admin string `json:"admin,omitempty"`
	// Certificate is the file with the certificate, if one was asked for.
	Certificate string `json:"certificate,omitempty"`
}

// serve serves until ctx ends.
func serve(ctx context.Context, s settings, stdout, stderr io.Writer) (err error) {
	logger := s.logger(stderr)
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	scheme, host, loopback := "http", hostOf(listener.Addr()), listener.Addr().(*net.TCPAddr).IP.IsLoopback()
	admin := s.admin == adminOn || s.admin == adminAuto && loopback

	worlds, err := mockcarrier.NewWorlds(s.worlds, s.options(logger, admin)...)
	if err != nil {
		return err
	}
	defer worlds.Close()
	var handler http.Handler = worlds
	if s.state != "" {
		k, err := openKeeper(s.state, worlds, logger)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, k.close()) }()
		handler = k
	}

	server := newServer(worlds, handler, logger)
	if s.tls {
		scheme = "https"
		if server.TLSConfig, err = newTLS(s, host); err != nil {
			return err
		}
	}
	line := ready{URL: scheme + "://" + host + "/v1", Certificate: s.tlsCert}
	if admin {
		line.Admin = scheme + "://" + host + mockcarrier.AdminPath
	} else if s.admin == adminAuto {
		logger.Warn("no admin API, since the address is not loopback; --admin=on has it all the same", "addr", s.addr)
	}

	listener = worlds.Listener(listener)
	ended := make(chan error, 1)
	go func() {
		if s.tls {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	if err := json.NewEncoder(stdout).Encode(line); err != nil {
		return errors.Join(err, server.Close())
	}
	logger.Info("ready", "url", line.URL, "admin", line.Admin, "state", s.state)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping")
	server.RegisterOnShutdown(worlds.Close)
	patience, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if server.Shutdown(patience) != nil {
		_ = server.Close()
	}
	<-ended
	worlds.Close() // before the state is saved for the last time
	return nil
}

func newServer(worlds *mockcarrier.Worlds, handler http.Handler, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		ConnContext:       worlds.ConnContext,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// newTLS makes the certificate, and writes it where it was asked for.
func newTLS(s settings, host string) (*tls.Config, error) {
	names := s.hostNames()
	for _, address := range []string{s.addr, host} {
		if name, _, err := net.SplitHostPort(address); err == nil && name != "" {
			names = append(names, name)
		}
	}
	certificate, err := selfsigned.New(time.Now(), names...)
	if err != nil {
		return nil, err
	}
	if s.tlsCert != "" {
		if err := replaceFile(s.tlsCert, selfsigned.PEM(certificate), 0o644); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// hostOf returns how a listener is reached on this machine.
func hostOf(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}
