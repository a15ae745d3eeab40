// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/viewer"
	"muster.dev/muster/internal/plane/logquery"
)

const (
	// endTime is how long requests may take to end when the server does.
	endTime = 2 * time.Second
	// headerTime is how long a request's header may take, bodyTime how long its body, and answerTime how long an answer that is not
	// a stream.
	headerTime, bodyTime, answerTime = 5 * time.Second, 5 * time.Second, 30 * time.Second
	// idleTime is how long a connection may wait for its next request.
	idleTime = time.Minute
	// mostHeader is how large a request's header may be, and mostBody its body, in bytes.
	mostHeader, mostBody = 16 << 10, 4 << 10
	// mostPlan is how large the body of a request may be that makes a cluster or a node group.
	mostPlan = 32 << 10
	// mostConnections is how many there may be at once.
	mostConnections = 64
)

// ErrNotFound is wrapped by errors of a Source about what is not there.
var ErrNotFound = errors.New("not found")

// Source reads an installation.
type Source interface {
	// Read reads all that pages show.
	Read(ctx context.Context) (Reading, error)
	// Objects returns the objects of a kind as muster get KIND -o json prints them, or one by its name. Cluster is empty where
	// there is only one. It wraps ErrNotFound.
	Objects(ctx context.Context, kind, name, cluster string) (any, error)
	// Logs writes the newest lines of a machine's logs, and goes on with new ones until the context ends if it follows.
	Logs(ctx context.Context, machine string, lines int, follow bool, out io.Writer) error
	// Query answers a query about the kept logs of a cluster, whose Logs it fills in. Cluster is empty where there is only one. It wraps
	// ErrNotFound where there is no such cluster; where no log store listens it fails with a *logquery.NoStoreError.
	Query(ctx context.Context, cluster string, question logquery.Question) (LogAnswer, error)
	// Create makes, with the rights of a viewer, or of the user of the command if that is nil, what a blueprint without problems says, and leaves alone what is there already and the same. It fails with a
	// *RefusedError where the viewer may not, or where something of it cannot be; it has made what it returns even if it fails.
	Create(ctx context.Context, by *viewer.Viewer, plan blueprint.Blueprint) (view.Made, error)
	// Prove says who made a token. It wraps ErrForbidden if it is not a token for the audience.
	Prove(ctx context.Context, p viewer.Proof) (viewer.Viewer, error)
	// Rights are what a viewer may see of what was read. It wraps ErrForbidden if the identity has ended.
	Rights(ctx context.Context, by viewer.Viewer, facts view.Facts) (view.Rights, error)
}

// Reading is what a Source read at a moment. Its methods may be called at the same time.
type Reading interface {
	Facts() view.Facts
	// Explain says what is wrong with an object. It wraps ErrNotFound.
	Explain(ctx context.Context, kind, name string) (diagnosis.Report, error)
}

// Config is what a server needs. All fields are required but Flags, Region and ReadOnly.
type Config struct {
	Source Source
	// Record writes down a read before it: the ARN of the IAM identity whose rights it has, empty for the user of the command, what the client says of
	// itself, and the request.
	Record func(as, client, request string) error
	// Flags are those that commands need to be about the same installation.
	Flags []string
	// Region is that of the account; empty if it is not known.
	Region string
	// ReadOnly has the server make nothing.
	ReadOnly bool
	Logger   *slog.Logger
	Now      func() time.Time
}

// Server serves the console.
type Server struct {
	Config
	pages    *page.Pages
	sessions *sessions
	keeper   *keeper
	streams  shares
	queries  chan struct{} // has an entry for each query about kept logs
	audience string        // the audience that tokens of IAM identities name
	ending   chan struct{} // closed when the server ends
}

// New returns a server that is not yet serving.
func New(cfg Config) (*Server, error) {
	if cfg.Source == nil || cfg.Record == nil || cfg.Logger == nil || cfg.Now == nil {
		return nil, errors.New("the console's server lacks its source, record, logger or clock")
	}
	pages, err := page.New()
	if err != nil {
		return nil, err
	}
	return &Server{
		Config: cfg, pages: pages, sessions: newSessions(cfg.Now), keeper: newKeeper(cfg.Source, cfg.Now),
		audience: viewer.Audience(strings.ToLower(rand.Text())), queries: make(chan struct{}, mostQueries), ending: make(chan struct{}),
	}, nil
}

// Audience is what tokens are signed for by which IAM identities sign in.
func (s *Server) Audience() string { return s.audience }

// Ticket returns the path of an address by which one session begins.
func (s *Server) Ticket() string { return "/enter/" + s.sessions.ticket() }

// Serve serves until the context ends. It reads the installation once at the beginning, so that the first page is there at
// once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if err := s.Record("", "", "begin"); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.keeper.run(reading)
	}()
	defer func() {
		stop()
		<-done
	}()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(&bounded{Listener: listener, room: make(chan struct{}, mostConnections)})
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serving the console: %w", err)
	case <-ctx.Done():
	}
	close(s.ending)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return server.Close() // somebody reads slowly
	}
	return nil
}

// Handler is all of the server, with its guards.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /enter/{ticket}", s.enter)
	mux.HandleFunc("GET /assets/", s.asset)
	mux.HandleFunc("POST /leave", s.leave)
	mux.HandleFunc("GET /sign-in", s.signInPage)
	mux.HandleFunc("POST /sign-in", s.signIn)
	for _, pattern := range []string{"/{$}", "/certificates", "/access", "/changes", "/machines/{name}"} {
		mux.Handle("GET "+pattern, s.within(s.page))
	}
	mux.Handle("GET /logs", s.within(s.queryPage))
	mux.Handle("GET /api/logs/query", s.within(s.query))
	mux.Handle("GET /machines/{name}/logs", s.within(s.logs))
	mux.Handle("GET /events", s.within(s.events))
	mux.Handle("GET /api/overview", s.within(s.viewed("/")))
	mux.Handle("GET /api/certificates", s.within(s.viewed("/certificates")))
	mux.Handle("GET /api/access", s.within(s.viewed("/access")))
	mux.Handle("GET /api/changes", s.within(s.viewed("/changes")))
	mux.Handle("GET /api/machines/{name}", s.within(s.viewed("/machines/")))
	mux.Handle("GET /api/explain", s.within(s.explainAll))
	mux.Handle("GET /api/explain/{kind}/{name...}", s.within(s.explain))
	mux.Handle("GET /api/objects/{kind}", s.within(s.objects))
	mux.Handle("GET /api/objects/{kind}/{name}", s.within(s.objects))
	creating(s, mux)
	return s.guard(mux)
}

// creating has what makes something, and says where it is off.
func creating(s *Server, mux *http.ServeMux) {
	mux.Handle("GET /api/session", s.within(func(w http.ResponseWriter, r *http.Request) { sessionData(s, w, r) }))
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /new":  func(w http.ResponseWriter, r *http.Request) { newPage(s, w, r) },
		"POST /new": s.create, "POST /api/clusters": created(s, blueprint.ParseCluster), "POST /api/nodegroups": created(s, blueprint.ParseGroup),
	} {
		if s.ReadOnly {
			serve = func(w http.ResponseWriter, r *http.Request) { readOnly(s, w, r) }
		}
		mux.Handle(pattern, s.within(serve))
	}
}

// bounded is a listener with a bound on its connections. More wait until others end.
type bounded struct {
	net.Listener
	room chan struct{}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	b.room <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &boundedConn{Conn: conn, leave: func() { <-b.room }}, nil
}
