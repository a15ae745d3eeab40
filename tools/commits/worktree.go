// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/platform/filelock"
)

// worktree adds a detached worktree below .build, and returns the function that removes it, also after an interrupt.
// The worktree that a killed run has left is removed first; a lock keeps a second run out meanwhile.
func (r repository) worktree(ctx context.Context, at commit) (tree repository, remove func() error, err error) {
	dir := filepath.Join(r.dir, ".build", "commits")
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return repository{}, nil, err
	}
	release, err := filelock.Take(dir, "lock")
	if err != nil {
		return repository{}, nil, fmt.Errorf("commits of %s are being checked already: %w", r.dir, err)
	}
	tree = repository{filepath.Join(dir, "tree")}
	remove = func() error {
		defer release()
		return r.removeWorktree(context.WithoutCancel(ctx), tree.dir)
	}
	if err := r.removeWorktree(ctx, tree.dir); err != nil {
		return repository{}, nil, errors.Join(err, remove())
	}
	if _, err := r.git(ctx, "worktree", "add", "--quiet", "--detach", tree.dir, at.id); err != nil {
		return repository{}, nil, errors.Join(err, remove())
	}
	return tree, remove, nil
}

// removeWorktree removes the directory of a worktree, if it exists, and what git keeps of worktrees whose directories
// do not.
func (r repository) removeWorktree(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the worktree: %w", err)
	}
	_, err := r.git(ctx, "worktree", "prune", "--expire=now")
	return err
}
