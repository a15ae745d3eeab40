// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// bootOrder is what a machine's first process is told before it becomes the machine. It comes over a pipe.
type bootOrder struct {
	Record     machine.Record `json:"record"`
	NameServer netip.Addr     `json:"nameServer"`
	Cgroups    host.Cgroups   `json:"cgroups"`
	// Services is where STS and IAM answer in the VPC.
	Services netip.Addr `json:"services"`
	// Authority of what the account serves, STS and IAM among it, as PEM.
	Authority string `json:"authority"`
	// Registry is the name of the account's image registry in the VPC.
	Registry string `json:"registry,omitempty"`
	// Mirrored are the public registries whose images are pulled through it.
	Mirrored []string `json:"mirrored,omitempty"`
	// Shape is that of its instance type.
	Shape shape `json:"shape,omitzero"`
	// PIDs is how many processes it may have at a time, each thread counted.
	PIDs int64 `json:"pids,omitempty"`
}

// The descriptors that the first process inherits.
const (
	orderFD  = 3
	reportFD = 4
)

// rootDir is where a machine's disk is mounted, below its directory, or the disk itself if it has no bound.
const rootDir = "root"

// searchPath is where programs are found on a machine: first those that take the place of the host's.
const searchPath = instead + ":/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// bootPatience is how long a machine may take from its order to running its own program.
const bootPatience = 30 * time.Second

// boot starts the machine of a record, in some security groups, and returns when it runs its own program in its own root.
func (p *Provider) boot(ctx context.Context, record machine.Record, groups []string) (err error) {
	network, err := vpc.Open(p.config.State.VPCs(), record.VPC)
	if err != nil {
		return err
	}
	if err := network.Ensure(); err != nil {
		return err
	}
	if err := p.cgroups.Remove(p.cgroup(record.ID), endPatience); err != nil { // of an earlier boot
		return err
	}
	if err := p.cgroups.Create(p.cgroup(record.ID)); err != nil {
		return err
	}
	if err := p.boundTogether(); err != nil {
		return err
	}
	limits, looks, err := limit(p, record)
	if err != nil {
		return err
	}
	if record.IDs.Own() {
		if err := limitDevices(p.cgroups, p.cgroup(record.ID), p.config.Log); err != nil {
			return err
		}
		if err := p.cgroups.Give(p.cgroup(record.ID), record.IDs.Host(0)); err != nil {
			return err
		}
	}
	if err := beginLending(p.store.Path(record.ID), record.IDs); err != nil {
		return err
	}
	root := filepath.Join(p.store.Path(record.ID), rootDir)
	log, err := openLog(root)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	bounded, err := hasDisk(p.config.State, record.ID)
	if err != nil {
		return err
	}
	started, err := p.start(record, shared{disk: root, bounded: bounded, programs: p.config.BinDir, images: p.images(ctx, record)}, log)
	if err != nil {
		return err
	}
	defer started.close()
	defer func() {
		if err != nil {
			started.kill()
		}
	}()
	if err := p.cgroups.Enter(p.cgroup(record.ID), started.pid); err != nil {
		return err
	}
	// It has this process's score, which is spared (supervise). By an ordinary one the machine cannot have it back: the kernel remembers who set it.
	if err := host.OOMScore(started.pid, 0); err != nil && !errors.Is(err, fs.ErrPermission) { // this process's is above, then
		return err
	}
	namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(started.pid), "ns/net"))
	if err != nil {
		return fmt.Errorf("opening its network namespace: %w", err)
	}
	defer func() { _ = namespace.Close() }()
	if err := network.Attach(namespace, vpc.Interface{Machine: record.ID, Address: record.PrivateIP, PodRange: record.PodRange, SecurityGroups: groups}); err != nil {
		return err
	}
	account, err := os.ReadFile(authority.NewAccountStore(p.config.State.PKI()).AuthorityPath(authority.Account)) //nolint:gosec // G703: the state directory is the caller's
	if err != nil {
		return fmt.Errorf("reading the account's authority for the machine: %w", err)
	}
	return started.command(ctx, bootOrder{
		Record: record, NameServer: vpc.Resolver(network.CIDR()), Cgroups: p.cgroups,
		Services: vpc.Services(network.CIDR()), Authority: string(account), Registry: p.config.Region.RegistryName(component.DefaultAccount), Mirrored: mirrored(p.config.State, p.config.Log),
		Shape: looks, PIDs: limits.PIDs,
	})
}

