// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/splice"
)

const (
	// maxConnections is how many connections a server has, those into machines among them: a machine with volumes has
	// two listeners and two connections of its kubelet.
	maxConnections = 4096
	// grace is how long operations may still take when the server ends.
	grace = time.Second
)

// ServerConfig says who may ask for what is done on a host, and where.
type ServerConfig struct {
	Host Host
	// Address is an IP address and a port.
	Address string
	// Credential is the file with the server's certificate and key, and ClientCA that of the authority of its client.
	Credential, ClientCA string
	// Client is the common name of the only client that is answered.
	Client string
	Log    *slog.Logger
}

// Server answers for a host by TLS 1.3.
type Server struct {
	set httpserve.Set
	at  net.Addr
}

// NewServer opens the server's port. Nobody is answered before Serve.
func NewServer(ctx context.Context, c ServerConfig) (*Server, error) {
	if c.Host == nil || c.Client == "" || c.ClientCA == "" || c.Log == nil {
		return nil, errors.New("the agent of a host needs the host, the name and the authority of its client, and a log")
	}
	files, err := httpserve.ReadFiles("a host", c.Credential, c.Credential, c.ClientCA, c.Log)
	if err != nil {
		return nil, err
	}
	s := &Server{set: httpserve.Set{Logger: c.Log, Grace: grace}}
	port, err := s.set.Open(ctx, "what is done on a host", c.Address)
	if err != nil {
		return nil, err
	}
	s.at = port.Addr()
	listener := tls.NewListener(netutil.LimitListener(port, maxConnections), newest(files.Config()))
	server := s.set.Handle(listener, httpserve.Only(c.Client, handler(c.Host)))
	// net/http ends an operation whose request may no longer be read; headers have a limit of their own.
	server.ReadTimeout, server.WriteTimeout = patience+grace, patience+grace
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	return s, nil
}

// Address is where the server answers.
func (s *Server) Address() net.Addr { return s.at }

// Serve answers until the context of NewServer or of Serve ends, or the port fails, which is an error.
func (s *Server) Serve(ctx context.Context) error { return s.set.Serve(ctx) }

// newest has clients speak TLS 1.3, and HTTP/1.1 by it, whose connections become those into machines.
func newest(config *tls.Config) *tls.Config {
	get := config.GetConfigForClient
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := get(hello)
		if err != nil {
			return nil, err
		}
		current = current.Clone()
		current.MinVersion, current.NextProtos = tls.VersionTLS13, []string{"http/1.1"}
		return current, nil
	}}
}

// handler answers each operation.
func handler(host Host) http.Handler {
	mux := http.NewServeMux()
	serve(mux, host, launching())
	serve(mux, host, getting())
	serve(mux, host, listing())
	serve(mux, host, stopping())
	serve(mux, host, terminating())
	serve(mux, host, reporting())
	serve(mux, host, mounting())
	serve(mux, host, lookingAtMount())
	serve(mux, host, unmounting())
	serve(mux, host, lookingForWriters())
	serve(mux, host, resizing())
	serve(mux, host, sweeping())
	serve(mux, host, unloading())
	serve(mux, host, listingImages())
	serve(mux, host, lookingAtShown())
	mux.HandleFunc("POST "+prefix+loading, func(w http.ResponseWriter, r *http.Request) { load(w, r, host) })
	serve(mux, host, booting())
	serve(mux, host, drilling())
	made := &waiting{}
	mux.HandleFunc("POST "+prefix+listening, func(w http.ResponseWriter, r *http.Request) { made.listen(w, r, host) })
	mux.HandleFunc("POST "+prefix+accepting, made.accept)
	mux.HandleFunc("POST "+prefix+dialing, func(w http.ResponseWriter, r *http.Request) { connect(w, r, host) })
	return mux
}

// serve answers one operation.
func serve[Q request, A any](mux *http.ServeMux, host Host, o operation[Q, A]) {
	mux.HandleFunc("POST "+prefix+o.name, func(w http.ResponseWriter, r *http.Request) {
		ask, ok := read[Q](w, r)
		if !ok {
			return
		}
		answer, err := o.do(host, r.Context(), ask)
		if err != nil {
			write(w, http.StatusConflict, faultOf(err))
			return
		}
		write(w, http.StatusOK, answer)
	})
}

// read reads a request, or says what is wrong with it.
func read[Q request](w http.ResponseWriter, r *http.Request) (ask Q, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != contentType {
		http.Error(w, "send a request as "+contentType, http.StatusUnsupportedMediaType)
		return ask, false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return ask, false
	}
	if err == nil {
		ask, err = decode[Q](raw)
	}
	if err != nil {
		http.Error(w, shorten(err.Error()), http.StatusBadRequest)
		return ask, false
	}
	return ask, true
}

func write(w http.ResponseWriter, status int, value any) {
	raw, err := encode(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(raw) //nolint:gosec // G705: JSON, and a client that is gone asks again
}

// connect answers a dial: the connection of the request becomes the one into the machine.
func connect(w http.ResponseWriter, r *http.Request, host Host) {
	ask, ok := read[Dial](w, r)
	if !ok {
		return
	}
	inside, err := host.Dial(r.Context(), ask)
	if err != nil {
		write(w, http.StatusConflict, faultOf(err))
		return
	}
	outside, ok := takeOver(w)
	if !ok {
		_ = inside.Close()
		return
	}
	splice.Join(r.Context(), outside, inside)
}
