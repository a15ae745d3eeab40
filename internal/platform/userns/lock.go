// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// lockAt is where a mount is put for a moment, in a namespace that nobody else sees.
const lockAt = "/tmp"

// Lock makes another mount of one that is mounted nowhere yet. Where the ids are, its flags cannot be taken away,
// nosuid and nodev among them: of a mount that has not gone from one user namespace to another (mount_namespaces(7)),
// root there could. It needs root.
func (i IDs) Lock(mount *os.File) (*os.File, error) {
	cmd := exec.Command("/bin/cat") //nolint:noctx // it ends below
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Env = []string{}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("locking the flags of a mount: %w", err)
	}
	cmd.Stdout = io.Discard
	if err := Start(cmd, i, 0, func() error {
		return unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, lockAt, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}); err != nil {
		_ = input.Close()
		return nil, fmt.Errorf("locking the flags of a mount: %w", err)
	}
	done := make(chan error, 1)
	var locked *os.File
	go host.OnThread(func() { // the thread ends with what was done to it
		var err error
		locked, err = copyFrom(cmd.Process.Pid)
		done <- err
	})
	err = <-done
	_ = input.Close()
	_ = cmd.Wait() // how it ends says nothing
	if err != nil {
		return nil, fmt.Errorf("locking the flags of a mount: %w", err)
	}
	return locked, nil
}

// copyFrom takes a mount out of the mount namespace of a process, into which the calling thread goes.
func copyFrom(pid int) (*os.File, error) {
	namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/mnt"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return nil, fmt.Errorf("leaving the host's directories: %w", err)
	}
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("entering its mount namespace: %w", err)
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, lockAt, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("taking hold of the mount: %w", err)
	}
	return os.NewFile(uintptr(tree), "mount"), nil
}
