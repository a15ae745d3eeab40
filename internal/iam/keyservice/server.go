// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/platform/socketdir"
)

// Bounds that the server keeps alone.
const (
	// answerTime is how long a client may take to ask, and to read an answer or an event.
	answerTime = 2 * time.Second
	// maxConnections is how many there may be at once, and maxOfOne of one caller: a cluster's authenticator has some
	// tens of connections.
	maxConnections = 1024
	maxOfOne       = 256
	// renewTime is how long before the end of its certificate a caller is made to connect anew after each answer: it
	// has another one by then.
	renewTime = 24 * time.Hour
)

// Backend is what a server answers from.
type Backend interface {
	// Verify finds out who made a token for that cluster; *Unknown if nobody did whom it knows. The request is as it
	// was signed, byte by byte.
	Verify(ctx context.Context, cluster, host, query string) (Maker, error)
	// RoleCredentials are those of an instance's profile; *Unknown if it has none.
	RoleCredentials(ctx context.Context, instanceID string) (RoleCredentials, error)
	// Refused takes a report of that cluster's authenticator; it says nothing about whether anybody is concerned.
	Refused(ctx context.Context, cluster string, r Refused) error
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
	// Credential of the account.
	Credential Credential
	// Clusters reports whether the account has the cluster of an authenticator, by its name and id: that of one that is
	// gone is not answered, whatever cluster has its name by now.
	Clusters func(who caller.Caller) bool
	// Credentials has it give the credentials of instances, and not verify tokens: a client that may ask for the one
	// need not ask for the other.
	Credentials bool
	// Peers are other users of this host that may connect besides root and this one, by a socket whose directory they
	// are shown (package socketdir). Nil for none.
	Peers  func(user uint32) bool
	Logger *slog.Logger
	// Heartbeat is the longest time between two events; Heartbeat if 0.
	Heartbeat time.Duration
}

// Server answers callers of the account.
type Server struct {
	config ServerConfig
	tls    *tls.Config
	fence  fence
	now    func() time.Time
}

// NewServer makes a server; Serve runs it.
func NewServer(c ServerConfig) (*Server, error) {
	if c.Backend == nil || c.Logger == nil || c.Clusters == nil {
		return nil, errors.New("a key service needs a backend, a list of clusters and a logger")
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = Heartbeat
	}
	secured, err := c.Credential.server()
	if err != nil {
		return nil, err
	}
	return &Server{config: c, tls: secured, fence: fence{limit: fenceTime, all: map[*leaving]struct{}{}}, now: time.Now}, nil
}

// Listen makes the socket, in place of one that a killed service left. Its directory must be private. Connections of
// other users are closed before anything is read from them.
func (s *Server) Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("making directory of the key service's socket: %w", err)
	}
	listen := socketdir.ListenPrivate
	if s.config.Peers != nil {
		listen = socketdir.Listen
	}
	listener, err := listen(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("listening for authenticators: %w", err)
	}
	return &ownListener{Listener: listener, logger: s.config.Logger, own: os.Geteuid(), peers: s.config.Peers}, nil
}

// Serve answers by TLS until the context ends, on a socket or any other listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: answerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	places := newPlaces(listener, s.config.Logger)
	if err := server.Serve(tls.NewListener(places, places.secured(s.tls))); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering authenticators: %w", err)
	}
	return nil
}

// Handler is the service without its socket. Requests must have come by TLS that asked for client certificates.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	if s.config.Credentials {
		mux.HandleFunc("POST "+PathRoleCredentials, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, func(ctx context.Context, _ caller.Caller, q InstanceQuery) (any, error) {
				return s.config.Backend.RoleCredentials(ctx, q.InstanceID)
			})
		})
	} else {
		mux.HandleFunc("POST "+PathVerify, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, s.verify)
		})
		mux.HandleFunc("POST "+PathRefused, func(w http.ResponseWriter, r *http.Request) {
			ask(s, w, r, func(ctx context.Context, who caller.Caller, report Refused) (any, error) {
				return struct{}{}, s.config.Backend.Refused(ctx, who.Cluster, report.trimmed())
			})
		})
	}
	mux.HandleFunc("GET "+PathChanges, s.changes)
	return mux
}

