// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/httpserve"
)

const (
	// patience is how long a request waits for its turn, and makingTime how long an explanation may take.
	patience, makingTime = 10 * time.Second, 25 * time.Second
	// mostWaiting is how many requests of a cluster may wait for their turn.
	mostWaiting = 16
	// reviewTime is how long the API server may take to say whether a user may.
	reviewTime = 5 * time.Second
	// agentBytes is how much of what a client calls itself is written down.
	agentBytes = 200
)

// Readers are what explanations are read from.
type Readers struct {
	Management, Cluster client.Reader
}

// Config is what the API of one cluster is made of.
type Config struct {
	// Namespace of the cluster in the management plane.
	Namespace string
	// Readers are made when they are first needed, and then kept. An error is told, and they are made anew with the next
	// request.
	Readers func() (Readers, error)
	// Review asks the API server of the cluster whether a user may.
	Review func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
	// Logs are those of the host at a moment.
	Logs func(now time.Time) evidence.Logs
	// Record writes down who reads, before anything is read.
	Record func(readaudit.Read) error
	Now    func() time.Time
	Log    *slog.Logger
}

// Server answers the API server of one cluster.
type Server struct {
	Config

	turn    chan struct{} // of the one explanation that is being made
	waiting atomic.Int32
	readers atomic.Pointer[Readers]
}

// New returns a server of the API.
func New(c Config) *Server { return &Server{Config: c, turn: make(chan struct{}, 1)} }

// Serve answers at a listener until the context ends, by TLS with a certificate, to clients that have one of a certificate authority.
// The files are read again when they change.
func (s *Server) Serve(ctx context.Context, listener net.Listener, certificate, clientCA string) error {
	files, err := httpserve.ReadFiles("the API "+Group, certificate, certificate, clientCA, s.Log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	set := httpserve.Set{Logger: s.Log, Grace: time.Second}
	set.Handle(tls.NewListener(listener, files.Config()), s).MaxHeaderBytes = 256 << 10 // who is in many groups
	return set.Serve(ctx)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	who, err := callerOf(r)
	if err != nil {
		refuse(w, apierrors.NewUnauthorized(err.Error()))
		return
	}
	a, wrong := read(r)
	if err := s.authorize(r.Context(), a, who); err != nil {
		refuse(w, err)
		return
	}
	if wrong != nil {
		refuse(w, wrong)
		return
	}
	if a.resource == nil {
		discover(w, r)
		return
	}
	reports, err := s.explain(r, a, who)
	if err != nil {
		refuse(w, err)
		return
	}
	s.show(w, a, reports)
}

// authorize returns the error to answer with if the user may not, or if that is not known.
func (s *Server) authorize(ctx context.Context, a asked, who caller) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	spec := a.attributes(who)
	status, err := s.Review(ctx, spec)
	switch {
	case err != nil:
		s.Log.Warn("the API server does not say whether a user may read explanations", "error", err)
		return apierrors.NewServiceUnavailable("the API server of the cluster does not say whether you may")
	case status.Allowed && !status.Denied:
		return nil
	case a.resource == nil:
		return apierrors.NewForbidden(a.groupResource(), "", fmt.Errorf("User %q cannot %s path %q", who.user, a.verb(), a.path)) //nolint:staticcheck // ST1005: the words of API servers
	}
	return apierrors.NewForbidden(a.groupResource(), a.name, fmt.Errorf("User %q cannot %s resource %q in API group %q at the cluster scope", who.user, a.verb(), a.resource.plural, Group)) //nolint:staticcheck // ST1005: the words of API servers
}

// explain makes the reports that are asked for.
func (s *Server) explain(r *http.Request, a asked, who caller) ([]diagnosis.Report, error) {
	leave, err := s.wait(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	agent := r.UserAgent()
	now := s.Now()
	if err := s.Record(readaudit.Read{
		Time: now.UTC(), By: readaudit.Self(), With: Group, Client: agent[:min(len(agent), agentBytes)], Command: "GET " + r.URL.RequestURI(), Cluster: s.Namespace, User: who.user,
	}); err != nil {
		s.Log.Error("a read of explanations cannot be recorded", "error", err)
		return nil, apierrors.NewServiceUnavailable("nothing is read, since the record of reads cannot be written")
	}
	ctx, cancel := context.WithTimeout(r.Context(), makingTime)
	defer cancel()
	readers, err := s.reader()
	if err != nil {
		return nil, s.unasked(err)
	}
	answers, err := readAnswers(ctx, readers, s.Namespace, s.Logs, now)
	if err != nil {
		return nil, s.unasked(err)
	}
	name := cmp.Or(a.name, a.only)
	switch {
	case a.none:
		return nil, nil
	case name == "":
		return answers.all(ctx, a.resource.explains), nil
	}
	report, found := answers.one(ctx, a.resource.explains, name)
	switch why := answers.blind(); {
	case found:
		return []diagnosis.Report{report}, nil
	case why != "" && a.resource.explains != kindCluster:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("whether there is a %s %q is not known: %s", a.resource.explains, name, why))
	case a.name == "":
		return nil, nil
	}
	return nil, apierrors.NewNotFound(a.groupResource(), a.name)
}

func (s *Server) unasked(err error) error {
	s.Log.Warn("nothing can be explained", "error", err)
	return apierrors.NewServiceUnavailable("nothing can be explained now: the management plane does not answer")
}

// wait waits for the turn of a request, since an explanation takes processor and memory of the service.
func (s *Server) wait(ctx context.Context) (leave func(), err error) {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > mostWaiting {
		return nil, apierrors.NewTooManyRequests("many ask for explanations", 1)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, apierrors.NewTooManyRequests("other explanations are being made", 1)
	}
}

// reader returns the readers, and makes them if nobody has asked yet. The turn is held.
func (s *Server) reader() (Readers, error) {
	if made := s.readers.Load(); made != nil {
		return *made, nil
	}
	made, err := s.Readers()
	if err == nil {
		s.readers.Store(&made)
	}
	return made, err
}

// show writes reports as what was asked for, without secrets.
func (s *Server) show(w http.ResponseWriter, a asked, reports []diagnosis.Report) {
	var shown any = list(*a.resource, reports)
	switch {
	case a.table:
		shown = table(*a.resource, reports)
	case a.name != "":
		shown = object(*a.resource, reports[0])
	}
	raw, _, err := redaction.JSON(shown)
	if err != nil {
		s.Log.Error("an explanation cannot be written", "error", err)
		refuse(w, apierrors.NewInternalError(errors.New("the explanation cannot be written")))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // the client may be gone
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", seconds(time.Duration(status.Details.RetryAfterSeconds)*time.Second))
	}
	writeJSON(w, int(status.Code), "application/json", status)
}

func writeJSON(w http.ResponseWriter, code int, contentType string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		code, raw = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(raw) // the client may be gone
}
