// SPDX-License-Identifier: Apache-2.0

// Package host makes machines that muster did not: hosts with systemd as their first process, in a cluster's VPC and
// nowhere else, for stories of operators who bring their own. Each has net, mount, PID, UTS, IPC and control group
// namespaces of its own; this machine's /usr is there, read-only, and /etc, /var, /run, units and journal are the
// host's own, in memory.
//
// It needs root and the package systemd. Nothing is left when a host is closed. A host whose test was killed ends with
// the test, and its control groups are removed when the next host starts.
package host

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/nsenter"
	"muster.dev/muster/internal/platform/release"
)

//go:embed boot.sh
var bootScript string

// BinDir is where a host finds muster's programs.
const BinDir = "/opt/muster/bin"

const (
	systemd    = "/lib/systemd/systemd"
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// bootPatience is how long a host may take until all its units have started, endPatience until it is gone.
	bootPatience = time.Minute
	endPatience  = 20 * time.Second
)

// Config says what a host is.
type Config struct {
	// Name is its host name.
	Name string
	// Of is what the host belongs to, a name of a file: two things that run at the same time may have hosts of one
	// name.
	Of string
	// Address is one in the VPC that no machine has.
	Address netip.Addr
	Network *vpc.Network
	// SecurityGroups that it is in. If it is empty, the host is in those of the first cluster of the VPC, if the VPC
	// has one.
	SecurityGroups []string
	// Bin is the directory of programs that the host sees at BinDir.
	Bin string
	// Install are programs of that directory that its owner has put into /usr/local/bin, those of Kubernetes of the
	// default release.
	Install []string
}

// groups are the security groups that the host is in.
func (c Config) groups() ([]string, error) {
	endpoints, err := c.Network.Endpoints()
	if err != nil || len(c.SecurityGroups) > 0 || len(endpoints) == 0 {
		return c.SecurityGroups, err
	}
	return endpoints[0].SecurityGroups, nil
}

// Host is one that runs.
type Host struct {
	Name    string
	Address netip.Addr

	config  Config
	cgroups host.Cgroups
	group   string
	mark    string // of its first process, in the environment
	pid     int
	ended   chan struct{}
	output  *bytes.Buffer // of the boot; read it when it has ended
}

// Start boots a host and returns when all its units have started.
func Start(ctx context.Context, config Config) (*Host, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("hosts are made of namespaces, which needs root")
	}
	if _, err := os.Stat(systemd); err != nil {
		return nil, fmt.Errorf("hosts run systemd: install the package systemd (%w)", err)
	}
	groups, err := host.ReadCgroups()
	if err != nil {
		return nil, err
	}
	return startIn(ctx, config, groups)
}

// startIn starts a host in some of this machine's control groups.
func startIn(ctx context.Context, config Config, groups host.Cgroups) (*Host, error) {
	mounts, err := cgroupMounts(groups)
	if err != nil {
		return nil, err
	}
	if err := sweep(ctx, groups); err != nil {
		return nil, fmt.Errorf("removing what killed tests have left: %w", err)
	}
	me, err := self()
	if err != nil {
		return nil, err
	}
	owner := me + "." + config.Of
	h := &Host{
		Name: config.Name, Address: config.Address, config: config, cgroups: groups,
		group: groupsOf + "/" + owner + "/" + config.Name, mark: Environment + "=" + owner + "/" + config.Name, ended: make(chan struct{}), output: new(bytes.Buffer),
	}
	if err := h.boot(ctx, mounts); err != nil {
		return nil, errors.Join(fmt.Errorf("booting host %s: %w", config.Name, err), h.Close()) //nolint:contextcheck // Close must be done in any case
	}
	return h, nil
}

// cgroupMounts says what the host mounts: its part of all that this machine has. Of a hybrid machine version 1 is
// taken, which has the controllers.
func cgroupMounts(groups host.Cgroups) ([]string, error) {
	if groups.Version() == 2 {
		return []string{"cgroup2"}, nil
	}
	var mounts []string
	named := false
	for _, h := range groups.Hierarchies {
		if !h.Unified {
			mounts = append(mounts, "cgroup:"+strings.Join(h.Options, ","))
			named = named || h.Options[0] == "name=systemd"
		}
	}
	if !named {
		return nil, errors.New("this machine has control groups of version 1 without a hierarchy name=systemd, which systemd needs: mount one, or boot with version 2")
	}
	return mounts, nil
}

