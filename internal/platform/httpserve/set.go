// SPDX-License-Identifier: Apache-2.0

// Package httpserve opens a program's ports: servers that begin and end together, health and metrics, and certificates
// from files that may be replaced at any time.
package httpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Set is what one program serves. The zero value with a Logger is ready for use.
type Set struct {
	Logger *slog.Logger // hears what net/http complains about, as debug
	// Grace is how long requests may still take when it is over; then they are cut off.
	Grace time.Duration

	opened  []net.Listener
	servers []*http.Server
	served  []net.Listener // the listener of each server
}

// Loopback says whether an address, host and port, is reached from this machine only.
func Loopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// Open opens a port, and says what it is for if that fails. Nobody is answered before [Set.Handle] and [Set.Serve].
func (s *Set) Open(ctx context.Context, what, address string) (net.Listener, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("the address %q for %s is not an IP address and a port, such as 127.0.0.1:9443", address, what)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening the port for %s: %w", what, err)
	}
	s.opened = append(s.opened, l)
	return l, nil
}

// Close closes the ports of a program that serves nothing after all.
func (s *Set) Close() {
	for _, l := range s.opened {
		_ = l.Close() // nobody was answered
	}
}

// Handle says what answers at a port that was opened, which may be wrapped, for TLS. The server that is returned has
// limits, which may be changed before [Set.Serve].
func (s *Set) Handle(l net.Listener, h http.Handler) *http.Server {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 40 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	s.servers = append(s.servers, server)
	s.served = append(s.served, l)
	return server
}

// Serve answers until ctx is done, or a port fails, which is an error.
func (s *Set) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for n, server := range s.servers {
		group.Go(func() {
			if err := server.Serve(s.served[n]); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("serving at %s: %w", s.served[n].Addr(), err))
			}
		})
	}
	<-ctx.Done()
	quick, stop := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer stop()
	for _, server := range s.servers {
		if server.Shutdown(quick) != nil {
			_ = server.Close() // clients that still wait after that are cut off
		}
	}
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}
