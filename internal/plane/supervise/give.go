// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// modeShown is that of directories of keys: whoever is shown one gets to the files in it that are its own, and to
	// no others.
	modeShown fs.FileMode = 0o711
	// modeFolder is that of a component's folder: files that the service makes in it later are the component's group's.
	modeFolder = 0o750 | fs.ModeSetgid
	// modeAdded is that of a directory in which several make files.
	modeAdded = 0o770 | fs.ModeSticky
)

// asItIs stands for an owner, a group or a mode that is not changed.
const asItIs = -1

// give makes the user of a spec the owner of its files, whoever owned them before: files of an earlier Muster are
// root's. It is done each time before the process starts, so it may be cut short at any moment, and what it did root
// reads as before.
func give(dir statedir.Dir, spec component.Spec, id uint32) error {
	user, v := int(id), spec.View
	folder := folderOf(dir, spec)
	problems := []error{become(folder, 0, user, modeFolder)}
	do := func(err error) { problems = append(problems, err) }
	entries, err := os.ReadDir(folder)
	do(err)
	for _, entry := range entries {
		do(become(filepath.Join(folder, entry.Name()), user, user, 0))
	}
	do(giveKeys(*v, user))
	for _, path := range v.Writes {
		do(giveTree(path, user, func(string) bool { return true }))
		do(become(path, user, user, 0o700))
	}
	for _, path := range v.Adds {
		do(giveTree(path, user, func(name string) bool { return strings.HasPrefix(name, v.Prefix) }))
		do(become(path, 0, user, modeAdded))
	}
	do(giveSockets(*v, user))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("giving %s its files: %w", spec.Name, err)
	}
	return nil
}

// giveKeys makes what a component reads readable to it. It is looked at again while it runs (keepGiven).
func giveKeys(v component.View, user int) error {
	var problems []error
	do := func(err error) { problems = append(problems, err) }
	for _, file := range slices.Concat(v.Reads, v.Shared, v.Public) {
		do(become(filepath.Dir(file), asItIs, asItIs, modeShown))
	}
	for _, file := range v.Reads {
		do(become(file, user, asItIs, 0))
	}
	for _, file := range v.Shared {
		do(become(file, asItIs, user, 0o640))
	}
	for _, file := range slices.Concat(v.Public, v.Fixed) {
		do(become(file, asItIs, asItIs, 0o644))
	}
	return errors.Join(problems...)
}

// giveSockets makes the directories of sockets.
func giveSockets(v component.View, user int) error {
	for _, socket := range v.Listens {
		if err := socketdir.Make(socket); err != nil {
			return err
		}
		if err := become(socketdir.Dir(socket), user, user, 0); err != nil {
			return err
		}
	}
	for _, socket := range v.Connects {
		if err := socketdir.MakeDir(socket); err != nil {
			return err
		}
	}
	return nil
}

// become changes owner, group and mode of a file that root alone may replace, where they are others. A mode of 0 is one
// that is not changed. A file that is not there its process will miss, and say so.
func become(path string, user, group int, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (user != asItIs && int(stat.Uid) != user || group != asItIs && int(stat.Gid) != group) {
		if err := os.Lchown(path, user, group); err != nil {
			return err
		}
	}
	const bits = fs.ModePerm | fs.ModeSetgid | fs.ModeSticky
	if mode != 0 && info.Mode()&bits != mode {
		return os.Chmod(path, mode)
	}
	return nil
}

// giveTree makes what is in a directory a user's, as far as it is root's and its name in the directory is chosen. The
// user may have been there before and may change the tree meanwhile: no link is followed, and nothing out of it is
// touched.
func giveTree(path string, user int, choose func(name string) bool) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if name == "." && err == nil {
			return nil
		}
		if first, _, _ := strings.Cut(name, "/"); !choose(first) {
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(stat.Uid) == user && int(stat.Gid) == user || !info.IsDir() && !info.Mode().IsRegular() || info.Mode().IsRegular() && stat.Nlink > 1 {
			return nil
		}
		return root.Lchown(name, user, user)
	})
}
