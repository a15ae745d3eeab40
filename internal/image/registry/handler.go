// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/iam/registrylogin"
	"muster.dev/muster/internal/image/registrystore"
)

// Account says whose a password is, and what its owner may do.
type Account interface {
	Decide(ctx context.Context, q registrylogin.Question) (registrylogin.Answer, error)
}

// Config is what a registry needs.
type Config struct {
	Store   *registrystore.Store
	Account Account
	// ID of the account and its region are parts of repositories' ARNs.
	ID, Region string
	Metrics    prometheus.Registerer // may be nil
	Log        *slog.Logger
}

type registry struct {
	Config
	requests *prometheus.CounterVec
}

// New makes the handler of a registry.
func New(c Config) (http.Handler, error) {
	if c.Store == nil || c.Account == nil || c.ID == "" || c.Region == "" || c.Log == nil {
		return nil, errors.New("a registry needs a store, an account with an id and a region, and a log")
	}
	g := &registry{c, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_registry_requests_total", Help: "Requests to the image registry, by method, kind and code of the answer.",
	}, []string{"method", "kind", "code"})}
	if c.Metrics != nil {
		if err := c.Metrics.Register(g.requests); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// request is one request whose way is known.
type request struct {
	*http.Request
	route
	answer    *recorder
	principal string
}

// ServeHTTP answers one request.
func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	out := &recorder{ResponseWriter: w, control: http.NewResponseController(w), code: http.StatusOK}
	q := &request{Request: r, route: parse(r.URL.Path), answer: out}
	out.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	out.Header().Set("X-Content-Type-Options", "nosniff")
	if err := g.serve(q); err != nil { //nolint:contextcheck // q has the request, and with it its context
		g.fail(q, err)
	}
	g.requests.WithLabelValues(method(r.Method), q.kind.String(), code(out.code)).Inc()
	g.Log.Info("registry request", "method", r.Method, "path", r.URL.Path, "code", out.code, "principal", q.principal, "source", source(r), "took", time.Since(began))
}

func (g *registry) serve(q *request) error {
	do, actions := g.find(q)
	if do == nil {
		if err := g.authorize(q, q.repository); err != nil { // a stranger learns nothing else
			return err
		}
		return errUnsupported
	}
	if q.repository != "" {
		if err := registrystore.CheckName(q.repository); err != nil {
			return &failure{http.StatusBadRequest, "NAME_INVALID", err.Error()}
		}
	}
	if err := g.authorize(q, q.repository, actions...); err != nil {
		return err
	}
	return do(q)
}

// find finds what a request does, and the actions that its sender must be allowed.
func (g *registry) find(q *request) (do func(*request) error, actions []string) {
	reads := q.Method == http.MethodGet || q.Method == http.MethodHead
	switch {
	case q.kind == kindBase && reads:
		return g.base, nil
	case q.kind == kindManifest && reads:
		return g.getManifest, []string{"ecr:BatchGetImage"}
	case q.kind == kindManifest && q.Method == http.MethodPut:
		return g.putManifest, []string{"ecr:PutImage"}
	case q.kind == kindBlob && q.Method == http.MethodGet:
		return g.getBlob, []string{"ecr:GetDownloadUrlForLayer"}
	case q.kind == kindBlob && q.Method == http.MethodHead:
		return g.getBlob, []string{"ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer"}
	case q.kind == kindUploads && q.Method == http.MethodPost:
		return g.beginUpload, []string{"ecr:InitiateLayerUpload"}
	case q.kind == kindUpload && q.Method == http.MethodPatch:
		return g.appendUpload, []string{"ecr:UploadLayerPart"}
	case q.kind == kindUpload && q.Method == http.MethodPut:
		return g.finishUpload, []string{"ecr:CompleteLayerUpload"}
	case q.kind == kindUpload && reads:
		return g.showUpload, []string{"ecr:UploadLayerPart"}
	case q.kind == kindUpload && q.Method == http.MethodDelete:
		return g.abortUpload, []string{"ecr:UploadLayerPart"}
	case q.kind == kindTags && reads:
		return g.listTags, []string{"ecr:ListImages"}
	}
	return nil, nil
}

// arn is the name of a repository for policies.
func (g *registry) arn(repository string) string {
	if repository == "" {
		return "*"
	}
	return "arn:aws:ecr:" + g.Region + ":" + g.ID + ":repository/" + repository
}

// ask asks the account about a repository.
func (g *registry) ask(q *request, repository string, actions ...string) (registrylogin.Answer, error) {
	user, password, ok := q.BasicAuth()
	if !ok || user != "AWS" || password == "" {
		return registrylogin.Answer{}, &registrylogin.RefusedError{Reason: "log in as the user AWS with a password of `aws ecr get-login-password`"}
	}
	return g.Account.Decide(q.Context(), registrylogin.Question{
		Password: password, Actions: actions, Resource: g.arn(repository), Source: source(q.Request), UserAgent: q.UserAgent(),
	})
}

// authorize finds the sender of a request, who must be allowed every action. A HEAD of a blob is a part of pushes and
// of pulls: one of its actions does.
func (g *registry) authorize(q *request, repository string, actions ...string) error {
	answer, err := g.ask(q, repository, actions...)
	if err != nil {
		return err
	}
	q.principal = answer.Principal
	denied := ""
	for _, action := range actions {
		if why, no := answer.Denied[action]; no {
			denied = why
		} else if q.kind == kindBlob {
			return nil
		}
	}
	if denied != "" {
		return &failure{http.StatusForbidden, "DENIED", denied}
	}
	return nil
}

func (g *registry) base(q *request) error {
	q.answer.Header().Set("Content-Type", "application/json")
	_, err := q.answer.Write([]byte("{}"))
	return err
}

func digestOf(text string) digest.Digest { return digest.Digest(text) }

// source is the address of a client.
func source(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}
