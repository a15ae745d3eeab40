// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"muster.dev/muster/internal/platform/lru"
)

// The addresses are EKS's.
const (
	AddressIPv4 = "169.254.170.23"
	AddressIPv6 = "fd00:ec2::23"
	Port        = 80
)

const (
	// CredentialsPath is where SDKs ask.
	CredentialsPath = "/v1/credentials"
	// HealthPath is where the service asks whether the agent is there.
	HealthPath = "/healthz"
)

// One address of a pod may have so many questions to EKS Auth asked.
const (
	questionsPerSecond = 5
	questionsBurst     = 20
	maxAskers          = 1024
)

// One address may have so many refusals written into the log, so that a pod does not fill the machine's disk.
const (
	linesEvery = 10 * time.Second
	linesBurst = 5
)

// PodOf knows the pod behind an address: its UID, or nothing if no pod has it.
type PodOf interface {
	Pod(address netip.Addr) (uid string, err error)
}

// Config is what a Server needs.
type Config struct {
	Ask  Asker
	Pods PodOf
	// Own reports whether an address is the machine's: programs of the host network ask from it.
	Own func(netip.Addr) bool
	Log *slog.Logger
	Now func() time.Time // time.Now if nil
}

// Server answers pods.
type Server struct {
	config Config
	cache  *cache

	mu     sync.Mutex
	askers *lru.Map[netip.Addr, allowance]
}

// allowance is what one address may still have.
type allowance struct{ questions, lines *rate.Limiter }

// New makes a server.
func New(c Config) (*Server, error) {
	if c.Ask == nil || c.Pods == nil || c.Own == nil || c.Log == nil {
		return nil, errors.New("the pod identity agent needs EKS Auth, the addresses of pods, its own ones, and a log")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Server{config: c, cache: newCache(c.Ask, c.Now), askers: lru.New[netip.Addr, allowance](maxAskers)}, nil
}

// Serve answers on listeners until the context ends, and closes them.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug), // errors of pods' requests are not news
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	group.Go(func() { s.cache.keep(ctx) })
	ended := make(chan error, len(listeners))
	connections := &connections{open: map[netip.Addr]int{}}
	for _, listener := range listeners {
		group.Go(func() { ended <- server.Serve(gate{listener, connections}) })
	}
	if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
		_ = server.Close()
		return fmt.Errorf("serving credentials of pods: %w", err)
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !ownHost(r.Host) {
		refuse(w, http.StatusForbidden, "InvalidHost", "the header Host must be "+AddressIPv4+" or ["+AddressIPv6+"]")
		return
	}
	switch {
	case r.URL.Path == HealthPath:
		_, _ = w.Write([]byte("ok\n"))
	case r.URL.Path != CredentialsPath:
		refuse(w, http.StatusNotFound, "NotFound", "there is "+CredentialsPath+" here")
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "use GET")
	default:
		s.credentials(w, r)
	}
}

// ownHost reports whether a request names the agent by one of its addresses.
func ownHost(host string) bool {
	host = strings.TrimSuffix(host, ":80")
	return host == AddressIPv4 || host == "["+AddressIPv6+"]"
}

func (s *Server) credentials(w http.ResponseWriter, r *http.Request) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		values = []string{""}
	}
	token := values[0]
	said, err := readToken(token)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidTokenException", err.Error())
		return
	}
	if !s.config.Now().Before(said.expires) {
		refuse(w, http.StatusBadRequest, "ExpiredTokenException", "the service account token has expired: read its file again")
		return
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		refuse(w, http.StatusForbidden, "AccessDeniedException", "the request comes from no address")
		return
	}
	address := from.Addr().Unmap()
	if !s.asks(r.Context(), w, address, said.podUID) {
		return
	}
	key := sha256.Sum256([]byte(token))
	body, ok := s.cache.look(key)
	if !ok {
		if !s.allowance(address).questions.AllowN(s.config.Now(), 1) {
			refuse(w, http.StatusTooManyRequests, "ThrottlingException", "too many requests of this pod: try again later")
			return
		}
		if body, err = s.cache.get(r.Context(), key, token, said.expires); err != nil {
			status, code, message := statusOf(err)
			s.say(r.Context(), address, slog.LevelWarn, "a pod gets no credentials", "address", address.String(), "pod_uid", said.podUID, "error", err)
			refuse(w, status, code, message)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) //nolint:gosec // G705: JSON that was written here
}

// asks reports whether a token is of the pod whose address asks. Who has an address of the machine itself is in its
// network, and every token there is the sender's own: it reads files of its pod, or of all as root.
func (s *Server) asks(ctx context.Context, w http.ResponseWriter, address netip.Addr, podUID string) bool {
	if s.config.Own(address) {
		return true
	}
	uid, err := s.config.Pods.Pod(address)
	switch {
	case err != nil:
		s.say(ctx, address, slog.LevelError, "cannot tell which pod has an address", "address", address.String(), "error", err)
		refuse(w, http.StatusInternalServerError, "InternalServerException", "this machine cannot tell which pod asks: see the log of its agent")
	case uid == "" || uid != podUID:
		s.say(ctx, address, slog.LevelWarn, "the token of another pod is refused", "address", address.String(), "pod_uid", uid, "token_pod_uid", podUID)
		refuse(w, http.StatusForbidden, "AccessDeniedException", "the service account token is of another pod")
	default:
		return true
	}
	return false
}

func (s *Server) allowance(address netip.Addr) allowance {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.askers.Get(address)
	if !ok {
		a = allowance{rate.NewLimiter(questionsPerSecond, questionsBurst), rate.NewLimiter(rate.Every(linesEvery), linesBurst)}
		s.askers.Put(address, a)
	}
	return a
}

// say writes a line about an address, unless there have been many.
func (s *Server) say(ctx context.Context, address netip.Addr, level slog.Level, line string, more ...any) {
	if s.allowance(address).lines.AllowN(s.config.Now(), 1) {
		s.config.Log.Log(ctx, level, line, more...) //nolint:sloglint // the callers have constants
	}
}

// refuse answers in the form that SDKs read the reason from.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusTooManyRequests { // SDKs take the text as it is
		http.Error(w, code+": "+message, status)
		return
	}
	body, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{code, message})
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
