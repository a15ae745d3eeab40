// SPDX-License-Identifier: Apache-2.0

// Package session is one `muster up`: it checks what would keep a cluster from starting before anything is changed, makes
// the cluster's record, starts the service unless it runs, tells it what is wanted, and waits until that is there.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/stateconversion"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

const (
	pollInterval = 100 * time.Millisecond
	// maxPollPause is how old what is shown may be.
	maxPollPause = 2 * time.Second
	// answerTimeout is how long a service that was just started may take until it answers.
	answerTimeout = 15 * time.Second
)

// Session is one `muster up`: it brings a cluster to the requested configuration, and waits.
type Session struct {
	State  statedir.Dir
	Wanted clusterconfig.Config
	// Region that the account is to be in; empty for the one that it is in, or the default.
	Region string
	// IssuerHost is the host in the URLs of issuers, with a port unless that is 443; empty for the one that was chosen,
	// or this host's own name.
	IssuerHost string
	// IssuerByAddress is true when the account's address is to be the host, and nothing else; IssuerHost is empty then.
	IssuerByAddress bool
	// Egress is the way out of the default VPC of an account that is new; NAT if empty.
	Egress egresspolicy.Mode
	// BalancerRange is the range of the host that new load balancers have addresses of; not valid for the one that is
	// kept, or the default.
	BalancerRange netip.Prefix
	// HostRoot are the clusters that may have machines whose root is root on this host, from now on; nil for those that
	// may now.
	HostRoot hostroot.Clusters
	// Explicit is true when the caller gave a configuration now, so that a cluster that exists is changed to it.
	Explicit bool
	// Running lists the components of the state directory that run, whether or not a service does.
	Running func() ([]runner.Running, error)

	// Checked, if not nil, is called when nothing keeps the session from it, and before anything is changed, with what the
	// service converts first.
	Checked func(converts stateconversion.Plan)
}

// Outcome says what a session had to do.
type Outcome struct {
	// Created is true when there was no cluster here before.
	Created bool
	// Unchanged is true when everything ran already and nothing was changed.
	Unchanged bool
	// Resumed is true when an account that was there had stopped: its machines boot, and their pods are started again.
	Resumed bool
	// Unnamed says why the issuers of the account, which was made, are at an address, which pods cannot reach; nil
	// otherwise.
	Unnamed error
	// RangeChanged is true when new load balancers have addresses of another range now.
	RangeChanged bool
	// HostRootChanged is true when other clusters than before may have machines whose root is root on this host.
	HostRootChanged bool
	// Freed are machines whose FUSE file systems were ended: a service that was killed or stopped waited for them, and
	// could not end.
	Freed []string
}

// Cluster is the directory of the session's cluster.
func (s Session) Cluster() statedir.Cluster {
	return s.State.Cluster(v1alpha1.ClusterSlug(s.Wanted.Cluster.Spec.Name))
}

// inOrder takes steps of a session. The command line keeps no log of them.
func inOrder(list ...steps.Step) error { return steps.InOrder(slog.New(slog.DiscardHandler), list...) }

// start is a session under way: what its steps have found so far.
type start struct {
	Session
	binDir  string
	service *controlsocket.Client
	running bool // a service answers
	made    bool // the cluster has a record since now
	outcome Outcome
}

// Start checks everything that can be checked before anything is changed, starts the service unless it runs, and tells
// it the wanted configuration.
func (s Session) Start(ctx context.Context) (Outcome, error) {
	now := &start{Session: s, service: controlsocket.NewClient(s.State)}
	now.outcome.Freed = guard.AwaitEnd(ctx, s.State, slog.New(slog.DiscardHandler))
	err := inOrder(
		steps.Into("programs", &now.binDir, func() (string, error) { return programs.Find(local.Possible()) }),
		steps.Into("service that runs", &now.running, func() (bool, error) { return answers(ctx, now.service) }),
		steps.New("checks", now.check),
		steps.Into("record", &now.made, func() (bool, error) { return s.save(ctx, &now.outcome) }),
		steps.Into("range of load balancers", &now.outcome.RangeChanged, func() (bool, error) { return balancerrange.Keep(s.State, s.BalancerRange) }),
		steps.Into("clusters with the host's root", &now.outcome.HostRootChanged, func() (bool, error) { return hostroot.Keep(s.State, s.HostRoot) }).If(s.HostRoot != nil),
		steps.New("service of another program", func() error { return now.stopOutdated(ctx) }),
		steps.New("service", func() error { return now.serve(ctx) }),
		steps.New("changes", func() error { return now.change(ctx) }),
	)
	if err != nil {
		return Outcome{}, err
	}
	return now.outcome, nil
}

// answers reports whether a service runs.
func answers(ctx context.Context, service *controlsocket.Client) (bool, error) {
	_, err := service.Status(ctx)
	if errors.Is(err, controlsocket.ErrNotRunning) {
		return false, nil
	}
	return err == nil, err
}

// check finds what would keep the cluster from starting, and says that nothing does.
func (s *start) check() error {
	converts, err := stateconversion.Of(s.State).Check()
	if err == nil {
		err = s.Session.check(s.binDir, s.running)
	}
	if err != nil {
		return err
	}
	if s.Checked != nil {
		s.Checked(converts)
	}
	s.outcome.Created = !s.State.Exists()
	return nil
}

// stopOutdated ends a service of another program than this.
func (s *start) stopOutdated(ctx context.Context) error {
	if !s.running || !guard.Outdated(s.State) {
		return nil
	}
	s.running = false
	freed, err := guard.StopService(ctx, s.State)
	s.outcome.Freed = append(s.outcome.Freed, freed...)
	return err
}

// serve starts the service unless it runs, and has it look for a cluster that is new.
func (s *start) serve(ctx context.Context) error {
	switch {
	case s.running && s.made:
		return s.service.Reload(ctx)
	case s.running:
		s.outcome.Unchanged = !s.outcome.RangeChanged && !s.outcome.HostRootChanged
		return nil
	}
	if running, err := guard.Running(s.State); err == nil {
		s.outcome.Resumed = !s.outcome.Created && len(running) == 0
	}
	if err := guard.Start(s.State, s.binDir); err != nil {
		return err
	}
	return s.waitForAnswer(ctx, s.service)
}

// change changes a cluster that was there to the wanted configuration, if the session was given that now.
func (s *start) change(ctx context.Context) error {
	if !s.Explicit || s.made {
		return nil
	}
	applied, err := s.apply(ctx)
	s.outcome.Unchanged = s.outcome.Unchanged && !applied
	return err
}

func (s Session) waitForAnswer(ctx context.Context, service *controlsocket.Client) error {
	deadline := time.Now().Add(answerTimeout)
	for {
		_, err := service.Status(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(deadline) {
			if !errors.Is(err, controlsocket.ErrNotRunning) {
				return err
			}
			return fmt.Errorf("the service does not start: %s (log: %s)", lastLine(s.State.Log(guard.ProcessServe)), s.State.Log(guard.ProcessServe))
		}
		if err := steps.Pause(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// lastLine is the end of a log, for a message to a person.
func lastLine(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "it wrote no log"
	}
	text := strings.TrimSpace(string(raw))
	if text == "" {
		return "it wrote nothing to its log"
	}
	lines := strings.Split(text, "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "Error: ")
}
