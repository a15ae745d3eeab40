// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/termsafe"
)

// maxCloneDepth bounds how many directories are open at a time, two for each.
const maxCloneDepth = 200

var errCloneDeep = fmt.Errorf("directories are nested too deeply to be copied: at most %d are allowed", maxCloneDepth)

// errGone says that a name is not there any more in what is copied.
var errGone = errors.New("it is gone")

// gone tells a name that is gone from all else that can go wrong, such as a copy that somebody removes.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errGone
	}
	return err
}

// maxLinks is how much is remembered of files with several names whose other names are not copied yet, in bytes: pods
// make as many as they like.
const maxLinks = 128 << 20

var errLinks = fmt.Errorf("too many files have several names: at most %d MiB of their paths are remembered", maxLinks>>20)

// inode is one file. Its number may be another file's when it is gone, but not its birth.
type inode struct {
	device, number uint64
	born           unix.StatxTimestamp
}

// identify says which file a name of a directory is, or an open file if the name is empty.
func identify(at *os.File, name string) (inode, error) {
	var stat unix.Statx_t
	if err := unix.Statx(int(at.Fd()), name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &stat); err != nil {
		return inode{}, err
	}
	return inode{unix.Mkdev(stat.Dev_major, stat.Dev_minor), stat.Ino, stat.Btime}, nil
}

// names are those of one file.
type names struct {
	first string // where the copy is
	left  int    // how many are not copied yet
}

// cloner copies a directory that pods may be writing. Names are looked up beneath directories that are open, and links
// are never followed. Files that vanish meanwhile are left out.
type cloner struct {
	content content
	root    *os.File // of the copy, which nothing else writes to
	linked  map[inode]*names
	room    int // for more of them, in bytes
}

// directory copies what is in a directory, then whose it is. The times come last.
func (c *cloner) directory(ctx context.Context, from, to *os.File, at string, depth int) error {
	if depth > maxCloneDepth {
		return errCloneDeep
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &stat); err != nil {
		return err
	}
	for {
		names, err := from.Readdirnames(1024)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.name(ctx, from, to, path.Join(at, name), depth); err != nil && !errors.Is(err, errGone) {
				return failed(path.Join(at, name), err)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrNotExist) {
			break // the end, or a directory that has just been removed
		}
		if err != nil {
			return err
		}
	}
	return attributes(from, to, &stat)
}

// failure is what went wrong with one name. Pods make paths as long as they like, of whatever bytes, so what is said of
// it is short and one line.
type failure struct {
	at  string
	err error
}

func (f *failure) Error() string {
	at := f.at
	if long := len(at) - 200; long > 0 {
		at = "…" + at[long:]
	}
	return fmt.Sprintf("%s: %v", termsafe.Line(at), f.err)
}

func (f *failure) Unwrap() error { return f.err }

// failed says which name failed, once: directories above it add nothing, nor does its path on the host.
func failed(at string, err error) error {
	if errors.As(err, new(*failure)) {
		return err
	}
	if onHost := (*os.PathError)(nil); errors.As(err, &onHost) {
		err = onHost.Err
	}
	return &failure{at, err}
}

