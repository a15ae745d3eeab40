// SPDX-License-Identifier: Apache-2.0

package nodeauthorizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/lru"
)

const (
	nodePrefix = "system:node:"
	// A node that is refused tries again and again: each certificate is logged once in a while.
	logEvery = time.Minute
	logMost  = 1024
	// An API server waits for an answer for five seconds. A program that is started again has read the record and the
	// machines within one.
	starting  = 10 * time.Second
	patience  = 4 * time.Second
	lookAgain = 50 * time.Millisecond
)

// Certificates is the record of issued certificates.
type Certificates interface {
	// HasSynced reports whether the record has been read.
	HasSynced() bool
	// Credential returns which machine a client certificate of a node was issued to.
	Credential(node string, id pki.Fingerprint) policy.Fact[policy.Credential]
}

// Machines is a source that knows each machine that there is.
type Machines interface {
	// LastSeen finds a machine in the list that was read last, however long ago. It is Unknown before there is one.
	LastSeen(id string) policy.Fact[policy.Machine]
}

// Config is what an Authorizer needs.
type Config struct {
	Certificates Certificates
	// Machines by the name of the source, as it is on record beside the ID of a machine.
	Machines map[string]Machines
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
	Now      func() time.Time // time.Now if nil
	// Starting is how long after New requests may wait for what has not been read yet; 10 seconds if 0.
	Starting time.Duration
}

// Authorizer answers SubjectAccessReviews. It is safe for use by several goroutines.
type Authorizer struct {
	config  Config
	answers *prometheus.CounterVec
	started time.Time

	mu     sync.Mutex
	logged *lru.Map[pki.Fingerprint, time.Time]
}

// New makes an Authorizer.
func New(c Config) (*Authorizer, error) {
	if c.Certificates == nil || len(c.Machines) == 0 || c.Metrics == nil || c.Logger == nil {
		return nil, errors.New("the authorizer of nodes needs the record of issued certificates, a source of machines, metrics and a logger")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Starting == 0 {
		c.Starting = starting
	}
	a := &Authorizer{config: c, started: time.Now(), logged: lru.New[pki.Fingerprint, time.Time](logMost), answers: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "muster_certificates", Name: "node_requests_total", Help: "Requests of nodes by client certificate that an API server asked about, by result.",
	}, []string{"result"})}
	if err := c.Metrics.Register(a.answers); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return a, nil
}

// authorize judges a request of an API server's. While the program is starting it waits for what has not been read yet;
// later, as when the list of machines is damaged, waiting would only keep others of the API server's requests waiting.
func (a *Authorizer) authorize(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) verdict {
	node, is := strings.CutPrefix(spec.User, nodePrefix)
	id, shown := policy.CredentialAmong(spec.Extra)
	if !is || !shown {
		return a.count(verdict{result: noOpinion})
	}
	v := a.judge(node, id)
	until := time.Now().Add(min(patience, time.Until(a.started.Add(a.config.Starting))))
	for v.result == unread && time.Now().Before(until) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
		v = a.judge(node, id)
	}
	if v.denied() && a.news(id) {
		a.config.Logger.Warn("request of a node refused", "node", node, "certificate", fmt.Sprintf("%x", id), "reason", v.reason)
	}
	return a.count(v)
}

func (a *Authorizer) judge(node string, id pki.Fingerprint) verdict {
	read := a.config.Certificates.HasSynced()
	var c policy.Fact[policy.Credential]
	var machine policy.Fact[policy.Machine]
	var counts bool
	if read {
		c = a.config.Certificates.Credential(node, id)
		source, name := c.Value.Machine.Split()
		var of Machines
		if of, counts = a.config.Machines[source]; counts {
			machine = of.LastSeen(name)
		}
	}
	return decide(node, read, c, machine, counts)
}

func (a *Authorizer) count(v verdict) verdict {
	a.answers.WithLabelValues(string(v.result)).Inc()
	return v
}

// news reports whether a certificate was not logged lately.
func (a *Authorizer) news(id pki.Fingerprint) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	if at, ok := a.logged.Get(id); ok && now.Sub(at) < logEvery {
		return false
	}
	a.logged.Put(id, now)
	return true
}
