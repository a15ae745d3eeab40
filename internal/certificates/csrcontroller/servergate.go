// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/sha256"
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
	// gateKeeps is how long an answer about a token is kept.
	gateKeeps = 30 * time.Second
	// gateHolds is how many answers are kept, and gateAsks how many tokens are being reviewed at once: a client with made-up tokens must
	// not keep the API server busy.
	gateHolds = 256
	gateAsks  = 4
	gateWaits = 10 * time.Second
)

// gate lets through requests with a token that may get /metrics from the API server: the RBAC rule is nonResourceURLs, as for the
// metrics of every Kubernetes component.
type gate struct {
	client kubernetes.Interface
	logger *slog.Logger
	now    func() time.Time
	next   http.Handler
	asks   chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]answer
}

type answer struct {
	code  int // 200, 401 or 403
	until time.Time
}

func newGate(c ServerConfig, next http.Handler) *gate {
	return &gate{
		client: c.Client, logger: c.Logger, now: c.Now, next: next,
		asks: make(chan struct{}, gateAsks), known: map[[sha256.Size]byte]answer{},
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "show a bearer token, such as that of a service account that may get the path /metrics", http.StatusUnauthorized)
		return
	}
	code, err := g.review(r.Context(), token)
	switch {
	case err != nil:
		g.logger.Warn("reader of metrics not reviewed", "remote", r.RemoteAddr, "error", err)
		http.Error(w, "the API server could not be asked who you are", http.StatusServiceUnavailable)
	case code == http.StatusOK:
		g.next.ServeHTTP(w, r)
	case code == http.StatusForbidden:
		http.Error(w, "you may not get /metrics; bind a role with nonResourceURLs: [/metrics], verbs: [get]", code)
	default:
		http.Error(w, "the token is not valid", code)
	}
}

func (g *gate) review(ctx context.Context, token string) (code int, err error) {
	key := sha256.Sum256([]byte(token))
	if code, ok := g.recall(key); ok {
		return code, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateWaits)
	defer cancel()
	select {
	case g.asks <- struct{}{}:
		defer func() { <-g.asks }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if code, ok := g.recall(key); ok {
		return code, nil
	}
	if code, err = g.ask(ctx, token); err == nil {
		g.keep(key, code)
	}
	return code, err
}

func (g *gate) ask(ctx context.Context, token string) (code int, err error) {
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing access: %w", err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *gate) recall(key [sha256.Size]byte) (code int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.known[key]
	return p.code, ok && g.now().Before(p.until)
}

func (g *gate) keep(key [sha256.Size]byte, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= gateHolds {
		clear(g.known)
	}
	g.known[key] = answer{code, g.now().Add(gateKeeps)}
}
