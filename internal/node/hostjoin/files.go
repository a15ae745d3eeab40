// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/removetree"
)

// artifact is a file that a join puts on the host: content, a copy of another file, or a link to a name beside it.
type artifact struct {
	path    string
	mode    fs.FileMode
	content []byte
	copyOf  string // outside root; of a link, its target there
	linkTo  string
	// late is what the kubelet does not need to start: it is placed when that has been started.
	late bool
	// secret keeps its content from being shown.
	secret bool
}

// disk is the host's file system.
type disk struct {
	root string
	// before is asked before every change; tests crash there.
	before func(what string) error
}

func (d disk) at(path string) string { return filepath.Join(d.root, path) }

func (d disk) change(what string) error {
	if d.before == nil {
		return nil
	}
	return d.before(what)
}

// state of an artifact on the host.
type state int

const (
	absent state = iota
	same
	different
)

// look compares an artifact with what is there. Modes are not compared: an earlier mode is somebody's decision; see
// loosened for the others.
func (d disk) look(a artifact) (state, error) {
	path := d.at(a.path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return absent, fmt.Errorf("looking at %s: %w", a.path, err)
	}
	if a.linkTo != "" {
		if target, err := os.Readlink(path); err == nil && target == a.linkTo || sameFile(path, a.copyOf) {
			return same, nil
		}
		return different, nil
	}
	if a.copyOf != "" && sameFile(path, a.copyOf) { // such as a link to it
		return same, nil
	}
	if !info.Mode().IsRegular() {
		return different, nil
	}
	if a.copyOf != "" {
		equal, err := equalFiles(path, a.copyOf)
		if err != nil {
			return different, fmt.Errorf("comparing %s: %w", a.path, err)
		}
		if equal {
			return same, nil
		}
		return different, nil
	}
	if info.Size() != int64(len(a.content)) {
		return different, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return different, fmt.Errorf("reading %s: %w", a.path, err)
	}
	if bytes.Equal(content, a.content) {
		return same, nil
	}
	return different, nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// missing are the directories on the way to a path that are not there, outer ones first.
func (d disk) missing(path string) []string {
	var dirs []string
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(d.at(dir)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// place puts an artifact on the host, whole or not at all. Its directory is made if need be.
func (d disk) place(a artifact) error {
	if err := d.change("write " + a.path); err != nil {
		return err
	}
	path := d.at(a.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: as the directories of programs and configuration are
		return fmt.Errorf("making directory of %s: %w", a.path, err)
	}
	switch {
	case a.linkTo != "":
		return placeLink(path, a.linkTo)
	case a.copyOf != "":
		return placeCopy(path, a.copyOf, a.mode)
	}
	return atomicfile.Write(path, a.content, a.mode)
}

// temporary is how files are called before they have their name, as durable calls them.
func temporary(path string) string {
	return filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path)+"-")
}

func placeLink(path, target string) error {
	name := temporary(path) + "link"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making link %s: %w", path, err)
	}
	if err := os.Symlink(target, name); err != nil {
		return fmt.Errorf("making link %s: %w", path, err)
	}
	if err := os.Rename(name, path); err != nil {
		return fmt.Errorf("making link %s: %w", path, err)
	}
	return nil
}

// placeCopy copies a program. It has the disk write it before it gets its name: half a program under its name would be
// started.
func placeCopy(path, source string, mode fs.FileMode) error {
	from, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("installing %s: %w", path, err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(filepath.Dir(path), filepath.Base(temporary(path)))
	if err != nil {
		return fmt.Errorf("installing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(to.Name()) }() // nothing is there after the rename
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(mode)
	}
	if err == nil {
		err = to.Sync()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", path, err)
	}
	return nil
}

// sweep removes what a crash left of attempts to write a file.
func (d disk) sweep(path string) error {
	prefix := filepath.Base(temporary(path))
	names, err := d.list(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest != "link" && strings.Trim(rest, "0123456789") != "" {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(d.at(path)), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return nil
}

// remove takes a file away.
func (d disk) remove(path string) error {
	if err := d.change("remove " + path); err != nil {
		return err
	}
	if err := d.sweep(path); err != nil {
		return err
	}
	if _, err := os.Lstat(d.at(path)); errors.Is(err, fs.ErrNotExist) {
		return nil // which a file system that is read-only would refuse to remove
	}
	if err := os.Remove(d.at(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// removeDir takes a directory away if nothing is in it, and reports whether it is gone.
func (d disk) removeDir(path string) (bool, error) {
	if err := d.change("remove directory " + path); err != nil {
		return false, err
	}
	entries, err := os.ReadDir(d.at(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("removing directory %s: %w", path, err)
	case len(entries) > 0:
		return false, nil
	}
	if err := os.Remove(d.at(path)); err != nil {
		return false, fmt.Errorf("removing directory %s: %w", path, err)
	}
	return true, nil
}

// removeTree takes a directory away with all that is in it. Mounts below it are unmounted first: their content may be
// anybody's. Mounts go by where they really are, so a link on the way, such as that of /var/lib/kubelet to a larger
// disk, is followed first.
func (d disk) removeTree(tree Tree) error {
	if err := d.change("remove everything in " + tree.Path); err != nil {
		return err
	}
	place, err := filepath.EvalSymlinks(d.at(tree.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return d.removeRoot(tree) // at most a link to nothing
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", tree.Path, err)
	}
	if err := unmountBelow(place); err != nil {
		return err
	}
	entries, err := os.ReadDir(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", tree.Path, err)
	}
	for _, entry := range entries {
		if err := removetree.RemoveAll(filepath.Join(place, entry.Name())); err != nil {
			return fmt.Errorf("removing %s: %w", tree.Path, err)
		}
	}
	return d.removeRoot(tree)
}

// removeRoot takes the directory of a tree away, or what is there by its name, unless it was there before.
func (d disk) removeRoot(tree Tree) error {
	if tree.Keep {
		return nil
	}
	if err := removetree.RemoveAll(d.at(tree.Path)); err != nil {
		return fmt.Errorf("removing %s: %w", tree.Path, err)
	}
	return nil
}

// list is what is in a directory; nothing if there is none.
func (d disk) list(path string) ([]string, error) {
	entries, err := os.ReadDir(d.at(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking at %s: %w", path, err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// hasDirectories reports whether there are directories in a directory: of a slice's control group, those are units.
func (d disk) hasDirectories(path string) bool {
	entries, err := os.ReadDir(d.at(path))
	return err == nil && slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}
