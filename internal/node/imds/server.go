// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Directory knows machines. Its answers are asked for at each request, so that they are true at that moment.
type Directory interface {
	// Lookup returns the machine that an address belongs to, or that the pod with that address runs on; ErrNotFound if
	// there is none.
	Lookup(address netip.Addr) (Instance, error)
	// UserData returns what a machine was launched with; ErrNotFound if nothing.
	UserData(id string) ([]byte, error)
}

// ServerConfig is what a server works with.
type ServerConfig struct {
	Directory Directory
	// Credentials knows the roles of machines; nil where machines have none.
	Credentials Credentials
	// Key seals tokens: 32 bytes that nobody else knows, the same ones in every life of the server.
	Key []byte
	Log *slog.Logger
	Now func() time.Time // the clock if nil
}

// Server answers machines.
type Server struct {
	config ServerConfig
	tokens signer
	rates  *rates
}

// keySize is that of the hash.
const keySize = 32

// NewServer checks the configuration.
func NewServer(config ServerConfig) (*Server, error) {
	switch {
	case config.Directory == nil || config.Log == nil:
		return nil, errors.New("the instance metadata service needs a directory of machines and a log")
	case len(config.Key) != keySize:
		return nil, fmt.Errorf("the instance metadata service needs a key of %d bytes, not %d", keySize, len(config.Key))
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Server{config: config, tokens: signer{key: config.Key}, rates: newRates(config.Now)}, nil
}

// lastAnswers is how long what was asked before the context ended may take.
const lastAnswers = 2 * time.Second

// Serve answers on a listener until the context ends, and then what was asked before, for a moment.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    4 << 10,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug), // errors of machines' requests are not news
	}
	gate := newGate(listener, s.config.Directory, s.config.Log)
	defer context.AfterFunc(ctx, func() {
		server.SetKeepAlivesEnabled(false)
		_ = gate.Close()
	})()
	err := server.Serve(gate)
	if ctx.Err() == nil {
		return fmt.Errorf("serving instance metadata: %w", err)
	}
	// Shutdown would drop connections whose request is just coming.
	gate.wait(lastAnswers)
	_ = server.Close()
	return nil
}

const (
	tokenHeader = "X-Aws-Ec2-Metadata-Token"             //nolint:gosec // G101: the name of a header
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds" //nolint:gosec // G101: the name of a header
	tokenPath   = "/latest/api/token"                    //nolint:gosec // G101: a path
)

// ServeHTTP answers one request. The machine is the one whose address it comes from; nothing in the request identifies
// it.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	instance, err := s.instance(request.RemoteAddr)
	switch {
	case errors.Is(err, ErrNotFound):
		refuse(w, http.StatusNotFound)
		return
	case err != nil:
		s.config.Log.Error("cannot tell a machine who it is", "address", request.RemoteAddr, "error", err)
		refuse(w, http.StatusInternalServerError)
		return
	case !s.rates.take(instance.ID):
		refuse(w, http.StatusServiceUnavailable)
		return
	case !literal(request.Host):
		refuse(w, http.StatusForbidden)
		return
	}
	if request.URL.Path == tokenPath {
		s.serveToken(w, request, instance)
		return
	}
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	left, ok := s.admit(request, instance)
	if !ok {
		refuse(w, http.StatusUnauthorized)
		return
	}
	w.Header().Set(ttlHeader, strconv.Itoa(int(left.Seconds())))
	s.serve(request.Context(), w, request.URL.Path, instance)
}

// instance is the instance of that address.
func (s *Server) instance(remote string) (Instance, error) {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Instance{}, fmt.Errorf("reading the address of who asks: %w", err)
	}
	return s.config.Directory.Lookup(peer.Addr().Unmap())
}

