// SPDX-License-Identifier: Apache-2.0

package connectproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/splice"
)

// Refused is a target that is not dialled. The client is told the reason.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// Refuse returns a [*Refused].
func Refuse(format string, args ...any) error { return &Refused{Reason: fmt.Sprintf(format, args...)} }

// Server answers CONNECT requests.
type Server struct {
	// Dial connects to a target, host and port as the client wrote them. A [*Refused] is answered with 403, any other
	// error with 502.
	Dial func(ctx context.Context, target string) (net.Conn, error)
	// Take takes a place for a connection, and reports false if there is none; Give gives it back. Nil for no bound.
	Take func() bool
	Give func()
}

const (
	// maxReason is how many bytes of a reason a client is told.
	maxReason = 1024
	// writePatience is how long a client may take to read an answer.
	writePatience = 5 * time.Second
)

// Serve answers on a listener until the context ends, or until the last connection has after the listener was closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	var asking, tunnels sync.WaitGroup
	server := &http.Server{
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				asking.Add(1)
			case http.StateActive, http.StateIdle:
			case http.StateHijacked, http.StateClosed:
				asking.Done()
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			switch {
			case request.Method == http.MethodConnect:
				tunnels.Add(1)
				defer tunnels.Done()
				s.connect(ctx, w, request.RequestURI)
			case request.Method == http.MethodGet && request.URL.Path == "/readyz":
				_, _ = io.WriteString(w, "ok\n")
			default:
				http.Error(w, "only CONNECT and GET /readyz are answered here", http.StatusMethodNotAllowed)
			}
		}),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    4 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err := server.Serve(listener)
	switch {
	case errors.Is(err, http.ErrServerClosed):
		return nil
	case !errors.Is(err, net.ErrClosed):
		return fmt.Errorf("serving HTTP CONNECT: %w", err)
	}
	// Shutdown would drop connections whose request is just coming.
	server.SetKeepAlivesEnabled(false)
	asking.Wait()
	tunnels.Wait()
	return nil
}

// connect handles one CONNECT request and then relays until either side ends.
func (s *Server) connect(ctx context.Context, w http.ResponseWriter, target string) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "this connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	connection, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if s.Take != nil {
		if !s.Take() {
			answer(connection, http.StatusServiceUnavailable, "too many connections: close some, or try again")
			return
		}
		defer s.Give()
	}
	peer, err := s.Dial(ctx, target)
	if err != nil {
		status := http.StatusBadGateway
		if refused := (*Refused)(nil); errors.As(err, &refused) {
			status = http.StatusForbidden
		}
		answer(connection, status, err.Error())
		return
	}
	// Bytes that the client sent before the answer are in the reader's buffer, which is small and bounded.
	early := make([]byte, buffered.Reader.Buffered())
	_, err = io.ReadFull(buffered, early)
	if err == nil {
		_, err = io.WriteString(connection, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err == nil && len(early) > 0 {
		_, err = peer.Write(early)
	}
	if err != nil {
		_ = connection.Close()
		_ = peer.Close()
		return
	}
	splice.Join(ctx, connection, peer)
}

// answer ends a connection with a status whose line has the reason.
func answer(connection net.Conn, status int, reason string) {
	defer func() { _ = connection.Close() }()
	reason = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?' // it may have what a client wrote
		}
		return r
	}, reason[:min(len(reason), maxReason)])
	_ = connection.SetWriteDeadline(time.Now().Add(writePatience))
	_, _ = fmt.Fprintf(connection, "HTTP/1.1 %d %s: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, http.StatusText(status), reason)
}
