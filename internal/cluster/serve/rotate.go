// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/cluster/component"
)

// The pauses between two looks: while somebody has to read a file, while nodes renew, and while there is nothing to do but
// to see that what is published stays so.
const (
	verifyInterval  = 2 * time.Second
	replaceInterval = 5 * time.Second
	idleInterval    = time.Minute
)

// keys is the store of keys and certificates, in which one writes at a time: what follows from a record must not be written
// from an older one.
type keys struct {
	mu sync.Mutex
	authority.Store
}

// ensure makes and renews what components need.
func (k *keys) ensure(c component.Config, now time.Time) ([]string, error) {
	credentials, err := component.Credentials(c)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Ensure(credentials, now)
}

func (k *keys) startRotation(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.StartRotation(now)
}

func (k *keys) advance(r rotation.Rotation, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Advance(r, now)
}

// verifier is somebody who has to read what a rotation changes.
type verifier interface {
	// pending says what is not read yet; it is empty when all is. What cannot be seen has not been read.
	pending(ctx context.Context, r rotation.Rotation) string
}

// rotator moves rotations of kubelets' authority on. It keeps nothing that it cannot find again.
type rotator struct {
	keys      *keys
	verifiers []verifier
	// publish puts the bundles where everybody can read them.
	publish func(ctx context.Context, trusted []*x509.Certificate) error
	// nodes looks at the certificates that nodes use. authorities are by name.
	nodes func(authorities map[string]*x509.Certificate) ([]rotation.Node, error)
	// tell takes what the rotation waits for, and how far the nodes are.
	tell func(waits string, progress *rotation.Progress)
	log  *slog.Logger
}

// rotateKubelets publishes the authorities of kubelets' certificates, and moves rotations on, until the context ends.
func (s *Service) rotateKubelets(ctx context.Context, c component.Config) {
	var r *rotator
	if err := s.retry(ctx, "watching over kubelets' authority", func(context.Context) (err error) {
		r, err = s.newRotator(c)
		return err
	}); err != nil {
		return
	}
	for {
		pause := r.step(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-s.rotate: // somebody has asked for a rotation
		case <-time.After(pause):
		}
	}
}

func (s *Service) newRotator(c component.Config) (*rotator, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	rest := serviceClient(c, c.ServerURL(), "cluster", "service")
	// A plane that is down must not hold a step up for longer than it takes to say so.
	rest.Timeout = 10 * time.Second
	api, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	r := &rotator{
		keys:    s.keys,
		publish: func(ctx context.Context, trusted []*x509.Certificate) error { return publishBundles(ctx, api, trusted) },
		nodes: func(authorities map[string]*x509.Certificate) ([]rotation.Node, error) {
			return nodeCertificates(s.cfg.State, authorities)
		},
		tell:      s.tellRotation,
		log:       s.cfg.Log,
		verifiers: []verifier{&clientProbe{keys: s.keys, server: c.ServerURL(), caFile: c.Authority("cluster")}},
	}
	if c.VPC { // elsewhere machines are simulated only, and nobody serves
		reader, err := newServingReader(rest, api)
		if err != nil {
			return nil, err
		}
		r.verifiers = append(r.verifiers, reader)
	}
	r.verifiers = append(r.verifiers, delegated{keys: s.keys, api: api})
	return r, nil
}

// step looks once and moves a rotation on by at most one phase. It returns how long to wait.
func (r *rotator) step(ctx context.Context, now time.Time) time.Duration {
	k, err := r.keys.Kubelets()
	if err != nil {
		return r.failed(ctx, err)
	}
	authorities := map[string]*x509.Certificate{}
	var trusted []*x509.Certificate
	for _, name := range k.Trusts() {
		if authorities[name], err = r.keys.KubeletAuthority(name); err != nil {
			return r.failed(ctx, err)
		}
		trusted = append(trusted, authorities[name])
	}
	if err := r.publish(ctx, trusted); err != nil {
		return r.failed(ctx, fmt.Errorf("publishing kubelets' authorities: %w", err))
	}
	if k.Rotation == nil {
		r.tell("", nil)
		return idleInterval
	}
	before := *k.Rotation
	var seen rotation.Observation
	for _, v := range r.verifiers {
		if text := v.pending(ctx, before); text != "" {
			seen.Pending = append(seen.Pending, text)
		}
	}
	var progress *rotation.Progress
	if before.Phase != rotation.Withdraw {
		if seen.Nodes, seen.Unseen = r.nodes(authorities); seen.Unseen == nil {
			progress = new(before.Progress(seen.Nodes, now))
		}
	}
	next, waits := before.Next(seen, now)
	if ctx.Err() != nil { // what was seen on the way out is no reason for anything
		return 0
	}
	r.tell(waits, progress)
	if next != before {
		if err := r.keys.advance(next, now); err != nil {
			return r.failed(ctx, err)
		}
	}
	if next.Phase != before.Phase {
		r.log.Info("rotation of kubelets' authority goes on", "old", next.Old, "new", next.New, "from", before.Phase, "to", next.Phase)
		return 0
	}
	if next.Phase == rotation.Replace {
		return replaceInterval
	}
	return verifyInterval
}

func (r *rotator) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		r.tell(err.Error(), nil)
	}
	return verifyInterval
}

// tellRotation keeps what a rotation waits for, for people who ask.
func (s *Service) tellRotation(waits string, progress *rotation.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotationWaits = waits
	if progress != nil || waits == "" {
		s.rotationProgress = progress
	}
}

// rotationStatus tells of kubelets' authority, or nothing while there is none.
func (s *Service) rotationStatus() *RotationStatus {
	k, err := s.keys.Kubelets()
	if err != nil {
		return nil
	}
	status := &RotationStatus{Signs: k.Signs(), Trusts: k.Trusts(), Rotation: k.Rotation, Last: k.Last}
	if k.Rotation != nil {
		s.mu.Lock()
		status.Message, status.Progress = s.rotationWaits, s.rotationProgress
		s.mu.Unlock()
	}
	return status
}

// startRotation begins to replace kubelets' authority, unless that is under way.
func (s *Service) startRotation() (*RotationStatus, error) {
	if err := s.keys.startRotation(time.Now()); err != nil {
		return nil, err
	}
	select {
	case s.rotate <- struct{}{}:
	default: // it is about to look
	}
	return s.rotationStatus(), nil
}
