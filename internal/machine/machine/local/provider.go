// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

// Config says where machines are kept and what they are made of.
type Config struct {
	State statedir.Dir
	// BinDir holds muster, containerd, runc, kubelet and the rest; machines see it read-only.
	BinDir string
	// Subnets lists the subnets that machines get addresses in, of VPCs that are described below the state directory
	// (see [Subnets]). Region is the one that their zones are of, and says what the machines' names end in.
	Subnets func() ([]machine.Subnet, error)
	Region  region.Region
	// IDs are those of the host that machines with user namespaces of their own share out. Nil if there are none.
	IDs func() (userns.IDs, error)
	Log *slog.Logger
}

// Provider makes local machines.
type Provider struct {
	config  Config
	store   *machine.Store
	cgroups host.Cgroups
	bounds  capacity.Bounds // of this host
	running running
	visits  visits

	mutex   sync.Mutex
	locks   map[string]*sync.Mutex
	booting map[string]bool
}

var _ machine.Provider = (*Provider)(nil)

// ErrNotRoot says what local machines need that the caller does not have, and both ways out.
var ErrNotRoot = errors.New("local machines are made of Linux namespaces, which needs root: run muster as root (sudo), or choose --provider simulated")

// Possible reports whether this process may make machines out of namespaces, which takes root. New says whether this
// host can.
func Possible() bool { return host.AsRoot() }

// New checks that this host can run machines. It makes nothing.
func New(config Config) (*Provider, error) {
	if !Possible() {
		return nil, ErrNotRoot
	}
	if config.Log == nil || config.Subnets == nil {
		return nil, errors.New("the local provider needs a list of subnets and a log")
	}
	if err := checkPrograms(config.BinDir); err != nil {
		return nil, err
	}
	if err := vpc.CheckPrograms(); err != nil {
		return nil, err
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return nil, err
	}
	missing, err := cgroups.Missing()
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("this host has no control group controllers %s (version %d), which a kubelet needs: enable them, or choose --provider simulated",
			strings.Join(missing, ", "), cgroups.Version())
	}
	bounds, err := hostBounds(cgroups)
	if err != nil {
		return nil, err
	}
	store, err := machine.NewStore(machine.StoreConfig{Dir: config.State.Machines(), Subnets: config.Subnets, Region: config.Region, IDs: config.IDs})
	if err != nil {
		return nil, err
	}
	return &Provider{
		config: config, store: store, cgroups: cgroups, bounds: bounds, running: running{dir: config.State}, visits: visits{time: visitTime},
		locks: map[string]*sync.Mutex{}, booting: map[string]bool{},
	}, nil
}

// checkPrograms names every program that a machine would lack.
func checkPrograms(binDir string) error {
	if !filepath.IsAbs(binDir) {
		return fmt.Errorf("directory of programs %q is not an absolute path", binDir)
	}
	var missing []string
	for _, name := range slices.Concat([]string{"muster", "containerd", "containerd-shim-runc-v2", "ctr"}, release.Default().MachinePrograms(), []string{
		"runc", "cni/host-local", "cni/loopback", "cni/portmap", "cni/ptp", "images/pause.tar",
	}) {
		if _, err := os.Stat(filepath.Join(binDir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s, of which machines are made: run make build", binDir, strings.Join(missing, ", "))
	}
	return nil
}

// lock makes calls for one machine wait for each other.
func (p *Provider) lock(id string) func() {
	p.mutex.Lock()
	lock, ok := p.locks[id]
	if !ok {
		lock = new(sync.Mutex)
		p.locks[id] = lock
	}
	p.mutex.Unlock()
	lock.Lock()
	return lock.Unlock
}

// Launch implements [machine.Provider].
func (p *Provider) Launch(ctx context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	if err := request.Validate(); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine: %w", err)
	}
	defer p.lock(request.ID)()
	record, err := p.store.Put(providerName, request)
	if err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	if _, running, err := p.find(request.ID); err != nil || running {
		return instanceOf(p.config.State, record, machine.Running), err
	}
	if err := p.checkReserve(request.ID); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	if err := p.prepareDisk(ctx, record); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	if record, err = p.isolate(request, record); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	p.setBooting(request.ID, true)
	defer p.setBooting(request.ID, false)
	if err := p.boot(ctx, record, request.SecurityGroups); err != nil {
		return machine.Instance{}, fmt.Errorf("launching machine %s: %w", request.ID, err)
	}
	instance := instanceOf(p.config.State, record, machine.Running)
	instance.NoSSHServer = !record.Key.IsZero() && !sshserver.Installed()
	return instance, nil
}

// instanceOf is an instance as its record says, with the size that its disk has. If the disk cannot be looked at, that is the
// size that was asked for.
func instanceOf(dir statedir.Dir, record machine.Record, state machine.State) machine.Instance {
	instance := record.Instance(state)
	if size, err := sizeOfDisk(dir, record.ID); err == nil {
		instance.DiskSize = int(size >> 30)
	}
	return instance
}

func (p *Provider) setBooting(id string, booting bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if booting {
		p.booting[id] = true
	} else {
		delete(p.booting, id)
	}
}

// Get implements [machine.Provider].
func (p *Provider) Get(_ context.Context, id string) (machine.Instance, error) {
	record, err := p.store.Get(providerName, id)
	if err != nil {
		return machine.Instance{}, err
	}
	_, running, err := p.find(id)
	if err != nil {
		return machine.Instance{}, err
	}
	return instanceOf(p.config.State, record, p.state(id, running)), nil
}

// List implements [machine.Provider].
func (p *Provider) List(context.Context) ([]machine.Instance, error) {
	records, err := p.store.List(providerName)
	if err != nil && !errors.Is(err, machine.ErrDamaged) {
		return nil, err
	}
	ids := make([]string, 0, len(records))
	for _, record := range records {
		ids = append(ids, record.ID)
	}
	running, err := p.running.of(ids...)
	if err != nil {
		return nil, err
	}
	instances := make([]machine.Instance, 0, len(records))
	for _, record := range records {
		_, ok := running[record.ID]
		instances = append(instances, instanceOf(p.config.State, record, p.state(record.ID, ok)))
	}
	return instances, nil
}

func (p *Provider) state(id string, running bool) machine.State {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case p.booting[id]:
		return machine.Pending
	case running:
		return machine.Running
	default:
		return machine.Stopped
	}
}

