// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/node/nodeshell"
)

// hostRoot is where the host's root is while a machine's is being built.
const hostRoot = "/.host"

// buildRoot turns what was staged for the machine into the root of the calling process's mount namespace, with nothing
// else of the host's in it. Where the machine has ids of its own, this runs with no rights on the host: a link on its
// disk leads to what everybody on the host may read.
func buildRoot(order bootOrder) error {
	// Nothing that is mounted or unmounted from here on is seen on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := pivot(stagedRoot); err != nil {
		return fmt.Errorf("changing to the machine's root: %w", err)
	}
	for _, step := range []struct {
		name string
		run  func(bootOrder) error
	}{
		{"directories", makeDirectories},
		{"names of programs", namePrograms},
		{"proc", mountProc},
		{"sys", mountSys},
		{"dev", mountTerminals},
		{"run", mountRun},
		{"sudo", mountRaise},
		{"etc", writeEtc},
		{"kernel settings", ownKernelSettings},
		{"shape", mountShape},
	} {
		if err := step.run(order); err != nil {
			return fmt.Errorf("building the machine's root: %s: %w", step.name, err)
		}
	}
	if err := unix.Unmount(hostRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's root: %w", err)
	}
	if err := os.Remove(hostRoot); err != nil {
		return fmt.Errorf("leaving the host's root: %w", err)
	}
	// Volumes that the kubelet mounts must be seen in containers that are there already (mount propagation).
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	return nil
}

func pivot(root string) error {
	// With what is mounted in it: that may not be taken apart where it was locked.
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := os.Mkdir("."+hostRoot, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.PivotRoot(".", "."+hostRoot); err != nil {
		return err
	}
	return os.Chdir("/")
}

func makeDirectories(bootOrder) error {
	for _, dir := range []struct {
		path string
		mode fs.FileMode
	}{
		{"/etc", 0o755},
		{"/home", 0o755},
		{"/mnt", 0o755},
		{"/proc", 0o755},
		{"/root", 0o700},
		{"/run", 0o755},
		{"/srv", 0o755},
		{"/sys", 0o755},
		{"/tmp", 0o777 | fs.ModeSticky},
		{"/var/lib", 0o755},
		{"/var/log", 0o755},
		{"/var/tmp", 0o777 | fs.ModeSticky},
	} {
		if err := os.MkdirAll(dir.path, 0o755); err != nil { //nolint:gosec // G301: the machine's own root; its parent is private
			return err
		}
		if err := os.Chmod(dir.path, dir.mode); err != nil {
			return err
		}
	}
	return errors.Join(link("/run", "/var/run"), link("/run/lock", "/var/lock"))
}

// link makes a symbolic link, in place of whatever file is there.
func link(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// namePrograms lets muster answer to /usr/bin/aws-iam-authenticator, which the kubeconfig of EKS's nodes names, and on a
// machine that people log in to systemctl, journalctl and sudo, on a
// machine with ids of its own to /usr/sbin/losetup, since the host's asks a driver that does not answer there. /usr is
// the host's, so a directory with that name alone is laid over it: whoever comes from a pod has the pod's PATH. Where
// overlays cannot be had (a host that is itself on two of them) the authenticator goes by its name below /etc/eks only,
// and the kubeconfig says so; losetup is found by the PATH of the machine's programs (instead).
func namePrograms(order bootOrder) error {
	if err := os.MkdirAll("/etc/eks", 0o755); err != nil { //nolint:gosec // G301: the machine's own root; its parent is private
		return err
	}
	names := []string{"aws-iam-authenticator"}
	if !order.Record.Key.IsZero() {
		names = append(names, nodeshell.Systemctl, nodeshell.Journalctl, nodeshell.Sudo)
	}
	if err := errors.Join(link(ownProgram, "/etc/eks/aws-iam-authenticator"), layOver("/usr/bin", namesDir, names...)); err != nil {
		return err
	}
	if !order.Record.IDs.Own() {
		return nil
	}
	return layOver("/usr/sbin", adminNamesDir, losetup.Program)
}

// layOver lays names of muster's over a directory of the host's.
func layOver(dir, names string, programs ...string) error {
	if err := os.MkdirAll(names, 0o755); err != nil { //nolint:gosec // G301: the machine's own root; its parent is private
		return err
	}
	for _, program := range programs {
		if err := link(ownProgram, filepath.Join(names, program)); err != nil {
			return err
		}
	}
	_ = unix.Mount("overlay", dir, "overlay", unix.MS_RDONLY|unix.MS_NODEV, "lowerdir="+names+":"+dir)
	return nil
}

const (
	// ownProgram is muster on a machine.
	ownProgram = "/opt/muster/bin/muster"
	// namesDir and adminNamesDir hold the names of muster's that are laid over the host's.
	namesDir      = "/var/lib/muster/names"
	adminNamesDir = "/var/lib/muster/admin-names"
	// instead has programs of muster's that take the place of the host's on a machine with ids of its own.
	instead = "/run/muster/bin"
)

// mountRun makes what does not survive a reboot.
func mountRun(order bootOrder) error {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	if err := os.Mkdir("/run/lock", 0o755); err != nil { //nolint:gosec // G301: as on every Linux system
		return err
	}
	if err := os.Mkdir("/run/muster", 0o700); err != nil {
		return err
	}
	if order.Record.IDs.Own() { // losetup(8) of the host asks a driver that does not answer there
		if err := errors.Join(os.Mkdir(instead, 0o700), os.Symlink(ownProgram, instead+"/"+losetup.Program)); err != nil {
			return err
		}
	}
	// A pod in a user namespace may mount proc only where one is seen without anything mounted over it (the kernel's
	// fs/namespace.c, mnt_already_visible). As LXC does, such a proc is mounted for that at a path that nothing else
	// uses.
	if err := os.Mkdir("/run/muster/proc", 0o700); err != nil {
		return err
	}
	return unix.Mount("proc", "/run/muster/proc", "proc", kernelFlags, "")
}
