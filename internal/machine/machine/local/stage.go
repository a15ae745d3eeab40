// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/userns"
)

const (
	// stageDir is laid over, for one thread and what it starts, to put a machine's root together where every user may
	// get to: directories above a state directory are often private.
	stageDir   = "/tmp"
	stagedRoot = stageDir + "/root"
	// ownPrograms is where a machine has muster's programs, below its root.
	ownPrograms = "opt/muster/bin"
)

// shared is what a machine has of the host: its disk, which it writes, and directories that it reads.
type shared struct {
	disk, programs string
	bounded        bool   // the disk is a file system of its own, on which the host lets nothing be run
	images         string // the images that were loaded for its cluster; empty for a machine of no cluster
}

// stage puts a machine's root together, in a mount namespace that nobody else is in and that the machine's own will be
// a copy of. A machine with ids of its own can neither remove nor write to the mounts that stage makes there. The
// machine does not run yet: nobody changes its disk meanwhile.
func (s shared) stage(ids userns.IDs) error {
	disk, err := os.OpenRoot(s.disk)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	lent, err := s.lend(disk, ids)
	defer func() {
		for _, one := range lent {
			_ = one.dir.Close()
		}
	}()
	if err != nil {
		return err
	}
	if err := makeDir(disk, "dev"); err != nil {
		return err
	}
	hidden := uint64(0)
	if s.bounded {
		hidden = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	root, err := shownBy(ids, s.disk, hidden)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// From here on nothing of the host's is found by a path below this one.
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("making a place for the machine's root: %w", err)
	}
	if err := os.Mkdir(stagedRoot, 0o755); err != nil { //nolint:gosec // G301: the machine gets to it as any user
		return err
	}
	if err := mountShown(ids, root, stagedRoot); err != nil {
		return fmt.Errorf("mounting the machine's disk: %w", err)
	}
	if s.bounded && !ids.Own() { // whose mount has all flags of the host's
		if err := unix.Mount("", stagedRoot, "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("letting the machine run what is on its disk: %w", err)
		}
	}
	for _, one := range lent {
		if err := one.mount(); err != nil {
			return err
		}
	}
	if err := stageDevices(stagedRoot+"/dev", ids); err != nil {
		return fmt.Errorf("making devices: %w", err)
	}
	return nil
}

// shownBy opens a directory of the host: for a machine that has ids of its own, as a mount that shows the owners of
// files by them and is without some attributes of the host's.
func shownBy(ids userns.IDs, dir string, without uint64) (*os.File, error) {
	if !ids.Own() {
		return os.OpenFile(dir, os.O_RDONLY|unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	namespace, err := ids.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("taking hold of %s: %w", dir, err)
	}
	// A disk may have device files of before its machine had ids of its own.
	shown := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NODEV, Attr_clr: without, Userns_fd: uint64(namespace.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &shown); err != nil {
		return nil, errors.Join(fmt.Errorf("showing %s by ids of the machine's own, which its file system has to be able to: %w", dir, err), unix.Close(tree))
	}
	return os.NewFile(uintptr(tree), dir), nil
}

// mountShown mounts what shownBy opened.
func mountShown(ids userns.IDs, dir *os.File, target string) error {
	if ids.Own() {
		return unix.MoveMount(int(dir.Fd()), "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	return unix.Mount(opened(dir), target, "", unix.MS_BIND, "")
}

// opened is a path that leads to an open file, whatever was mounted since.
func opened(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// lent is a directory of the host that a machine reads at a path below its root.
type lent struct {
	dir *os.File
	at  string
	ids userns.IDs // that its files are shown by; the zero value if anybody may read them
}

// lend opens what the machine reads, and makes on its disk the places for it.
func (s shared) lend(disk *os.Root, ids userns.IDs) (all []lent, err error) {
	add := func(source, at string) error {
		dir, err := os.OpenFile(source, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		all = append(all, lent{dir: dir, at: at})
		return makeDir(disk, at)
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		info, err := os.Lstat("/" + name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return all, err
		case info.Mode()&fs.ModeSymlink != 0: // since /usr has been merged
			err = copyLink(disk, name)
		default:
			err = add("/"+name, name)
		}
		if err != nil {
			return all, err
		}
	}
	if err := errors.Join(add("/usr", "usr"), add(s.programs, ownPrograms)); err != nil {
		return all, err
	}
	if s.images != "" {
		dir, err := shownBy(ids, s.images, 0) // only its owner may read them
		if err != nil {
			return all, err
		}
		all = append(all, lent{dir: dir, at: strings.TrimPrefix(loadedimages.Dir, "/"), ids: ids})
		if err := makeDir(disk, all[len(all)-1].at); err != nil {
			return all, err
		}
	}
	for _, dir := range []string{"etc/alternatives", "etc/ld.so.conf.d"} {
		if info, err := os.Stat("/" + dir); err != nil || !info.IsDir() {
			continue
		}
		if err := add("/"+dir, dir); err != nil {
			return all, err
		}
	}
	return all, nil
}

// copyLink makes a link of the host's root directory on a disk, in place of whatever is there.
func copyLink(disk *os.Root, name string) error {
	target, err := os.Readlink("/" + name)
	if err != nil {
		return err
	}
	if old, err := disk.Readlink(name); err == nil && old == target {
		return nil
	}
	if err := disk.RemoveAll(name); err != nil {
		return err
	}
	return disk.Symlink(target, name)
}

// makeDir makes a directory on a disk: one that is none, or a link to one, is replaced.
func makeDir(disk *os.Root, name string) error {
	if parent := path.Dir(name); parent != "." {
		if err := makeDir(disk, parent); err != nil {
			return err
		}
	}
	if info, err := disk.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := disk.RemoveAll(name); err != nil {
		return err
	}
	return disk.Mkdir(name, 0o755)
}

// mount shows the directory and what is mounted in it in the staged root, where nothing can be written.
func (l lent) mount() error {
	target := filepath.Join(stagedRoot, l.at)
	var err error
	if l.ids.Own() {
		err = mountShown(l.ids, l.dir, target)
	} else {
		err = unix.Mount(opened(l.dir), target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("mounting /%s of the machine: %w", l.at, err)
	}
	if err := readOnly(target); err != nil {
		return fmt.Errorf("making /%s of the machine read-only: %w", l.at, err)
	}
	return nil
}

// readOnly makes a mount and those below it read-only. Kernels before 5.12 cannot do both at once; there only the upper
// one is, as with mount -o remount,ro.
func readOnly(target string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil {
		return err
	}
	keep := uintptr(stat.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) //nolint:gosec // G115: a set of flags
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, "")
}
