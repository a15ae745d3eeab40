// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/host"
	"muster.dev/muster/internal/machine"
	"muster.dev/muster/internal/state"
)

// Command is something to run on a machine.
type Command struct {
	State   state.Dir
	Machine string
	Args    []string
	// Env is added to the machine's own environment.
	Env []string
	// Stdin, Stdout and Stderr are the command's own; a terminal stays one.
	Stdin, Stdout, Stderr *os.File
}

// Exec runs a command on a machine: in all its namespaces, its root and its control groups. It returns the command's exit
// code, 128 and the signal's number if a signal ended it. The end of the caller ends the command too; the context does not,
// since an interrupt from the terminal reaches the command by itself.
func Exec(_ context.Context, command Command) (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("entering a machine needs root: run muster as root (sudo)")
	}
	machines, err := findAll(command.State)
	if err != nil {
		return 0, err
	}
	pid, ok := machines[command.Machine]
	if !ok {
		return 0, fmt.Errorf("%w that runs: %s", machine.ErrNotFound, command.Machine)
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return 0, err
	}
	result := make(chan error, 1)
	code := 0
	go func() {
		// This thread is lost to the machine's namespaces; it ends with the goroutine.
		runtime.LockOSThread()
		var err error
		code, err = execInside(pid, command, cgroups)
		result <- err
	}()
	err = <-result
	return code, err
}

func execInside(pid int, command Command, cgroups host.Cgroups) (int, error) {
	machinePID, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, fmt.Errorf("taking hold of machine: %w", err)
	}
	defer func() { _ = unix.Close(machinePID) }()
	// What the machine does not share with the host must be opened before.
	ready, release, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("making pipe: %w", err)
	}
	defer func() { _ = release.Close() }()
	defer func() { _ = ready.Close() }()
	group := cgroupName(command.State, command.Machine)
	enter, err := cgroups.Door(group)
	if err != nil {
		return 0, err
	}
	defer enter.Close()

	// A thread must have a root of its own before it can take another mount namespace (setns(2)).
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return 0, fmt.Errorf("leaving the host's root: %w", err)
	}
	const all = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP
	if err := unix.Setns(machinePID, all); err != nil {
		return 0, fmt.Errorf("entering machine: %w", err)
	}
	cmd := exec.Command("/opt/muster/bin/muster", append([]string{"node", "enter"}, command.Args...)...) //nolint:gosec,noctx // G204: the user's own command, on purpose
	cmd.Dir = "/root"
	cmd.Env = append([]string{"PATH=" + searchPath, "HOME=/root"}, command.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	cmd.ExtraFiles = []*os.File{ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("entering machine: %w", err)
	}
	if err := enter.Admit(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return 0, err
	}
	if _, err := release.WriteString("go"); err != nil {
		return 0, fmt.Errorf("entering machine: %w", err)
	}
	_ = release.Close()
	var exit *exec.ExitError
	switch err := cmd.Wait(); {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("waiting for command: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Enter is "muster node enter": a process on the machine that becomes the command as soon as it is in the machine's control
// groups. It returns only if that fails.
func Enter(args []string) error {
	ready := os.NewFile(orderFD, "ready")
	word := make([]byte, 2)
	if n, err := ready.Read(word); err != nil || n != len(word) {
		return errors.New("this is a step of muster exec, which muster takes by itself; nothing is done")
	}
	_ = ready.Close()
	path, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("there is no program %s on the machine", args[0])
	}
	if err := syscall.Exec(path, args, os.Environ()); err != nil { //nolint:gosec // G204: the user's own command, on purpose
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}
