// SPDX-License-Identifier: Apache-2.0

// Package earlier makes programs of an earlier commit, to be run beside those of this tree or before them.
package earlier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/release"
)

// asBuilt are the flags of the build's programs (the Makefile's AS_BUILT).
var asBuilt = []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false"}

// ownPrograms are those that Muster's packages are in; a commit may have fewer of them. egressProgram is made of a few
// packages, and little of that changes.
var ownPrograms = []string{"muster", "muster-certificate-controller", "muster-plane-front", "muster-registry", "muster-token-signer", "muster-webhook-proxy"}

const egressProgram = "muster-egress"

// Programs returns a directory like bin, that of this tree at root, with Muster of a commit, by its whole hash, beside
// the same upstream programs as now: what differs is Muster's part. Images that the commit did not have are left out,
// since machines import all that there are; programs of Kubernetes lie where that commit looks for them. The programs
// are kept below .build, for the next time.
func Programs(ctx context.Context, root, commit, bin string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(root, ".build", "earlier", commit[:12]))
	if err != nil {
		return "", err
	}
	tree := tree{root, commit}
	if err := tree.build(ctx, dir); err != nil {
		return "", err
	}
	has, err := tree.git(ctx, "ls-tree", "--name-only", commit, "egress", "images/", "kubernetes/")
	if err != nil {
		return "", err
	}
	programs := filepath.Join(dir, "bin")
	if err := os.RemoveAll(programs); err != nil {
		return "", err
	}
	if err := linkTree(bin, programs, func(name string) string { return place(has, name) }); err != nil {
		return "", err
	}
	if err := linkTree(filepath.Join(dir, "own"), programs, func(name string) string { return name }); err != nil {
		return "", err
	}
	return programs, nil
}

// Changed counts the files that upstream programs and images are built from and that are others now than they were in a
// commit.
func Changed(ctx context.Context, root, commit string) (int, error) {
	changed, err := tree{root, commit}.git(ctx, "diff", "--name-only", commit, "HEAD", "--",
		":(glob)kubernetes/*", "kubernetes/"+release.Default().Folder, "etcd", "runtime", "images")
	return len(changed), err
}

// tree is a commit of the repository at a directory.
type tree struct{ root, commit string }

// place is where a commit, which has these of the directories that programs and images are made from, looks for a file
// of bin/ as it is now; empty if it does not run with that file. Before each minor of Kubernetes had a folder, its
// programs lay beside Muster's.
func place(has []string, name string) string {
	folder := release.Default().Folder
	switch {
	case !shared(has, name):
		return ""
	case slices.Contains(has, "kubernetes/"+folder):
		return name
	case release.Default().Program("", name) != name: // a link into the folder
		return ""
	}
	return strings.TrimPrefix(name, folder+"/")
}

// shared reports whether a commit, which has these of the directories that images and the way out are made from, runs
// with a file of bin/ as it is now.
func shared(has []string, name string) bool {
	switch path.Dir(name) {
	case "images":
		return slices.Contains(has, "images/"+strings.ReplaceAll(strings.TrimSuffix(path.Base(name), ".tar"), "-", ""))
	case "addons":
		return false
	}
	if name == egressProgram {
		return slices.Contains(has, "egress")
	}
	return !slices.Contains(ownPrograms, name)
}

// build builds the commit's Muster into the directory own, unless its stamp says that this very compiler has done so.
func (t tree) build(ctx context.Context, dir string) (err error) {
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return fmt.Errorf("go version: %w", err)
	}
	stamp, stampFile := strings.Join(append([]string{t.commit, strings.TrimSpace(string(version))}, asBuilt...), "\n"), filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stampFile); err == nil && string(have) == stamp {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	source, own := filepath.Join(dir, "source"), filepath.Join(dir, "own")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(source, 0o750)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(source)) }()
	archive := exec.CommandContext(ctx, "git", "archive", "--output", filepath.Join(source, "archive.tar"), t.commit)
	archive.Dir = t.root
	extract := exec.CommandContext(ctx, "tar", "--extract", "--file=archive.tar")
	extract.Dir = source
	has, err := t.git(ctx, "ls-tree", "--name-only", t.commit, "cmd/")
	if err != nil {
		return err
	}
	args := []string{"build", "-ldflags=-s -w", "-o", own + "/"}
	for _, name := range ownPrograms {
		if slices.Contains(has, "cmd/"+name) {
			args = append(args, "./cmd/"+name)
		}
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir, build.Env = source, append(os.Environ(), asBuilt...)
	for _, step := range []*exec.Cmd{archive, extract, build} {
		if out, err := step.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step.Args, " "), err, out)
		}
	}
	return os.WriteFile(stampFile, []byte(stamp), 0o600)
}

// linkTree makes hard links below to of the files below from, each at its place by its name relative to from; a file
// with an empty place is left out. A machine sees the directory of its programs and nothing else of the host, so a
// symbolic link to another would lead nowhere.
func linkTree(from, to string, place func(name string) string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		if name = place(filepath.ToSlash(name)); name == "" {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil { //nolint:gosec // machines read it
			return err
		}
		return os.Link(file, filepath.Join(to, name)) //nolint:gosec // G122: both directories are this program's own
	})
}

// Replace puts the files of one directory of programs at their places in another, each in one step, as an installer does
// with programs that run. A file that is the same stays. Both directories are on one file system.
func Replace(from, in string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		to := filepath.Join(in, name)
		is, err := os.Lstat(file)
		if err != nil {
			return err
		}
		if was, err := os.Lstat(to); err == nil && os.SameFile(was, is) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // machines read it
			return err
		}
		if err := os.Link(file, to+".new"); err != nil { //nolint:gosec // G122: both directories are this program's own
			return err
		}
		return os.Rename(to+".new", to)
	})
}

// git are the words that git prints.
func (t tree) git(ctx context.Context, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = t.root
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(talk.Bytes()))
	}
	return strings.Fields(string(out)), nil
}
