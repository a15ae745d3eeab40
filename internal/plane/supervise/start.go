// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// searchPath is where a component finds the programs it calls. It does not come from the caller's environment: a
// component must not depend on who started it.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// oomScore is how soon components are ended when the memory of the host runs out: after all pods of all machines but
// guaranteed ones, which have -997 (pkg/kubelet/qos/policy.go), and not never, since what grows without end may be a
// component.
const oomScore = -998

// timerSlack is how late a component may be woken from a sleep. The monitor of a Go program sleeps for 20 µs at a time while
// the program is busy (runtime.sysmon), in each of more than ten: with the kernel's own slack the monitors take up to a
// quarter of a component's processor time (docs/benchmarks.md).
const timerSlack = 500 * time.Microsecond

// spare has a component ended later than others. Without CAP_SYS_RESOURCE, as an ordinary user has it, nobody may: then
// it is ended by its memory.
func spare(pid int) { _ = host.OOMScore(pid, oomScore) }

// LogOf is where a spec's standard output and error go.
func LogOf(dir statedir.Dir, spec component.Spec) string {
	if spec.Cluster != "" {
		return dir.Cluster(spec.Cluster).Log(spec.Name)
	}
	return dir.Log(spec.Name)
}

// folderOf is the folder of a spec's files, which its process begins in.
func folderOf(dir statedir.Dir, spec component.Spec) string {
	if spec.Cluster != "" {
		return dir.Cluster(spec.Cluster).Component(spec.Name)
	}
	return dir.Component(spec.Name)
}

// start writes a spec's files and runs it as a process of its own session, so that neither the end of its supervisor
// nor of a terminal ends it. It keeps for the next supervisor how often it was started again. as is its user, nil for
// this process's; run has the command started.
func start(dir statedir.Dir, spec component.Spec, restarts int, as *own, run func(*exec.Cmd, starter) error) (*exec.Cmd, error) {
	log := LogOf(dir, spec)
	for _, path := range append([]string{folderOf(dir, spec), filepath.Dir(log)}, spec.Directories...) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("making directory for %s: %w", spec.Name, err)
		}
	}
	for _, file := range spec.Files {
		if err := atomicfile.Write(file.Path, []byte(file.Content), file.Mode); err != nil {
			return nil, fmt.Errorf("writing file of %s: %w", spec.Name, err)
		}
	}
	begin := starter((*exec.Cmd).Start)
	if as != nil {
		if err := give(dir, spec, as.id); err != nil {
			return nil, err
		}
		begin = as.start
	}
	output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", spec.Name, err)
	}
	defer func() { _ = output.Close() }()

	cmd := exec.Command(spec.Path, spec.Arguments()...) //nolint:noctx // it must outlive every context
	cmd.Dir = folderOf(dir, spec)
	cmd.Env = append([]string{"PATH=" + filepath.Dir(spec.Path) + ":" + searchPath}, spec.Env...)
	cmd.Env = append(cmd.Env, Marks(dir, spec.Process(), spec.Hash())...)
	cmd.Env = append(cmd.Env, envRestarts+"="+strconv.Itoa(restarts))
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := run(cmd, relaxed(begin)); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	spare(cmd.Process.Pid)
	return cmd, nil
}

// relaxed has a program inherit the slack of its components' sleeps from the thread that starts it.
func relaxed(begin starter) starter {
	return func(cmd *exec.Cmd) error {
		if err := host.TimerSlack(timerSlack); err != nil {
			return err
		}
		return begin(cmd)
	}
}

// onThread starts a command on a thread that ends afterwards.
func onThread(cmd *exec.Cmd, begin starter) error {
	done := make(chan error, 1)
	go host.OnThread(func() { done <- begin(cmd) })
	return <-done
}

// Start runs a spec once, in the background, and leaves it to itself.
func Start(dir statedir.Dir, spec component.Spec) error {
	cmd, err := start(dir, spec, 0, nil, onThread)
	if err != nil {
		return err
	}
	return cmd.Process.Release()
}
