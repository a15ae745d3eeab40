// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/cluster/clusterconfig"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/nodegroup"
	"muster.dev/muster/internal/cluster/supervise"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// renewalInterval is how often certificates are looked at; they are due a month before they end.
	renewalInterval = time.Hour
	// retryInterval is the pause after a step of the start that failed: mostly an API server that is not there yet.
	retryInterval = 500 * time.Millisecond
)

// Config configures a Service.
type Config struct {
	State  statedir.Dir
	BinDir string
	Log    *slog.Logger
	// Guarded makes the service keep a guard that starts it again when it dies.
	Guarded bool
}

// Service runs the cluster of one state directory.
type Service struct {
	cfg     Config
	started time.Time
	reload  chan struct{}
	rotate  chan struct{}
	refused chan nodegroup.Heard // from the identity service to the controllers
	keys    *rotator.Keys

	mu         sync.Mutex
	message    string
	supervisor *supervise.Supervisor
	specs      component.Config
	reader     client.Reader         // the management plane, once the controllers run
	identities identityservice.Store // while the identity service runs

	rotationWaits    string
	rotationProgress *rotation.Progress
}

// NewService makes a service that does nothing yet.
func NewService(cfg Config) (*Service, error) {
	if cfg.State == "" || cfg.BinDir == "" || cfg.Log == nil {
		return nil, errors.New("service needs a state directory, a directory of programs and a logger")
	}
	return &Service{
		cfg: cfg, started: time.Now(), reload: make(chan struct{}, 1), rotate: make(chan struct{}, 1), refused: make(chan nodegroup.Heard, 64),
		keys: rotator.NewKeys(cfg.State.PKI()),
	}, nil
}

// Run serves until the context ends, and leaves components and machines running. It returns an error at once if the state
// directory cannot be served: another service runs on it, it was never set up, or a file of it is damaged.
func (s *Service) Run(ctx context.Context) error {
	release, err := lock(s.cfg.State.Lock())
	if err != nil {
		return err
	}
	defer release()
	if err := os.MkdirAll(s.cfg.State.Run(), 0o700); err != nil {
		return fmt.Errorf("making directory %s for sockets: %w", s.cfg.State.Run(), err)
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), componentCollector{s})

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { cancel(s.serveSocket(ctx, metrics)) })

	for ctx.Err() == nil {
		if err := s.generation(ctx); err != nil {
			cancel(err)
		}
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// generation serves one configuration, until the context ends or the configuration has changed.
func (s *Service) generation(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	if err := checkLayout(s.cfg.State); err != nil {
		return err
	}
	wanted, err := clusterconfig.Read(s.cfg.State.Config())
	if err != nil {
		return err
	}
	specs, err := s.prepare(wanted)
	if err != nil {
		return err
	}
	processes, err := component.Specs(specs)
	if err != nil {
		return err
	}
	if s.cfg.Guarded {
		processes = append(processes, guardSpec(s.cfg.State, s.cfg.BinDir))
	}
	supervisor, err := supervise.New(supervise.Config{State: s.cfg.State, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.supervisor, s.specs, s.reader = supervisor, specs, nil
	s.mu.Unlock()

	var group sync.WaitGroup
	defer group.Wait()
	failed := make(chan error, 1)
	group.Go(func() {
		if err := supervisor.Run(ctx, processes); err != nil {
			failed <- err
		}
	})
	group.Go(func() { s.renew(ctx, specs) })
	group.Go(func() { s.rotateKubelets(ctx, specs) })
	group.Go(func() { s.control(ctx, wanted, specs) })
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	case <-s.reload:
		s.cfg.Log.Info("the configuration changed")
		return nil
	}
}

// prepare makes whatever the specs are built from: ports, keys and certificates.
func (s *Service) prepare(wanted clusterconfig.Config) (component.Config, error) {
	running, err := supervise.Find(s.cfg.State)
	if err != nil {
		return component.Config{}, err
	}
	if err := os.MkdirAll(s.cfg.State.PKI(), 0o700); err != nil {
		return component.Config{}, fmt.Errorf("making directory %s for keys: %w", s.cfg.State.PKI(), err)
	}
	specs := component.Config{State: s.cfg.State, BinDir: s.cfg.BinDir, Cluster: *wanted.Cluster, VPC: localMachinesPossible()}
	if specs.Ports, err = choosePorts(s.cfg.State, int(wanted.Cluster.Spec.APIServer.Port), running); err != nil {
		return component.Config{}, err
	}
	if specs.EncryptionKey, err = encryptionKey(s.cfg.State); err != nil {
		return component.Config{}, err
	}
	written, err := s.ensureKeys(specs, time.Now())
	if err != nil {
		return component.Config{}, err
	}
	if len(written) > 0 {
		s.cfg.Log.Info("issued certificates", "names", written)
	}
	return specs, writeKubeconfigs(specs)
}

// localMachinesPossible reports whether machines can be made of this host's namespaces, which takes root.
func localMachinesPossible() bool { return os.Geteuid() == 0 }

// renew issues certificates anew before they end. Every component reads its file again by itself.
func (s *Service) renew(ctx context.Context, specs component.Config) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewalInterval):
		}
		written, err := s.ensureKeys(specs, time.Now())
		if len(written) > 0 {
			s.cfg.Log.Info("renewed certificates", "names", written)
		}
		if err == nil {
			err = writeKubeconfigs(specs)
		}
		if err != nil {
			s.cfg.Log.Error("renewing certificates", "error", err)
		}
	}
}

func (s *Service) requestReload() {
	select {
	case s.reload <- struct{}{}:
	default: // one is on its way already
	}
}

// setReader sets the client that the status is read with.
func (s *Service) setReader(reader client.Reader) {
	s.mu.Lock()
	s.reader = reader
	s.mu.Unlock()
}

// setIdentities sets the store of the identity service; nil when it has ended.
func (s *Service) setIdentities(store identityservice.Store) {
	s.mu.Lock()
	s.identities = store
	s.mu.Unlock()
}

func (s *Service) identityStore() identityservice.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identities
}

// say sets what the service works at, for people who wait for it.
func (s *Service) say(message string) {
	s.mu.Lock()
	changed := s.message != message
	s.message = message
	s.mu.Unlock()
	if changed && message != "" {
		s.cfg.Log.Info("waiting", "reason", message)
	}
}

// retry repeats a step until it succeeds, saying what keeps it from it.
func (s *Service) retry(ctx context.Context, what string, step func(context.Context) error) error {
	for {
		err := step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			return nil
		}
		s.say(what + ": " + err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}