// name copies what a name of a directory is. A part of a copy whose name vanished is left nowhere.
func (c *cloner) name(ctx context.Context, from, to *os.File, at string, depth int) error {
	name := path.Base(at)
	var stat unix.Stat_t
	if err := unix.Fstatat(int(to.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return nil // a name that went and came again is read twice
	}
	if err := unix.Fstatat(int(from.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return gone(err)
	}
	kind, is := stat.Mode&unix.S_IFMT, inode{}
	if kind != unix.S_IFDIR && stat.Nlink > 1 {
		var err error
		if is, err = identify(from, name); err != nil {
			return gone(err)
		}
		if known, ok := c.linked[is]; ok {
			return c.link(is, known, to, name)
		}
	}
	switch kind {
	case unix.S_IFDIR:
		return c.child(ctx, from, to, at, depth)
	case unix.S_IFREG:
		var err error
		if is, err = c.file(ctx, from, to, name); err != nil {
			return err
		}
	case unix.S_IFLNK:
		if err := symlink(from, to, name, &stat); err != nil {
			return err
		}
	default: // a device, which is none where volumes are mounted, a pipe or a socket
		if err := unix.Mknodat(int(to.Fd()), name, stat.Mode, int(stat.Rdev)); err != nil { //nolint:gosec // G115: a device number
			return err
		}
		if err := owned(to, name, &stat); err != nil {
			return err
		}
		if err := unix.Fchmodat(int(to.Fd()), name, stat.Mode&0o7777, 0); err != nil {
			return err
		}
	}
	if stat.Nlink > 1 {
		return c.remember(is, &names{at, int(stat.Nlink) - 1}) //nolint:gosec // G115: file systems have fewer
	}
	return nil
}

func (n *names) size() int { return len(n.first) + 128 } // with what the map takes

// remember keeps where a file is of which there are more names.
func (c *cloner) remember(is inode, n *names) error {
	if c.room -= n.size(); c.room < 0 {
		return errLinks
	}
	c.linked[is] = n
	return nil
}

// link makes one more name of a file that is copied. The path of the first one may be longer than the kernel takes.
func (c *cloner) link(is inode, n *names, to *os.File, name string) error {
	if n.left--; n.left == 0 {
		delete(c.linked, is)
		c.room += n.size()
	}
	if len(n.first) < unix.PathMax {
		return unix.Linkat(int(c.root.Fd()), n.first, int(to.Fd()), name, 0)
	}
	above := c.root
	for part := range strings.SplitSeq(path.Dir(n.first), "/") {
		below, err := openBelow(above, part)
		if above != c.root {
			_ = above.Close()
		}
		if err != nil {
			return err
		}
		above = below
	}
	defer func() { _ = above.Close() }()
	return unix.Linkat(int(above.Fd()), path.Base(n.first), int(to.Fd()), name, 0)
}

func (c *cloner) child(ctx context.Context, from, to *os.File, at string, depth int) error {
	source, err := openBelow(from, path.Base(at))
	if err != nil {
		return gone(err)
	}
	defer func() { _ = source.Close() }()
	if err := unix.Mkdirat(int(to.Fd()), path.Base(at), 0o700); err != nil {
		return err
	}
	made, err := openBelow(to, path.Base(at))
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }()
	return c.directory(ctx, source, made, at, depth+1)
}

// file copies a file. It returns the inode of the file that it copied, since the name may lead to another file by now.
func (c *cloner) file(ctx context.Context, from, to *os.File, name string) (inode, error) {
	source, err := openRegular(from, name, unix.O_RDONLY)
	if err != nil {
		return inode{}, gone(err)
	}
	defer func() { _ = source.Close() }()
	var stat unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &stat); err != nil {
		return inode{}, err
	}
	made, err := openAt(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return inode{}, err
	}
	defer func() { _ = made.Close() }()
	if err := c.content(ctx, made, source); err != nil {
		return inode{}, err
	}
	is, err := identify(source, "")
	if err != nil {
		return inode{}, err
	}
	return is, attributes(source, made, &stat)
}

// noCopyOnWrite is a flag of files on btrfs (chattr(1), C), as databases set it. Two files share content only if both
// have it, or neither.
const noCopyOnWrite = 0x00800000

// likewise lets an empty file have the flag if the other one has it.
func likewise(made, source *os.File) error {
	flags, err := unix.IoctlGetInt(int(source.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || flags&noCopyOnWrite == 0 {
		return err
	}
	return unix.IoctlSetPointerInt(int(made.Fd()), unix.FS_IOC_SETFLAGS, noCopyOnWrite)
}

// openAt opens a file beneath a directory.
func openAt(dir *os.File, name string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o600
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openRegular opens a regular file beneath a directory. Other kinds of files are not opened: pods make device nodes,
// which are devices of the host here, and opening a device may be enough to rewind a tape or to start a watchdog.
func openRegular(dir *os.File, name string, flags int) (*os.File, error) {
	found, err := openAt(dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	var stat unix.Stat_t
	if err := unix.Fstat(int(found.Fd()), &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is not a regular file")
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", found.Fd()), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// symlink makes a symbolic link that says the same.
func symlink(from, to *os.File, name string, stat *unix.Stat_t) error {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(from.Fd()), name, target)
	if err != nil {
		return gone(err)
	}
	if err := unix.Symlinkat(string(target[:n]), int(to.Fd()), name); err != nil {
		return err
	}
	return owned(to, name, stat)
}

// owned gives a name that is neither a directory nor a file its owner and times.
func owned(to *os.File, name string, stat *unix.Stat_t) error {
	if err := unix.Fchownat(int(to.Fd()), name, int(stat.Uid), int(stat.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.UtimesNanoAt(int(to.Fd()), name, []unix.Timespec{stat.Atim, stat.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// attributes gives a copy owner, mode, extended attributes and times of what it is a copy of, in the order in which
// none takes another away.
func attributes(from, to *os.File, stat *unix.Stat_t) error {
	fd := int(to.Fd())
	if err := unix.Fchown(fd, int(stat.Uid), int(stat.Gid)); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, stat.Mode&0o7777); err != nil {
		return err
	}
	if err := extended(int(from.Fd()), fd); err != nil {
		return fmt.Errorf("extended attributes: %w", err)
	}
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{stat.Atim, stat.Mtim}, unix.AT_EMPTY_PATH)
}

// extended copies extended attributes: lists of access, capabilities of programs and what users set.
func extended(from, to int) error {
	list := make([]byte, 64<<10) // the most that the kernel has (XATTR_LIST_MAX)
	n, err := unix.Flistxattr(from, list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	names := strings.Split(string(bytes.TrimRight(list[:n], "\x00")), "\x00")
	slices.Sort(names)
	value := make([]byte, 64<<10) // the same of a value (XATTR_SIZE_MAX)
	for _, name := range names {
		if name == "" {
			continue
		}
		n, err := unix.Fgetxattr(from, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue // it has just been removed
		}
		if err != nil {
			return err
		}
		if err := unix.Fsetxattr(to, name, value[:n], 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
