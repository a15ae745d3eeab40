// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

// frontlessGrace is how long the API server of a management plane that has no front yet may take to end. Its watches
// would hold it up for a minute.
const frontlessGrace = 2 * time.Second

// managementPlane is the management plane while it runs. Its supervisor is its own, as the rollout owns the list.
type managementPlane struct {
	service    *Service
	supervisor *supervise.Supervisor
	rollout    *planerollout.Rollout
}

// newManagementPlane prepares the management plane as it was last, and what it is to become.
func newManagementPlane(ctx context.Context, s *Service, account component.Account) (plane managementPlane, err error) {
	plane.service = s
	if err := endFrontless(ctx, account); err != nil {
		return plane, err
	}
	if plane.supervisor, err = supervise.New(supervise.Config{State: account.State, Log: s.cfg.Log, Owns: component.IsManagementPlane}); err != nil {
		return plane, err
	}
	if plane.rollout, err = planerollout.New(planerollout.Config{
		Runner: plane.supervisor, Plane: component.ManagementPlane(account), Room: s.memory, Turns: &s.turns, Began: func(string) {}, Log: s.cfg.Log,
	}); err != nil {
		return plane, err
	}
	return plane, plane.rollout.Begin(ctx)
}

// endFrontless ends the API server of a Muster from before, which listens at the address that is the front's now.
func endFrontless(ctx context.Context, account component.Account) error {
	if _, err := os.Stat(statedir.Management(account.State).PlaneRecord()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := supervise.Stop(ctx, account.State, frontlessGrace, func(p supervise.Process) bool { return p.Name == component.Management })
	return err
}

// run runs the management plane until the context ends, and brings it to what is wanted of it.
func (p managementPlane) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { p.supervisor.Run(ctx) })
	outcome, err := p.rollout.Run(ctx)
	if err != nil {
		return
	}
	s := p.service
	failed := refusal(ctx, s.cfg.State, outcome, s.cfg.Log)
	s.news.Ended(outcome, failed)
	if failed != "" {
		s.mu.Lock()
		s.planeNote = "the management plane runs on as it was: " + failed
		s.mu.Unlock()
	}
}
