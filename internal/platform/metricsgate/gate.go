// SPDX-License-Identifier: Apache-2.0

package metricsgate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// keeps is how long an answer about a caller is kept.
	keeps = 30 * time.Second
	// holds is how many answers are kept, and asksAtOnce how many callers are reviewed at once: a client with made-up
	// tokens must not keep the API server busy.
	holds      = 256
	asksAtOnce = 4
	waits      = 10 * time.Second
)

// Config is what a gate needs.
type Config struct {
	// Client reviews callers: it must be allowed to create TokenReviews and SubjectAccessReviews.
	Client kubernetes.Interface
	Logger *slog.Logger
	Now    func() time.Time // time.Now if nil
	// Next answers who may read metrics.
	Next http.Handler
}

// Gate lets callers through that may get /metrics from the API server: the RBAC rule is nonResourceURLs, as for the
// metrics of every Kubernetes component.
type Gate struct {
	config Config
	asks   chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]answer
}

type answer struct {
	code  int // 200, 401 or 403
	until time.Time
}

// New makes a gate.
func New(c Config) (*Gate, error) {
	if c.Client == nil || c.Logger == nil || c.Next == nil {
		return nil, errors.New("metrics need a client of the API server, which says who may read them, a logger and a handler")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Gate{config: c, asks: make(chan struct{}, asksAtOnce), known: map[[sha256.Size]byte]answer{}}, nil
}

// who is a caller: a user by a client certificate, or a token that is not reviewed yet.
type who struct {
	key   [sha256.Size]byte
	token string
	user  *authorizationv1.SubjectAccessReviewSpec
}

// callerOf reads who sent a request. A client certificate, which the server has verified, comes before a token, as in
// upstream's components.
func callerOf(r *http.Request) (who, bool) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		certificate := r.TLS.VerifiedChains[0][0]
		return who{key: sha256.Sum256(certificate.Raw), user: &authorizationv1.SubjectAccessReviewSpec{
			User: certificate.Subject.CommonName, Groups: append([]string{"system:authenticated"}, certificate.Subject.Organization...),
		}}, certificate.Subject.CommonName != ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return who{key: sha256.Sum256([]byte(token)), token: token}, strings.EqualFold(scheme, "Bearer") && token != ""
}

// ServeHTTP lets a request through, or says why not.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, ok := callerOf(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "show a client certificate of the cluster, or a bearer token, such as that of a service account that may get the path /metrics", http.StatusUnauthorized)
		return
	}
	code, err := g.review(r.Context(), caller)
	switch {
	case err != nil:
		g.config.Logger.Warn("reader of metrics not reviewed", "remote", r.RemoteAddr, "error", err)
		http.Error(w, "the API server could not be asked who you are", http.StatusServiceUnavailable)
	case code == http.StatusOK:
		g.config.Next.ServeHTTP(w, r)
	case code == http.StatusForbidden:
		http.Error(w, "you may not get /metrics; bind a role with nonResourceURLs: [/metrics], verbs: [get]", code)
	default:
		http.Error(w, "the token is not valid", code)
	}
}

func (g *Gate) review(ctx context.Context, caller who) (code int, err error) {
	if code, ok := g.recall(caller.key); ok {
		return code, nil
	}
	ctx, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	select {
	case g.asks <- struct{}{}:
		defer func() { <-g.asks }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if code, ok := g.recall(caller.key); ok {
		return code, nil
	}
	if code, err = g.ask(ctx, caller); err == nil {
		g.keep(caller.key, code)
	}
	return code, err
}

func (g *Gate) ask(ctx context.Context, caller who) (code int, err error) {
	spec := caller.user
	if spec == nil {
		if spec, err = g.userOf(ctx, caller.token); err != nil || spec == nil {
			return http.StatusUnauthorized, err
		}
	}
	spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
	may, err := g.config.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: *spec}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing access: %w", err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// userOf asks whose a token is; nil if it is not valid.
func (g *Gate) userOf(ctx context.Context, token string) (*authorizationv1.SubjectAccessReviewSpec, error) {
	review, err := g.config.Client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, nil //nolint:nilnil // nobody is not an error
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	return &authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}, nil
}

func (g *Gate) recall(key [sha256.Size]byte) (code int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.known[key]
	return p.code, ok && g.config.Now().Before(p.until)
}

func (g *Gate) keep(key [sha256.Size]byte, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= holds {
		clear(g.known)
	}
	g.known[key] = answer{code, g.config.Now().Add(keeps)}
}
