// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxTracked is the size in bytes that a tracked file may have.
const maxTracked = 256 << 10

// A compiled program that is committed once is in every clone from then on.
func TestNoProgramIsTracked(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("listing tracked files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(names) < 100 {
		t.Fatalf("git lists %d tracked files only: the test looks in the wrong place", len(names))
	}
	for _, name := range names {
		switch problem, err := unfit(name); {
		case errors.Is(err, fs.ErrNotExist): // removed here, and not committed yet
		case err != nil:
			t.Error(err)
		case problem != "":
			t.Errorf("%s is tracked: %s", name, problem)
		}
	}
}

// unfit says why a file must not be tracked, or "" if it may be.
func unfit(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", nil
	}
	if info.Size() > maxTracked {
		return fmt.Sprintf("it has %d bytes, more than %d", info.Size(), maxTracked), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(file, magic); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	if bytes.Equal(magic, []byte("\x7fELF")) {
		return "it is a compiled program (ELF)", nil
	}
	return "", nil
}

func TestUnfit(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		fit     bool
	}{
		"empty":        {"", true},
		"text":         {"package main\n", true},
		"program":      {"\x7fELF\x02\x01\x01", false},
		"at the limit": {strings.Repeat("x", maxTracked), true},
		"too large":    {strings.Repeat("x", maxTracked+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			problem, err := unfit(file)
			if err != nil || (problem == "") != c.fit {
				t.Errorf("got %q, %v", problem, err)
			}
		})
	}
}