// literal reports whether the service was asked for by address. A name means that somebody's name server was believed,
// which can point it here so that a browser takes the service for a page of its owner (DNS rebinding).
func literal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// serveToken makes a token for PUT (EC2's user guide, "Use IMDSv2").
func (s *Server) serveToken(w http.ResponseWriter, request *http.Request, instance Instance) {
	if request.Method != http.MethodPut {
		w.Header().Set("Allow", "PUT")
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	if _, forwarded := request.Header["X-Forwarded-For"]; forwarded {
		refuse(w, http.StatusForbidden)
		return
	}
	ttl, err := strconv.ParseUint(single(request, ttlHeader), 10, 16) // digits alone: Atoi takes a sign
	if err != nil || ttl < 1 || ttl > maxTTL {
		refuse(w, http.StatusBadRequest)
		return
	}
	w.Header().Set(ttlHeader, strconv.FormatUint(ttl, 10))
	write(w, []byte(s.tokens.token(instance.ID, s.config.Now().Add(time.Duration(ttl)*time.Second))))
}

// admit checks the token of a request.
func (s *Server) admit(request *http.Request, instance Instance) (left time.Duration, ok bool) {
	return s.tokens.check(single(request, tokenHeader), instance.ID, s.config.Now())
}

// single is the value of a header that is there once, or nothing.
func single(request *http.Request, name string) string {
	if values := request.Header.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

const userDataPath = "latest/user-data"

// serve answers with what is at a path.
func (s *Server) serve(ctx context.Context, w http.ResponseWriter, path string, instance Instance) {
	if path == "" || path == "/" {
		write(w, []byte(versionList()))
		return
	}
	path = newest(strings.TrimPrefix(path, "/"))
	document, err := instance.document()
	if err != nil {
		s.config.Log.Error("cannot tell a machine who it is", "machine", instance.ID, "error", err)
		refuse(w, http.StatusInternalServerError)
		return
	}
	leaves := map[string]string{"latest/dynamic/instance-identity/document": document, userDataPath: ""}
	for name, content := range instance.metadata() {
		leaves["latest/meta-data/"+name] = content
	}
	if err := s.addRole(ctx, leaves, path, instance.ID); err != nil {
		s.config.Log.Error("cannot tell a machine its role", "machine", instance.ID, "error", err)
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	content, ok := lookup(leaves, path)
	if !ok {
		refuse(w, http.StatusNotFound)
		return
	}
	if strings.Trim(strings.TrimPrefix(path, "latest/meta-data/"), "/") == strings.Trim(publicKeys, "/") {
		content = "0=" + instance.KeyName
	}
	if strings.TrimSuffix(path, "/") != userDataPath {
		write(w, []byte(content))
		return
	}
	userData, err := s.config.Directory.UserData(instance.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		refuse(w, http.StatusNotFound)
	case err != nil:
		s.config.Log.Error("cannot tell a machine its user data", "machine", instance.ID, "error", err)
		refuse(w, http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		write(w, userData)
	}
}

// addRole adds the machine's role where somebody asks for it, or lists what is above it. A machine that has none has no
// such folder, as on EC2. Above it a role that cannot be told is left out: the rest is true without.
func (s *Server) addRole(ctx context.Context, leaves map[string]string, path, instanceID string) error {
	path = strings.TrimSuffix(path, "/")
	asked := path == iamPath || strings.HasPrefix(path, iamPath+"/")
	if s.config.Credentials == nil || !asked && path != "latest/meta-data" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	role, err := s.config.Credentials.Role(ctx, instanceID)
	switch {
	case isNotFound(err):
		if asked {
			s.config.Log.Info("a machine asked for its role and has none", "machine", instanceID, "reason", err.Error())
		}
		return nil
	case err != nil && asked:
		return err
	case err != nil:
		return nil
	}
	found, err := role.leaves()
	maps.Copy(leaves, found)
	return err
}

// roleTimeout is less than programs wait for an answer of the service (aws-sdk-go-v2, feature/ec2/imds: they ask
// again).
const roleTimeout = 3 * time.Second

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

func write(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the machine has gone
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strconv.Itoa(status)+" - "+http.StatusText(status)+"\n")
}
