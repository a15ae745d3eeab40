// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Bounds that the server keeps alone.
const (
	// answerTime is how long a client may take to ask, and to read an answer or an event.
	answerTime = 2 * time.Second
	// maxConnections is how many clients there may be at once: a cluster's authenticator has some tens of connections.
	maxConnections = 1024
)

// Backend is what a server answers from.
type Backend interface {
	Keys
	// RoleCredentials are those of an instance's profile; *Unknown if it has none.
	RoleCredentials(ctx context.Context, instanceID string) (RoleCredentials, error)
	// Refused takes a report; it says nothing about whether anybody is concerned.
	Refused(ctx context.Context, r Refused) error
	// Changes begins to collect what changes from now on.
	Changes() Feed
}

// Feed collects changes for one client.
type Feed interface {
	// Ready gets a value when there is something to take.
	Ready() <-chan struct{}
	// Take is everything since the last Take, as one change.
	Take() Change
	// Close ends the feed.
	Close()
}

// ServerConfig is what a server needs.
type ServerConfig struct {
	Backend Backend
	// Credentials has it give the credentials of instances, and not tell the owners of access keys: a client that may ask the one need
	// not ask the other.
	Credentials bool
	Logger      *slog.Logger
	// Heartbeat is the longest time between two events; Heartbeat if 0.
	Heartbeat time.Duration
}

// Server answers on a unix socket.
type Server struct {
	config ServerConfig
	fence  fence
}

// NewServer makes a server; Serve runs it.
func NewServer(c ServerConfig) (*Server, error) {
	if c.Backend == nil || c.Logger == nil {
		return nil, errors.New("a key service needs a backend and a logger")
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = Heartbeat
	}
	return &Server{config: c, fence: fence{limit: fenceTime, all: map[*leaving]struct{}{}}}, nil
}

// Listen makes the socket, in place of one that a killed service left. Its directory must be private. Connections of other users are
// closed before anything is read from them.
func (s *Server) Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("making directory of the key service's socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing stale socket: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for authenticators: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("restricting the socket of authenticators: %w", err)
	}
	return &ownListener{Listener: listener, logger: s.config.Logger, own: os.Geteuid(), free: make(chan struct{}, maxConnections)}, nil
}

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: answerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering authenticators: %w", err)
	}
	return nil
}

// Handler is the service without its socket.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	if s.config.Credentials {
		mux.HandleFunc("POST "+PathRoleCredentials, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, func(ctx context.Context, q InstanceQuery) (any, error) {
				return s.config.Backend.RoleCredentials(ctx, q.InstanceID)
			})
		})
	} else {
		mux.HandleFunc("POST "+PathResolve, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, func(ctx context.Context, q Query) (any, error) {
				resolved, err := s.config.Backend.Resolve(ctx, q.AccessKeyID, q.SessionToken, q.Scope.SigV4())
				if err != nil {
					return nil, err
				}
				return AnswerOf(resolved), nil
			})
		})
		mux.HandleFunc("POST "+PathRefused, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, func(ctx context.Context, report Refused) (any, error) {
				return struct{}{}, s.config.Backend.Refused(ctx, report.trimmed())
			})
		})
	}
	mux.HandleFunc("GET "+PathChanges, s.changes)
	return mux
}

// ask reads a question and sends what comes of it.
func ask[Q any](s *Server, w http.ResponseWriter, r *http.Request, answer func(context.Context, Q) (any, error)) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(answerTime))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxQuery))
	if err != nil {
		http.Error(w, "the question is too long, or came too slowly", http.StatusBadRequest)
		return
	}
	var question Q
	if err := json.Unmarshal(raw, &question); err != nil {
		http.Error(w, "the question is not the JSON that was expected", http.StatusBadRequest)
		return
	}
	leaving := s.fence.enter(control)
	defer s.fence.leave(leaving)
	status, body := http.StatusOK, []byte(nil)
	var no *Unknown
	switch result, err := answer(r.Context(), question); {
	case err == nil:
		body, err = json.Marshal(result)
		if err != nil {
			status = http.StatusInternalServerError
		}
	case errors.As(err, &no):
		status = http.StatusNotFound
		body, _ = json.Marshal(Refusal{Code: no.Code, Reason: no.Reason}) // two strings
	default:
		s.config.Logger.Warn("could not answer an authenticator", "path", r.URL.Path, "error", err)
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	if !leaving.write() {
		status, body = http.StatusServiceUnavailable, nil // something changed since
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone
	_ = control.Flush()
}

// changes tells one client what changes, until it is gone or does not keep up.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	feed := s.config.Backend.Changes()
	defer feed.Close()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	beat := time.NewTicker(s.config.Heartbeat)
	defer beat.Stop()
	change := Change{All: true} // whatever was before
	for sequence := uint64(1); ; sequence++ {
		if err := s.tell(w, control, Event{Sequence: sequence, Change: change}); err != nil {
			s.config.Logger.Debug("an authenticator does not listen any more", "error", err)
			return
		}
		change = Change{}
		select {
		case <-r.Context().Done():
			return
		case <-feed.Ready():
			change = feed.Take()
		case <-beat.C:
		}
	}
}

func (s *Server) tell(w io.Writer, control *http.ResponseController, e Event) error {
	if n := len(e.AccessKeyIDs) + len(e.UserIDs) + len(e.Instances); e.All || n > MaxNamed {
		e.Change = Change{All: true}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if !e.Empty() {
		s.fence.wait()
	}
	if err := control.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return err
	}
	return control.Flush()
}

// ownListener lets in the processes of one user.
type ownListener struct {
	net.Listener
	logger *slog.Logger
	own    int
	free   chan struct{}
}

// Accept gives the next connection of a process of that user, or of root.
func (l *ownListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, err := peerOf(connection)
		switch {
		case err != nil:
			l.logger.Warn("refused a connection: its peer credentials cannot be read", "error", err)
		case !trustedPeer(peer.Uid, l.own):
			l.logger.Warn("refused a connection of another user", "uid", peer.Uid, "pid", peer.Pid)
		default:
			select {
			case l.free <- struct{}{}:
				return &countedConn{Conn: connection, done: sync.OnceFunc(func() { <-l.free })}, nil
			default:
				l.logger.Warn("refused a connection: there are too many", "connections", maxConnections)
			}
		}
		_ = connection.Close()
	}
}

type countedConn struct {
	net.Conn
	done func()
}

// Close gives the place free.
func (c *countedConn) Close() error {
	c.done()
	return c.Conn.Close()
}
