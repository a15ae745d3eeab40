// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/rotation"
)

// The pauses between two looks: while somebody has to read a file, while nodes renew, and while there is nothing to do
// but to see that what is published stays so.
const (
	verifyInterval  = 2 * time.Second
	replaceInterval = 5 * time.Second
	idleInterval    = time.Minute
)

// verifier is a program that has to read what a rotation changes.
type verifier interface {
	// pending says what is not read yet; it is empty when all is. A bundle that cannot be seen has not been read.
	pending(ctx context.Context, r rotation.Rotation) string
}

// Config is what a Rotator works with.
type Config struct {
	Keys *Keys
	// Server is the URL of the API server, and CAFile the file with the authority of its certificate.
	Server, CAFile string
	// Metrics is a connection to the API server that may read its metrics, list nodes and reach kubelets. It is nil
	// where no kubelet serves, and then nobody is asked whether the API server trusts the serving certificates of
	// kubelets.
	Metrics *rest.Config
	// API is a client of the same API server.
	API client.Client
	// Publish puts the trusted authorities where everybody in the cluster can read them.
	Publish func(ctx context.Context, trusted []*x509.Certificate) error
	// Nodes returns the certificates that nodes use; authorities are by name.
	Nodes func(authorities map[string]*x509.Certificate) ([]rotation.Node, error)
	// Report takes what a rotation waits for, which is empty while there is none, and the progress of the nodes, or
	// nil.
	Report func(waits string, progress *rotation.Progress)
	Log    *slog.Logger
}

// Rotator moves rotations of kubelets' authority on. It keeps nothing that it cannot find again.
type Rotator struct {
	Config
	verifiers []verifier
}

// New returns a Rotator.
func New(c Config) (*Rotator, error) {
	r := &Rotator{Config: c, verifiers: []verifier{&clientProbe{keys: c.Keys, server: c.Server, caFile: c.CAFile}}}
	if c.Metrics != nil {
		connection, err := rest.HTTPClientFor(c.Metrics)
		if err != nil {
			return nil, fmt.Errorf("making a client of the API server's metrics: %w", err)
		}
		r.verifiers = append(r.verifiers, newServingReader(connection, c.Metrics.Host, c.API))
	}
	r.verifiers = append(r.verifiers, delegated{keys: c.Keys, api: c.API})
	return r, nil
}

// Run publishes the authorities of kubelets' certificates and moves rotations on, until the context ends. A value of
// wake makes it look at once.
func (r *Rotator) Run(ctx context.Context, wake <-chan struct{}) {
	for {
		pause := r.step(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(pause):
		}
	}
}

// step looks once and moves a rotation on by at most one phase. It returns how long to wait.
func (r *Rotator) step(ctx context.Context, now time.Time) time.Duration {
	k, err := r.Keys.Kubelets()
	if err != nil {
		return r.failed(ctx, err)
	}
	authorities := map[string]*x509.Certificate{}
	var trusted []*x509.Certificate
	for _, name := range k.Trusts() {
		if authorities[name], err = r.Keys.KubeletAuthority(name); err != nil {
			return r.failed(ctx, err)
		}
		trusted = append(trusted, authorities[name])
	}
	if err := r.Publish(ctx, trusted); err != nil {
		return r.failed(ctx, fmt.Errorf("publishing kubelets' authorities: %w", err))
	}
	if k.Rotation == nil {
		r.Report("", nil)
		return idleInterval
	}
	before := *k.Rotation
	var seen rotation.Observation
	verifiers := r.verifiers
	if before.Resting() {
		verifiers = nil // they trust it by now, and nothing takes that from them
	}
	for _, v := range verifiers {
		if text := v.pending(ctx, before); text != "" {
			seen.Pending = append(seen.Pending, text)
		}
	}
	var progress *rotation.Progress
	if before.Phase != rotation.Withdraw && !before.Resting() {
		if seen.Nodes, seen.Unseen = r.Nodes(authorities); seen.Unseen == nil {
			progress = new(before.Progress(seen.Nodes, now))
		}
	}
	next, waits := before.Next(seen, now)
	if ctx.Err() != nil { // facts that were seen while the program ends must not cause a step
		return 0
	}
	r.Report(waits, progress)
	if next != before {
		if err := r.Keys.Advance(before, next, now); err != nil {
			return r.failed(ctx, err)
		}
	}
	if next.Phase != before.Phase {
		r.Log.Info("rotation of kubelets' authority goes on", "old", next.Old, "new", next.New, "from", before.Phase, "to", next.Phase)
		return 0
	}
	if next.Resting() {
		return idleInterval
	}
	if next.Phase == rotation.Replace {
		return replaceInterval
	}
	return verifyInterval
}

func (r *Rotator) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		r.Report(err.Error(), nil)
	}
	return verifyInterval
}
