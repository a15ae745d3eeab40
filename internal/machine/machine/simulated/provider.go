// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// providerName marks the records of this provider, since it may share a directory with another.
const providerName = "simulated"

// Config says where the records are kept.
type Config struct {
	Store *machine.Store
	// Launched is told that there is a machine, or may be nil.
	Launched func()
}

const (
	// stoppedFile is in the directory of a machine that is stopped.
	stoppedFile = "stopped"
	// bootFile is in the directory of a machine that was stopped once: the last stoppedFile, since it runs again. Another
	// file is another boot.
	bootFile = "boot"
)

// Provider keeps records of machines. A simulated machine runs for as long as it has a record and is not stopped.
type Provider struct {
	store    *machine.Store
	launched func()
}

var _ machine.Provider = (*Provider)(nil)

// New checks the configuration. It makes nothing.
func New(config Config) (*Provider, error) {
	if config.Store == nil {
		return nil, errors.New("the simulated provider needs a store of records")
	}
	if config.Launched == nil {
		config.Launched = func() {}
	}
	return &Provider{store: config.Store, launched: config.Launched}, nil
}

// Launch implements [machine.Provider].
func (p *Provider) Launch(_ context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	if err := request.Validate(); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine: %w", err)
	}
	if request.Pods > 0 {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, machine.CannotError{Provider: v1alpha1.ProviderSimulated, Do: v1alpha1.RunPods})
	}
	before, unknown := p.store.Get(providerName, request.ID)
	record, err := p.store.Put(providerName, request)
	if err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	if isStopped(p.store.Path(request.ID)) {
		err = p.start(request.ID)
	} else if unknown == nil && before.Lifecycle != record.Lifecycle {
		err = p.tell(request.ID)
	}
	if err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	p.launched()
	return record.Instance(machine.Running), nil
}

// Get implements [machine.Provider].
func (p *Provider) Get(_ context.Context, id string) (machine.Instance, error) {
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return machine.Instance{}, err
	}
	return record.Instance(p.state(id)), nil
}

// state is what a machine does that has a record.
func (p *Provider) state(id string) machine.State {
	if isStopped(p.store.Path(id)) {
		return machine.Stopped
	}
	return machine.Running
}

// isStopped reports whether the machine of a directory is stopped.
func isStopped(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, stoppedFile))
	return err == nil
}

// bootOf names the boot of the machine of a directory: it is another one after each stop.
func bootOf(dir string) int64 {
	var stat unix.Stat_t
	if unix.Lstat(filepath.Join(dir, bootFile), &stat) != nil {
		return 0 // it was never stopped
	}
	return stat.Ctim.Nano()
}

// List implements [machine.Provider].
func (p *Provider) List(context.Context) ([]machine.Instance, error) {
	records, err := p.store.List(providerName)
	if err != nil && !errors.Is(err, machine.ErrDamaged) {
		return nil, err
	}
	instances := make([]machine.Instance, 0, len(records))
	for _, record := range records {
		instances = append(instances, record.Instance(p.state(record.ID)))
	}
	return instances, nil
}

// Stop implements [machine.Provider]. The simulator sees the mark, and lets the node fall silent.
func (p *Provider) Stop(_ context.Context, id string) error {
	if machine.ValidateID(id) != nil {
		return nil //nolint:nilerr // no machine has such an id, so it does not run
	}
	err := os.WriteFile(filepath.Join(p.store.Path(id), stoppedFile), nil, 0o600)
	if err == nil {
		err = p.tell(id)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stopping machine %s: %w", id, err)
	}
	return nil
}

// start removes the mark of a machine that is stopped. The simulator is told before, and looks for a while then: a machine
// without a mark runs, so that nobody would tell it later if this process were killed in between.
func (p *Provider) start(id string) error {
	if err := p.tell(id); err != nil {
		return err
	}
	dir := p.store.Path(id)
	if err := os.Rename(filepath.Join(dir, stoppedFile), filepath.Join(dir, bootFile)); err != nil {
		return err
	}
	return p.tell(id)
}

// tell has the simulator look at the mark of a machine: it reads the directory of machines when that has changed.
func (p *Provider) tell(id string) error {
	now := time.Now()
	return os.Chtimes(filepath.Dir(p.store.Path(id)), now, now)
}

// Terminate implements [machine.Provider].
func (p *Provider) Terminate(_ context.Context, id string) error {
	if err := machine.ValidateID(id); err != nil {
		return nil //nolint:nilerr // there is no machine of that name, so it is terminated
	}
	if err := p.store.Delete(id); err != nil {
		return fmt.Errorf("terminating machine %s: %w", id, err)
	}
	return nil
}

// Asked reports whether one of the node groups is of simulated machines.
func Asked(groups []*v1alpha1.NodeGroup) bool {
	return slices.ContainsFunc(groups, func(g *v1alpha1.NodeGroup) bool { return g.Spec.Provider == v1alpha1.ProviderSimulated })
}

// Has reports whether a cluster has simulated machines.
func Has(store *machine.Store, cluster string) (bool, error) {
	records, err := store.List(providerName)
	if err != nil && !errors.Is(err, machine.ErrDamaged) {
		return false, err
	}
	return slices.ContainsFunc(records, func(r machine.Record) bool { return r.Cluster == cluster }), nil
}