func (h *Host) boot(ctx context.Context, mounts []string) error {
	if err := h.cgroups.Create(h.group); err != nil {
		return err
	}
	orders, err := h.start(append([]string{"-c", bootScript, "boot", h.Name, h.Address.String(), h.config.Bin, h.mark, "wait"}, mounts...))
	if err != nil {
		return err
	}
	defer func() { _ = orders.Close() }()
	if err := h.cgroups.Enter(h.group, h.pid); err != nil {
		return err
	}
	namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(h.pid), "ns/net"))
	if err != nil {
		return fmt.Errorf("opening its network namespace: %w", err)
	}
	defer func() { _ = namespace.Close() }()
	groups, err := h.config.groups()
	if err != nil {
		return err
	}
	if err := h.config.Network.Attach(namespace, vpc.Interface{Machine: h.Name, Address: h.Address, SecurityGroups: groups}); err != nil {
		return err
	}
	if _, err := orders.WriteString("go\n"); err != nil {
		return fmt.Errorf("telling it to go on: %w", err)
	}
	if err := h.isRunning(ctx); err != nil {
		return err
	}
	for _, name := range h.config.Install {
		if err := os.Symlink(release.Default().Program(BinDir, name), h.path("/usr/local/bin/"+name)); err != nil {
			return fmt.Errorf("installing %s: %w", name, err)
		}
	}
	return nil
}

// start starts the first process, which waits for a line on the file that is returned. It dies with this process.
func (h *Host) start(args []string) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making pipe: %w", err)
	}
	cmd := exec.Command("/bin/sh", args...) //nolint:noctx // Close ends it
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + searchPath, "BOOT=" + bootScript, h.mark}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, h.output, h.output
	// systemd keeps no standard output of its boot's. Processes that keep it must not hold Wait up.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started a process for the end of its parent
		// (PR_SET_PDEATHSIG(2const)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // whoever ended it knows why
		}
		close(h.ended)
	}()
	err = <-started
	_ = read.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting its first process: %w", err), write.Close())
	}
	h.pid = cmd.Process.Pid
	return write, nil
}

// isRunning waits until systemd has nothing more to start. A unit that failed is an error.
func (h *Host) isRunning(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	for {
		state, err := h.Run(ctx, "systemctl", "is-system-running", "--wait")
		state = strings.TrimSpace(state)
		switch {
		case err == nil && state == "running":
			return nil
		case state == "degraded":
			failed, _ := h.Run(ctx, "systemctl", "--failed", "--no-pager")
			return fmt.Errorf("units have failed:\n%s", failed)
		}
		select {
		case <-h.ended:
			return fmt.Errorf("it ended: %s", bytes.TrimSpace(h.output.Bytes()))
		case <-ctx.Done():
			return fmt.Errorf("systemd says %q (%w): %w", state, err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// PID is the host's first process.
func (h *Host) PID() int { return h.pid }

// Run runs a program on the host as root and returns all that it printed. A program that does not exit with 0 is an
// error.
func (h *Host) Run(ctx context.Context, args ...string) (string, error) {
	return h.RunWith(ctx, "", args...)
}

// RunWith runs a program that reads a text.
func (h *Host) RunWith(ctx context.Context, input string, args ...string) (string, error) {
	in, err := memory(input)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	out, err := memory("")
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	code, err := nsenter.Run(ctx, nsenter.Config{
		PID: h.pid, Args: args, Env: []string{"HOME=/root", "PATH=" + searchPath + ":" + BinDir, "TERM=dumb", h.mark}, Dir: "/root",
		In: in, Out: out, Err: out,
	})
	if err != nil {
		return "", fmt.Errorf("running %s on host %s: %w", args[0], h.Name, err)
	}
	printed, err := os.ReadFile(filepath.Join("/proc/self/fd", strconv.Itoa(int(out.Fd()))))
	if err != nil {
		return "", fmt.Errorf("reading what %s printed: %w", args[0], err)
	}
	if code != 0 {
		return string(printed), fmt.Errorf("%s on host %s: exit status %d: %s", strings.Join(args, " "), h.Name, code, bytes.TrimSpace(printed))
	}
	return string(printed), nil
}

// memory is a file that is nowhere.
func memory(content string) (*os.File, error) {
	descriptor, err := unix.MemfdCreate("host", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "memory")
	if _, err := file.WriteString(content); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (h *Host) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(h.pid), "root", name)
}

// Write writes a file on the host, and the directories that it is in.
func (h *Host) Write(name, content string, mode fs.FileMode) error {
	path := h.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: as on every Linux system
		return fmt.Errorf("writing %s on host %s: %w", name, h.Name, err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		return fmt.Errorf("writing %s on host %s: %w", name, h.Name, err)
	}
	return nil
}

// Close ends the host in the hardest way and removes everything of it.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience) // whatever has ended, this must be done
	defer cancel()
	var failed error
	if h.pid != 0 {
		failed = end(ctx, h.pid)
		<-h.ended
	}
	return errors.Join(failed, h.config.Network.Detach(h.Address), h.cgroups.Remove(h.group, endPatience))
}
