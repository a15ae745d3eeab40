// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/filelock"
)

// left fails the test if a run has left a worktree, in .build or in git's list.
func (s scratch) left() {
	s.t.Helper()
	if entries, err := os.ReadDir(filepath.Join(s.dir, ".build")); err != nil || len(entries) > 0 {
		s.t.Errorf(".build holds %v, %v", entries, err)
	}
	if list := s.git("worktree", "list"); strings.Contains(list, "\n") {
		s.t.Errorf("git lists:\n%s", list)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Run("by commits that hold", func(t *testing.T) {
		s := newScratch(t)
		if out, holds := s.check(); !holds {
			t.Errorf("printed:\n%s", out)
		}
		s.left()
	})
	t.Run("by commits that fail", func(t *testing.T) {
		s := newScratch(t)
		s.commit("c: add a package", files{"c/c.go": "package c\n\nimport _ \"example.test/m/later\"\n"})
		if out, holds := s.check(); holds {
			t.Errorf("printed:\n%s", out)
		}
		s.left()
	})
	t.Run("by an interrupt", func(t *testing.T) {
		s := newScratch(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.commit("Not an area", nil) // which is printed before anything of go's runs
		if err := run(ctx, s.dir, nil, cancelAt{"FAIL", cancel}); err == nil || errors.Is(err, errFailed) {
			t.Errorf("got %v", err)
		}
		s.left()
	})
	t.Run("by a run that was killed", func(t *testing.T) {
		s := newScratch(t)
		if _, _, err := (repository{s.dir}).worktree(t.Context(), commit{id: "HEAD"}); err != nil {
			t.Fatal(err)
		}
		// The kernel releases the lock of a process that ends.
		if err := os.Remove(filepath.Join(s.dir, ".build", "commits", "lock")); err != nil {
			t.Fatal(err)
		}
		if out, holds := s.check(); !holds {
			t.Errorf("printed:\n%s", out)
		}
		s.left()
	})
}

// cancelAt ends a context when a text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.text)) {
		c.cancel()
	}
	return len(p), nil
}

func TestOneRunAtATime(t *testing.T) {
	s := newScratch(t)
	_, remove, err := repository{s.dir}.worktree(t.Context(), commit{id: "HEAD"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), s.dir, nil, io.Discard); !errors.Is(err, filelock.ErrTaken) {
		t.Errorf("the second got %v", err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	s.left()
}
