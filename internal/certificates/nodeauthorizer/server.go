// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"muster.dev/muster/internal/platform/httpserve"
)

// ServerConfig says where SubjectAccessReviews are answered.
type ServerConfig struct {
	Address string
	// Certificate and Key are files of the serving certificate, read again when they change, as is ClientCA, whose
	// certificates callers must have.
	Certificate, Key, ClientCA string
	Handler                    *Authorizer
	Logger                     *slog.Logger
}

// Server answers SubjectAccessReviews.
type Server struct {
	ports    httpserve.Set
	listener net.Listener
}

// Listen opens the port.
func Listen(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Certificate == "" || c.Key == "" || c.ClientCA == "" || c.Handler == nil || c.Logger == nil {
		return nil, errors.New("a server of SubjectAccessReviews needs a certificate, its key, the authority of callers, a handler and a logger")
	}
	files, err := httpserve.ReadFiles("SubjectAccessReviews", c.Certificate, c.Key, c.ClientCA, c.Logger)
	if err != nil {
		return nil, err
	}
	s := &Server{ports: httpserve.Set{Logger: c.Logger, Grace: time.Second}}
	if s.listener, err = s.ports.Open(ctx, "SubjectAccessReviews", c.Address); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /authorize", c.Handler)
	// An API server asks all on one connection, and makes another for each question above this, just when there are too
	// many.
	s.ports.Handle(tls.NewListener(s.listener, files.Config()), mux).HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10_000}
	return s, nil
}

// Address is where SubjectAccessReviews are answered.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context) error { return s.ports.Serve(ctx) }