// openLog opens the log of the machine's first process on the machine's disk, wherever its links point.
func openLog(root string) (*os.File, error) {
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // G301: the machine's own root; its parent is private
		return nil, fmt.Errorf("making the machine's disk: %w", err)
	}
	disk, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening the machine's disk: %w", err)
	}
	defer func() { _ = disk.Close() }()
	if err := disk.MkdirAll("var/log", 0o755); err != nil {
		return nil, fmt.Errorf("making var/log on the machine's disk: %w", err)
	}
	log, err := disk.OpenFile("var/log/node.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the machine's log: %w", err)
	}
	return log, nil
}

// first is the first process of a machine, while its launch holds both pipes.
type first struct {
	pid           int
	order, report *os.File
	ended         <-chan struct{}
	process       *os.Process
}

// start starts the machine's first process in namespaces of its own, before a root that has been put together for it. It waits for its order, and
// ends without one.
func (p *Provider) start(record machine.Record, of shared, log *os.File) (*first, error) {
	orderRead, orderWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making pipe for the boot order: %w", err)
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making pipe for the boot report: %w", err), orderRead.Close(), orderWrite.Close())
	}
	cmd := exec.Command(filepath.Join(stagedRoot, ownPrograms, "muster"), "node", "boot") //nolint:noctx // the machine must outlive every context
	cmd.Dir = "/"
	cmd.Env = append(supervise.Marks(p.config.State, ProcessName(record.ID), ""), "PATH="+searchPath, "HOME=/root")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{orderRead, reportWrite} // descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = userns.Start(cmd, record.IDs, unix.CLONE_NEWNET|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC, func() error { return prepare(of, record.IDs) })
	_ = orderRead.Close()
	_ = reportWrite.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting its first process: %w", err), orderWrite.Close(), reportRead.Close())
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its end was asked for
		close(ended)
	}()
	return &first{pid: cmd.Process.Pid, process: cmd.Process, order: orderWrite, report: reportRead, ended: ended}, nil
}

// prepare does on the thread that starts the machine's first process what that is to begin with. Pods' sleeps are theirs, and not those of
// components, whose slack this process has.
func prepare(of shared, ids userns.IDs) error {
	if err := host.TimerSlack(host.DefaultTimerSlack); err != nil {
		return err
	}
	return of.stage(ids)
}

func (f *first) close() {
	_ = f.order.Close()
	_ = f.report.Close()
}

func (f *first) kill() {
	_ = f.process.Kill()
	<-f.ended
}

// command gives the order and waits for what comes of it: the report is empty if the machine boots.
func (f *first) command(ctx context.Context, order bootOrder) error {
	raw, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("encoding boot order: %w", err)
	}
	if _, err := f.order.Write(raw); err != nil {
		return fmt.Errorf("writing boot order: %w", err)
	}
	if err := f.order.Close(); err != nil {
		return fmt.Errorf("closing boot order: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = f.report.Close() })()
	report, err := io.ReadAll(io.LimitReader(f.report, 4<<10))
	if err != nil {
		return fmt.Errorf("waiting for it to boot: %w", errors.Join(context.Cause(ctx), err))
	}
	if len(report) > 0 {
		return fmt.Errorf("booting: %s", strings.TrimSpace(string(report)))
	}
	select {
	case <-f.ended:
		return errors.New("booting: the first process of the machine ended at once: see its log")
	default:
		return nil
	}
}
