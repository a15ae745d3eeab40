// SPDX-License-Identifier: Apache-2.0

package sparsedisk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
)

const (
	mkfs = "mkfs.ext4"
	fsck = "e2fsck"
	// mkfsPatience and fsckPatience are how long these programs may take.
	mkfsPatience = time.Minute
	fsckPatience = 10 * time.Minute
	// options of the mount. The room of deleted files is given back to the host (discard). The tables of inodes are
	// zeros in a new sparse file, and nobody has to write them (noinit_itable). A damaged file system becomes
	// read-only, so that nothing makes it worse (errors).
	options = "discard,noinit_itable,errors=remount-ro"
	flags   = unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC
)

// ErrUnsupported says that this host cannot have file systems in files, and what it lacks.
var ErrUnsupported = errors.New("this host cannot have file systems in files")

// Make makes a file with an empty file system, of a size in bytes. The file takes some MiB, and with what is written to
// the file system at most its size. An existing file stays as it is. The error is [ErrUnsupported] if the host lacks
// the program.
func Make(ctx context.Context, path string, size int64) error {
	if _, err := os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	program, err := find(mkfs)
	if err != nil {
		return err
	}
	unfinished := path + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(size); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mkfsPatience)
	defer cancel()
	// Nothing is kept for root, who is the one that fills it; a journal of 64 MiB is what the file takes at most for
	// it.
	out, err := exec.CommandContext(ctx, program, "-q", "-F", "-m", "0", "-b", "4096", "-I", "256", "-J", "size=64",
		"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", unfinished).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w: %s", mkfs, err, lastLine(out)), os.Remove(unfinished))
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// find finds a program of e2fsprogs, which is often where ordinary users do not look.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: it has no %s: install e2fsprogs", ErrUnsupported, name)
}

// Mount mounts the file system of a file at a directory, which is made, where devices, programs and set-user-ID bits in
// it have no effect on the host. The name is what its loop device is called. If something is mounted at the directory,
// it stays as it is. The error is [ErrUnsupported] if the host has no loop devices or no ext4, or gives them to nobody.
func Mount(ctx context.Context, path, at, name string) error {
	mounted, err := Mounted(at)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // G301: it is covered
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	device, held, err := loopdevice.Hold(file, name)
	if err != nil {
		return unsupported(err)
	}
	defer func() { _ = held.Close() }()
	wrong, err := faulty(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if !wrong {
		err = unix.Mount(device.Node(), at, "ext4", flags, options)
		if err == nil || errors.Is(unsupported(err), ErrUnsupported) {
			return unsupported(err)
		}
	}
	if mended := mend(ctx, device.Node()); mended != nil {
		return fmt.Errorf("the file system in %s cannot be mounted: %w", path, errors.Join(err, mended))
	}
	if err := unix.Mount(device.Node(), at, "ext4", flags, options); err != nil {
		return fmt.Errorf("the file system in %s cannot be mounted: %w", path, os.NewSyscallError("mount", err))
	}
	return nil
}

// unsupported says of an error what the host lacks, if that is why.
func unsupported(err error) error {
	switch {
	case errors.Is(err, loopdevice.ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: its kernel has no ext4: load the module ext4", ErrUnsupported)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: it lets nobody mount devices (%w), as a container without CAP_SYS_ADMIN and loop devices does", ErrUnsupported, err)
	}
	return err
}

// The superblock of an ext4 (the kernel's Documentation/filesystems/ext4/super.rst).
const (
	superblock = 1024
	stateAt    = superblock + 0x3A
	stateError = 2 // the kernel has found a mistake
)

// faulty reports whether the kernel has found a mistake in a file system.
func faulty(file *os.File) (bool, error) {
	var state [2]byte
	if _, err := file.ReadAt(state[:], stateAt); err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint16(state[:])&stateError != 0, nil
}

// mend checks the file system on a device, which is not mounted, and mends what can be mended without asking anybody.
func mend(ctx context.Context, device string) error {
	program, err := find(fsck)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fsckPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-p", "-f", device).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode()&^3 == 0 { // it has mended something (e2fsck(8))
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s -p: %w: %s", fsck, err, lastLine(out))
	}
	return nil
}

// lastLine is the last line that a program has printed.
func lastLine(out []byte) string {
	lines := slices.Collect(strings.Lines(strings.TrimSpace(string(out))))
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// Mounted reports whether something is mounted at a path.
func Mounted(at string) (bool, error) {
	var is, above unix.Stat_t
	err := unix.Lstat(at, &is)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = unix.Lstat(filepath.Dir(at), &above)
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", at, err)
	}
	return is.Dev != above.Dev, nil
}

// Unmount removes all mounts at a path, also if a program still uses them. It is not an error if nothing is mounted
// there, or if the path does not exist.
func Unmount(at string) error {
	for {
		err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(at, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch {
		case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return &fs.PathError{Op: "unmount", Path: at, Err: err}
		}
	}
}

// Written is how much room of the host's a file takes, in bytes.
func Written(path string) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	const blockSize = 512 // the unit of st_blocks (stat(2))
	return stat.Blocks * blockSize, nil
}
