// SPDX-License-Identifier: Apache-2.0

package main

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
)

// speedBuilt are the flags of the build's programs (the Makefile's AS_BUILT).
var speedBuilt = []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false"}

// ownPrograms are those that Muster's packages are in; of an earlier commit, the first two are built.
var ownPrograms = []string{"muster", "muster-certificate-controller", "muster-egress"}

// earlierPrograms returns a directory like bin/ with Muster of the earlier commit, beside the same upstream programs as now: what is measured is
// Muster's part. Images that the earlier commit did not have are left out, since machines import all that there are.
func earlierPrograms(ctx context.Context, bin string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(".build", "speed", earlierCommit[:12]))
	if err != nil {
		return "", err
	}
	if err := buildEarlier(ctx, dir); err != nil {
		return "", err
	}
	images, err := gitLines(ctx, "ls-tree", "--name-only", earlierCommit, "images/")
	if err != nil {
		return "", err
	}
	programs := filepath.Join(dir, "bin")
	if err := os.RemoveAll(programs); err != nil {
		return "", err
	}
	if err := linkTree(bin, programs, func(name string) bool { return shared(images, name) }); err != nil {
		return "", err
	}
	if err := linkTree(filepath.Join(dir, "own"), programs, func(string) bool { return true }); err != nil {
		return "", err
	}
	changed, err := gitLines(ctx, "diff", "--name-only", earlierCommit, "HEAD", "--", "kubernetes", "etcd", "runtime", "images")
	if err != nil {
		return "", err
	}
	if len(changed) > 0 {
		fmt.Printf("both run with the upstream programs and images of bin/; %d files that these are built from have changed since %.7s\n", len(changed), earlierCommit)
	}
	return programs, nil
}

// shared reports whether an earlier commit, which has these directories of images, runs with a file of bin/ as it is now.
func shared(images []string, name string) bool {
	switch path.Dir(name) {
	case "images":
		return slices.Contains(images, "images/"+strings.ReplaceAll(strings.TrimSuffix(path.Base(name), ".tar"), "-", ""))
	case "addons":
		return false
	}
	return !slices.Contains(ownPrograms, name)
}

// buildEarlier builds the earlier commit's Muster into the directory own, unless its stamp says that this very compiler has done so.
func buildEarlier(ctx context.Context, dir string) (err error) {
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return fmt.Errorf("go version: %w", err)
	}
	stamp, stampFile := strings.Join(append([]string{earlierCommit, strings.TrimSpace(string(version))}, speedBuilt...), "\n"), filepath.Join(dir, "stamp")
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
	archive := exec.CommandContext(ctx, "git", "archive", "--output", filepath.Join(source, "archive.tar"), earlierCommit)
	extract := exec.CommandContext(ctx, "tar", "--extract", "--file=archive.tar")
	extract.Dir = source
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", own+"/", "./cmd/"+ownPrograms[0], "./cmd/"+ownPrograms[1])
	build.Dir, build.Env = source, append(os.Environ(), speedBuilt...)
	for _, step := range []*exec.Cmd{archive, extract, build} {
		if out, err := step.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step.Args, " "), err, out)
		}
	}
	return os.WriteFile(stampFile, []byte(stamp), 0o600)
}

// linkTree makes hard links below to of the files below from, whose names relative to it are wanted. A machine sees the directory of its programs
// and nothing else of the host, so a symbolic link to another would lead nowhere.
func linkTree(from, to string, wanted func(name string) bool) error {
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
			return os.MkdirAll(filepath.Join(to, name), 0o755) //nolint:gosec // machines read it
		}
		if !wanted(filepath.ToSlash(name)) {
			return nil
		}
		return os.Link(file, filepath.Join(to, name)) //nolint:gosec // G122: both directories are this program's own
	})
}

// gitLines are the lines that git prints.
func gitLines(ctx context.Context, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(talk.Bytes()))
	}
	return strings.Fields(string(out)), nil
}
