// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/removetree"
	"muster.dev/muster/internal/storage/efs"
)

const (
	dataDir      = "data"
	snapshotsDir = "snapshots"
	stagingDir   = "staging"
	trashDir     = "trash"
)

// life begins the names in staging and trash that this process has made: it may still be using them.
var life = rand.Text() + "-"

func temporaryName() string { return life + rand.Text() }

// Owner is who owns a directory that is made, and its mode: permission bits, and those for set-id and sticky.
type Owner struct {
	UID, GID int
	Mode     uint32
}

// Store is the directory of all file systems. The parts that mount and copy volumes share one Store.
type Store struct {
	root    string
	reflink func(to, from *os.File) error
	stills  stills
}

// New returns the store in a directory, which need not exist.
func New(root string) *Store { return NewReflinking(root, reflink) }

// NewReflinking returns a store that lets a file have the content of another one in a way of its own, as tests do on
// file systems that have none.
func NewReflinking(root string, reflink func(to, from *os.File) error) *Store {
	return &Store{root: root, reflink: reflink}
}

// Ensure makes a file system, unless it is there.
func (s *Store) Ensure(id string) error {
	if err := efs.CheckFileSystemID(id); err != nil {
		return err
	}
	// The trash is made here, since a disk that is full has no room for it.
	for _, dir := range []string{s.root, filepath.Join(s.root, trashDir), s.path(id), filepath.Join(s.path(id), stagingDir), filepath.Join(s.path(id), snapshotsDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making file system %s: %w", id, err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.path(id), dataDir), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: EFS's; its parent is private
		return fmt.Errorf("making file system %s: %w", id, err)
	}
	return syncDirectory(s.path(id))
}

func (s *Store) path(id string) string { return filepath.Join(s.root, id) }

// Open opens a directory of a file system, for mounting. The error is [fs.ErrNotExist] if it is not there.
func (s *Store) Open(id, directory string) (*os.File, error) {
	return s.open(Place{FileSystemID: id, Path: directory})
}

func (s *Store) open(at Place) (*os.File, error) {
	root, err := s.openRoot(at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return openBelow(root, at.Path)
}

// openRoot opens the directory that the path of a place is below.
func (s *Store) openRoot(at Place) (*os.File, error) {
	if err := errors.Join(efs.CheckFileSystemID(at.FileSystemID), efs.CheckPath(at.Path)); err != nil {
		return nil, err
	}
	root, err := os.Open(filepath.Join(s.path(at.FileSystemID), at.tree()))
	if err != nil {
		return nil, fmt.Errorf("opening file system %s: %w", at.FileSystemID, err)
	}
	return root, nil
}

// openParent opens the directory that a place is in.
func (s *Store) openParent(at Place) (*os.File, error) {
	at.Path = path.Dir(at.Path)
	return s.open(at)
}

// openBelow follows a path without symbolic links.
func openBelow(dir *os.File, name string) (*os.File, error) {
	name = strings.TrimPrefix(name, "/")
	if name == "" {
		name = "."
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_DIRECTORY | unix.O_RDONLY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
}

// Make makes a directory of a file system and those above it, which are root's (mode 0755). An existing directory stays
// as it is.
func (s *Store) Make(id, directory string, owner Owner) error {
	err := s.makeAt(Place{FileSystemID: id, Path: directory}, owner.directory)
	if err == nil {
		var made *os.File
		if made, err = s.Open(id, directory); err == nil {
			return made.Close()
		}
	}
	return fmt.Errorf("making directory %s of file system %s: %w", directory, id, err)
}

// directory makes a directory that belongs to the owner.
func (o Owner) directory(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if err := os.Chown(path, o.UID, o.GID); err != nil {
		return err
	}
	return unix.Chmod(path, o.Mode)
}

// makeAt makes the directories above a place and what is to be there, unless something is.
func (s *Store) makeAt(at Place, last func(path string) error) error {
	parent, err := s.openRoot(at)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	id := at.FileSystemID
	names := strings.FieldsFunc(at.Path, func(r rune) bool { return r == '/' })
	if len(names) == 0 {
		return nil
	}
	for _, name := range names[:len(names)-1] {
		child, err := openBelow(parent, name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = s.place(id, parent, name, Owner{Mode: 0o755}.directory); err == nil {
				child, err = openBelow(parent, name)
			}
		}
		if err != nil {
			return err
		}
		_ = parent.Close()
		parent = child
	}
	name := names[len(names)-1]
	if err := unix.Fstatat(int(parent.Fd()), name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return s.place(id, parent, name, last)
}

// place makes something in staging and moves it to where it belongs.
func (s *Store) place(id string, parent *os.File, name string, create func(path string) error) error {
	staging, temporary := filepath.Join(s.path(id), stagingDir), temporaryName()
	made := filepath.Join(staging, temporary)
	err := create(made)
	faster := false // another request was
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, made, int(parent.Fd()), name, unix.RENAME_NOREPLACE)
		faster = errors.Is(err, unix.EEXIST)
	}
	if err != nil {
		_ = removeAll(staging, temporary)
		if faster {
			return nil
		}
		return err
	}
	return parent.Sync()
}

// Discard moves a directory of a file system, with what is in it, or a disk to the trash, and removes it there. It is
// not an error if nothing is there. The root of a file system cannot be discarded.
func (s *Store) Discard(id, directory string) error {
	return s.DiscardPlace(Place{FileSystemID: id, Path: directory})
}

// DiscardPlace is [Store.Discard] of a snapshot, too.
func (s *Store) DiscardPlace(at Place) error {
	if err := errors.Join(efs.CheckFileSystemID(at.FileSystemID), efs.CheckPath(at.Path)); err != nil {
		return err
	}
	if at.Path == "/" {
		return fmt.Errorf("the root of file system %s cannot be removed", at.FileSystemID)
	}
	parent, err := s.openParent(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	return s.discard(int(parent.Fd()), path.Base(at.Path))
}

// Remove removes a file system with everything in it.
func (s *Store) Remove(id string) error {
	if err := efs.CheckFileSystemID(id); err != nil {
		return err
	}
	return s.discard(unix.AT_FDCWD, s.path(id))
}

// discard moves what a name at a directory is to the trash and removes it there.
func (s *Store) discard(at int, name string) error {
	trash := filepath.Join(s.root, trashDir)
	if err := os.MkdirAll(trash, 0o700); err != nil {
		return fmt.Errorf("making the trash: %w", err)
	}
	to := filepath.Join(trash, temporaryName())
	err := unix.Renameat2(at, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("moving %s to the trash: %w", name, err)
	}
	return removeAll(trash, filepath.Base(to))
}

// removeAll removes a name of the trash or of staging without following what is in it out of it.
func removeAll(dir, name string) error {
	if err := removetree.RemoveAll(filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("emptying %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// Sweep removes what an earlier process of the service left in staging and trash. Entries of this process stay, since
// they may be in use.
func (s *Store) Sweep() error {
	systems, err := namesIn(s.root)
	errs := []error{err}
	dirs := []string{filepath.Join(s.root, trashDir)}
	for _, name := range systems {
		if efs.CheckFileSystemID(name) == nil {
			dirs = append(dirs, filepath.Join(s.path(name), stagingDir))
		}
	}
	for _, dir := range dirs {
		left, err := namesIn(dir)
		errs = append(errs, err)
		for _, name := range left {
			if !strings.HasPrefix(name, life) {
				errs = append(errs, removeAll(dir, name))
			}
		}
	}
	return errors.Join(errs...)
}

// namesIn are the names in a directory, which need not be there.
func namesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// syncDirectory makes names in a directory outlive a crash of the host.
func syncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}