// endPatience is how long the kernel may take to end all processes of a machine and to let go of its control groups.
const endPatience = 20 * time.Second

// killPatience is how long it may take until the file systems of programs of the machine (FUSE) are ended, too.
const killPatience = 3 * time.Second

// Terminate implements [machine.Provider]. It does every step whatever the earlier ones found, so that it also removes
// what a launch that was cut short has left.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	if err := machine.ValidateID(id); err != nil {
		return nil
	}
	defer p.lock(id)()
	if err := p.end(ctx, id, 0); err != nil {
		return fmt.Errorf("terminating machine %s: %w", id, err)
	}
	if err := p.store.Delete(id); err != nil {
		return fmt.Errorf("terminating machine %s: %w", id, err)
	}
	return nil
}

// stopGrace is how long a machine that is asked to shut down may take, before it is made to: its agent waits for
// programs for less (package agent).
const stopGrace = 10 * time.Second

// Stop implements [machine.Provider].
func (p *Provider) Stop(ctx context.Context, id string) error {
	if err := machine.ValidateID(id); err != nil {
		return nil // no machine has such an id, so it does not run
	}
	defer p.lock(id)()
	if err := p.end(ctx, id, stopGrace); err != nil {
		return fmt.Errorf("stopping machine %s: %w", id, err)
	}
	return nil
}

// end ends a machine's processes, removes its link, its control groups and its loop devices, and unmounts its disk.
func (p *Provider) end(ctx context.Context, id string, grace time.Duration) error {
	pid, running, err := p.find(id)
	if err != nil {
		return err
	}
	if running {
		if err := endProcess(ctx, pid, grace); err != nil {
			return err
		}
	}
	if record, err := p.store.Get(providerName, id); err == nil {
		if err := detach(p.config.State, record); err != nil {
			return err
		}
		if err := cutOff(ctx, p.config.State, record, false); err != nil { // the address is the next machine's
			return err
		}
	}
	if err := p.cgroups.Remove(p.cgroup(id), endPatience); err != nil {
		return err
	}
	return ReleaseDisk(p.config.State, id)
}

// detach removes a machine's link, which went with its VPC if that is gone.
func detach(dir statedir.Dir, record machine.Record) error {
	network, err := vpc.Open(dir.VPCs(), record.VPC)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return network.Detach(record.PrivateIP)
}

// endProcess ends process 1 of a machine. The kernel then ends all other processes in the namespace, and process 1 is
// gone only after them.
func endProcess(ctx context.Context, pid int, grace time.Duration) error {
	handle, err := process.Hold(pid)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	return endHeld(ctx, handle, grace)
}

func endHeld(ctx context.Context, handle *process.Handle, grace time.Duration) error {
	if grace > 0 {
		if ended, err := ask(ctx, handle, grace); ended || err != nil {
			return err
		}
	}
	ids, unknown := userns.Of(handle.PID) // while it is there
	if err := handle.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, killPatience)
	err := handle.Wait(waiting)
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, err := ids.EndFUSE(); err != nil || unknown != nil { // a process waits for one, perhaps, and cannot be killed
		return errors.Join(unknown, err)
	}
	waiting, cancel = context.WithTimeout(ctx, endPatience)
	defer cancel()
	return handle.Wait(waiting)
}

// ask asks a machine to shut down, and reports whether it has. It asks again and again: the first process of a
// namespace does not hear a signal that it does not handle yet, as it has only just been started (pid_namespaces(7)).
func ask(ctx context.Context, handle *process.Handle, grace time.Duration) (ended bool, err error) {
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); {
		if err := handle.Signal(syscall.SIGTERM); err != nil {
			return false, err
		}
		waiting, cancel := context.WithTimeout(ctx, min(250*time.Millisecond, time.Until(deadline)))
		err := handle.Wait(waiting)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err == nil, ctx.Err()
		}
	}
	return false, nil
}

// cgroup is the name of a machine's control group. Two services with state directories of their own do not meet.
func (p *Provider) cgroup(id string) string { return cgroupName(p.config.State, id) }

func cgroupName(dir statedir.Dir, id string) string {
	return machinesGroup + "/" + statedir.Hash(dir) + "/" + id
}

// providerName marks the records of this provider.
const providerName = "local"

func (p *Provider) find(id string) (pid int, running bool, err error) {
	found, err := p.running.of(id)
	pid, running = found[id]
	return pid, running, err
}
