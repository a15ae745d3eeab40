// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/watchfile"
)

const (
	// lookAgain is how often ports that could not be opened are tried again.
	lookAgain = 5 * time.Second
	// quiet is how long the file must have rested before it is read: it is replaced as a whole, and a target that goes
	// must be known at once.
	quiet = 5 * time.Millisecond
	// lockName is the lock that the one balancer process of a VPC holds, in the VPC's directory.
	lockName = "balancer.lock"
)

// Config is what a server works with.
type Config struct {
	Network *vpc.Network
	// Machines says which cluster's a machine is.
	Machines vpc.Machines
	// Dir is the VPC's directory.
	Dir string
	// Socket is a unix socket that says whether the server serves, and the status of everything.
	Socket string
	Log    *slog.Logger
}

// Server serves the load balancers of a VPC.
type Server struct {
	config  Config
	metrics *metrics
	dialer  dialer

	mutex  sync.Mutex
	fronts map[string]*front // by cluster and UID
	said   string            // the last error logged
}

// New checks the configuration.
func New(config Config) (*Server, error) {
	if config.Network == nil || config.Machines == nil || config.Dir == "" || config.Socket == "" || config.Log == nil {
		return nil, errors.New("the load balancers of a VPC need a network, a list of machines, a directory, a socket and a log")
	}
	return &Server{config: config, metrics: newMetrics(), fronts: map[string]*front{}}, nil
}

// Run makes the network if need be and serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	if err := s.config.Network.Ensure(); err != nil {
		return err
	}
	release, err := filelock.Take(s.config.Dir, lockName)
	if errors.Is(err, filelock.ErrTaken) {
		return fmt.Errorf("another process serves the load balancers of this VPC: %w", err)
	}
	if err != nil {
		return err
	}
	defer release()
	reach, err := s.config.Network.NewDialer(s.config.Machines)
	if err != nil {
		return err
	}
	defer reach.Close()
	s.dialer = newAdmitted(reach)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.closeAll()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	first := make(chan struct{})
	running.Go(func() {
		file := watchfile.File{
			Path: s.config.Network.BalancersPath(), What: "load balancers of the VPC", Poll: lookAgain, Quiet: quiet,
			MaxSize: vpc.MaxBalancersFile, Logger: s.config.Log,
		}
		begun := sync.OnceFunc(func() { close(first) })
		file.Run(ctx, func() {
			s.look(ctx, reach)
			begun()
		})
	})
	select {
	case <-first:
	case <-ctx.Done():
		return nil
	}
	s.config.Log.Info("load balancers are served", "vpc", s.config.Network.ID())
	return s.serveStatus(ctx)
}

// look has the balancers of the file be served, and no other. While the file cannot be read they are as they were.
func (s *Server) look(ctx context.Context, reach *vpc.Dialer) {
	err := s.follow(ctx, reach)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.said {
		s.config.Log.Error("load balancers are not as they should be", "error", err)
	}
	s.said = text
}

func (s *Server) follow(ctx context.Context, reach *vpc.Dialer) error {
	wanted, err := s.config.Network.Balancers()
	if err != nil {
		return err
	}
	if err := s.config.Network.EnsureAddresses(reach.Namespace()); err != nil {
		return err
	}
	return s.apply(ctx, wanted, reach.Namespace())
}

func keyOf(b loadbalancer.Balancer) string { return b.Cluster + "/" + b.UID }

func (s *Server) apply(ctx context.Context, wanted []loadbalancer.Balancer, place namespace) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kept := map[string]bool{}
	for _, b := range wanted {
		kept[keyOf(b)] = true
	}
	for key, f := range s.fronts {
		if !kept[key] {
			f.close()
			delete(s.fronts, key)
			s.config.Log.Info("load balancer removed", "cluster", f.balancer.Cluster, "namespace", f.balancer.Namespace, "service", f.balancer.Service)
		}
	}
	var errs []error
	for _, b := range wanted {
		key := keyOf(b)
		f := s.fronts[key]
		if f == nil {
			f = newFront(ctx, s, b)
			s.fronts[key] = f
		}
		if err := f.update(b, place); err != nil { //nolint:contextcheck // f has the context that it was made with
			errs = append(errs, fmt.Errorf("load balancer of %s/%s of cluster %s: %w", b.Namespace, b.Service, b.Cluster, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Server) closeAll() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for key, f := range s.fronts {
		f.close()
		delete(s.fronts, key)
	}
}
