// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is how many clients there may be at once; more wait.
const maxConnections = 256

// Serve answers over TLS until the context ends. A client that is slow to ask or to read is cut off.
func (s *Service) Serve(ctx context.Context, listener net.Listener, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 32 << 10,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ErrorLog:       slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	// HTTP/1.1 alone: its limits are those above, and nobody here sends many requests at once.
	err := server.Serve(tls.NewListener(&bounded{Listener: listener, free: make(chan struct{}, maxConnections)}, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate,
	}))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering STS and IAM: %w", err)
	}
	return nil
}

// bounded lets so many connections in at once.
type bounded struct {
	net.Listener
	free chan struct{}
}

// Accept waits for a place.
func (b *bounded) Accept() (net.Conn, error) {
	b.free <- struct{}{}
	connection, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &placed{connection, sync.OnceFunc(func() { <-b.free })}, nil
}

type placed struct {
	net.Conn
	leave func()
}

// Close gives the place free.
func (p *placed) Close() error {
	p.leave()
	return p.Conn.Close()
}
