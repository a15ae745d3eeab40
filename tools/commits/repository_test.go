// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files are the contents by name; an empty one is removed.
type files map[string]string

// scratch is a repository of git for one test.
type scratch struct {
	t   *testing.T
	dir string
}

// newScratch makes a repository whose branch main has one commit: a module with package a, and package b that imports
// it.
func newScratch(t *testing.T) scratch {
	t.Helper()
	s := scratch{t, t.TempDir()}
	s.git("init", "--quiet", "--initial-branch=main")
	s.git("config", "user.name", "Test")
	s.git("config", "user.email", "test@example.test")
	s.commit("all: begin a module", files{
		"go.mod":     "module example.test/m\n\ngo 1.26\n",
		"a/a.go":     "package a\n\nfunc Name() string { return \"a\" }\n",
		"b/b.go":     "package b\n\nimport \"example.test/m/a\"\n\nvar Name = a.Name()\n",
		".gitignore": "/.build/\n",
	})
	return s
}

func (s scratch) git(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits files, and returns the commit's id as it is printed.
func (s scratch) commit(subject string, changes files) string {
	s.t.Helper()
	for name, content := range changes {
		path := filepath.Join(s.dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				s.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "--allow-empty", "--message", subject)
	return s.head()
}

func (s scratch) head() string { return s.git("rev-parse", "HEAD")[:12] }

// check runs the program and returns what it prints, and whether all commits hold.
func (s scratch) check(args ...string) (out string, holds bool) {
	s.t.Helper()
	var printed bytes.Buffer
	err := run(s.t.Context(), s.dir, args, &printed)
	if err != nil && !errors.Is(err, errFailed) {
		s.t.Fatalf("%v\n%s", err, printed.String())
	}
	return printed.String(), err == nil
}
