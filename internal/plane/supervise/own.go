// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/platform/seclude"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// starter starts the command of a process, on the thread that it is called on.
type starter func(*exec.Cmd) error

// own is how a process of a spec is started as a user of its own.
type own struct {
	id   uint32
	view seclude.View
}

// ownOf is the user of a spec. It is nil for a spec without a view, and where components have no users of their own:
// then the process runs as this process does.
func (s *Supervisor) ownOf(spec component.Spec) (*own, error) {
	if spec.View == nil || !s.cfg.OwnUsers {
		return nil, nil //nolint:nilnil // it has no user of its own
	}
	id, found := planeid.Of(s.cfg.State, spec.Process())
	if !found {
		return nil, fmt.Errorf("%s has no user of its own: its ids in %s or those of its cluster are missing", spec.Name, s.cfg.State.IDs())
	}
	view, err := viewOf(s.cfg.State, spec)
	if err != nil {
		return nil, err
	}
	return &own{id, view}, nil
}

// giveInterval is how often files of components that run are looked at.
const giveInterval = time.Second

// keepGiven gives components that run as users of their own the files that somebody made anew as root, such as files
// restored from a backup. A file that Muster replaces keeps its owner (package atomicfile).
func (s *Supervisor) keepGiven(ctx context.Context) {
	for s.cfg.OwnUsers {
		select {
		case <-ctx.Done():
			return
		case <-time.After(giveInterval):
		}
		s.mu.Lock()
		running := map[uint32]component.Spec{}
		for _, m := range s.members {
			if spec := m.spec(); spec.View != nil && m.status.PID != 0 && m.status.User != 0 {
				running[m.status.User] = spec
			}
		}
		s.mu.Unlock()
		for user, spec := range running {
			if err := giveKeys(*spec.View, int(user)); err != nil {
				s.cfg.Log.Error("giving a component its files", "component", spec.Process(), "error", err)
			}
		}
	}
}

// user is who a process runs as.
func (o *own) user() uint32 {
	if o == nil {
		return uint32(os.Geteuid()) //nolint:gosec // G115: an id
	}
	return o.id
}

// start starts a command as the user, on a thread that ends with it.
func (o *own) start(cmd *exec.Cmd) error { return seclude.StartHere(cmd, o.id, o.view) }

// viewOf is what a spec's process sees of the host. A program is seen with its directory, so that one that has been
// replaced is known to be (adopt).
func viewOf(dir statedir.Dir, spec component.Spec) (seclude.View, error) {
	program, err := filepath.EvalSymlinks(spec.Path)
	if err != nil {
		return seclude.View{}, fmt.Errorf("finding program of %s: %w", spec.Name, err)
	}
	return seen(dir, spec, program), nil
}

// seen is viewOf for a spec whose program leads to another one.
func seen(dir statedir.Dir, spec component.Spec, program string) seclude.View {
	v := spec.View
	view := seclude.View{
		Reads:  []string{filepath.Dir(spec.Path), filepath.Dir(program), folderOf(dir, spec)},
		Writes: slices.Concat(v.Writes, v.Adds),
		Files:  v.Fixed,
		Links:  map[string]string{},

		OwnNetwork: v.OwnNetwork,
	}
	for _, file := range slices.Concat(v.Reads, v.Shared, v.Public) {
		view.Reads = append(view.Reads, filepath.Dir(file))
	}
	for _, socket := range v.Listens {
		view.Writes = append(view.Writes, socketdir.Dir(socket))
	}
	for _, socket := range v.Connects {
		view.Reads = append(view.Reads, socketdir.Dir(socket))
	}
	for _, socket := range slices.Concat(v.Listens, v.Connects) {
		view.Links[socket] = socketdir.Link(socket)
	}
	slices.Sort(view.Reads)
	view.Reads = slices.Compact(view.Reads)
	return view
}