// verify answers a cluster's authenticator about a token for that cluster.
func (s *Server) verify(ctx context.Context, who caller.Caller, q Question) (any, error) {
	if q.Cluster != who.Cluster {
		return nil, &Unknown{
			Code: codeDenied, Rule: "cluster", Reason: fmt.Sprintf("a question about a token for cluster %.100q by %s", q.Cluster, who),
			Fix: "set clusterID to the name of the cluster that the authenticator's credential was made for",
		}
	}
	maker, err := s.config.Backend.Verify(ctx, who.Cluster, q.Host, q.Query)
	if err != nil {
		return nil, err
	}
	return AnswerOf(maker), nil
}

// codeDenied is AWS's.
const codeDenied = "AccessDenied"

// admit reads the caller from its certificate, with each question: its cluster may be gone since it connected.
func (s *Server) admit(r *http.Request) (who caller.Caller, ends time.Time, err error) {
	who, certificate, err := callerOf(r.TLS)
	switch {
	case err != nil:
		return caller.Caller{}, ends, err
	case !s.now().Before(certificate.NotAfter):
		return caller.Caller{}, ends, fmt.Errorf("the client certificate of %s ended at %s: start muster anew with `muster up`, which renews it", who, certificate.NotAfter.UTC().Format(time.RFC3339))
	case s.config.Credentials != who.Metadata:
		return caller.Caller{}, ends, fmt.Errorf("%s has no business here: it asks at a socket of its own", who)
	case !who.Metadata && !s.config.Clusters(who):
		return caller.Caller{}, ends, fmt.Errorf("the account has no cluster %s: its authenticator is not answered", who.Cluster)
	}
	return who, certificate.NotAfter, nil
}

// ask reads a question and sends what comes of it.
func ask[Q any](s *Server, w http.ResponseWriter, r *http.Request, answer func(context.Context, caller.Caller, Q) (any, error)) {
	who, ends, err := s.admit(r)
	if err != nil {
		s.refuse(w, err)
		return
	}
	if s.now().After(ends.Add(-renewTime)) {
		w.Header().Set("Connection", "close")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(answerTime))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxQuery))
	if err != nil {
		http.Error(w, "the question is too long, or came too slowly", http.StatusBadRequest)
		return
	}
	var question Q
	if err := readQuestion(raw, &question); err != nil {
		http.Error(w, "the question is not the JSON that was expected", http.StatusBadRequest)
		return
	}
	leaving := s.fence.enter(control)
	defer s.fence.leave(leaving)
	status, body := http.StatusOK, []byte(nil)
	var no *Unknown
	switch result, err := answer(r.Context(), who, question); {
	case err == nil:
		body, err = json.Marshal(result)
		if err != nil {
			status = http.StatusInternalServerError
		}
	case errors.As(err, &no):
		status = http.StatusNotFound
		body, _ = json.Marshal(Refusal{Code: no.Code, Reason: no.Reason, Rule: no.Rule, Fix: no.Fix}) // strings
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

// refuse ends the connection of a caller that is not answered.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	s.config.Logger.Warn("refused a caller of the account", "error", err)
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), http.StatusForbidden)
}

// readQuestion reads one JSON value of known fields, and nothing behind it.
func readQuestion(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the question")
	}
	return nil
}

// changes tells one client what changes, until it is gone, does not keep up, or may not ask any more.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	if _, _, err := s.admit(r); err != nil {
		s.refuse(w, err)
		return
	}
	feed := s.config.Backend.Changes()
	defer feed.Close()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	beat := time.NewTicker(s.config.Heartbeat)
	defer beat.Stop()
	change := Change{All: true} // whatever was before
	knowsSessions := r.URL.Query().Has(querySessions)
	for sequence := uint64(1); ; sequence++ {
		change.All = change.All || change.Sessions && !knowsSessions
		if err := s.tell(w, control, Event{Sequence: sequence, Change: change}); err != nil {
			s.config.Logger.Debug("an authenticator does not listen any more", "error", err)
			return
		}
		if _, _, err := s.admit(r); err != nil {
			s.config.Logger.Warn("a caller of the account is told of changes no more", "error", err)
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

// ownListener lets in the processes of one user, and of those that it is told.
type ownListener struct {
	net.Listener
	logger *slog.Logger
	own    int
	peers  func(user uint32) bool
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
		case !trustedPeer(peer.Uid, l.own) && (l.peers == nil || !l.peers(peer.Uid)):
			l.logger.Warn("refused a connection of another user", "uid", peer.Uid, "pid", peer.Pid)
		default:
			return connection, nil
		}
		_ = connection.Close()
	}
}
