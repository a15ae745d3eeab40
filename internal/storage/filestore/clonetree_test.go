// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pod makes files with two names each, and the service remembers no more of them than it has room for.
func TestLinksAreBounded(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for i := range 200 {
		one := filepath.Join(from, fmt.Sprint("file-", i))
		if err := errors.Join(os.MkdirAll(filepath.Join(from, "a"), 0o700), os.WriteFile(one, nil, 0o600), os.Link(one, filepath.Join(from, "a", fmt.Sprint("link-", i)))); err != nil {
			t.Fatal(err)
		}
	}
	for room, want := range map[int]error{1 << 10: errLinks, 1 << 20: nil} {
		source, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		made := filepath.Join(to, fmt.Sprint(room))
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.Open(made)
		if err != nil {
			t.Fatal(err)
		}
		c := cloner{content: func(context.Context, *os.File, *os.File) error { return nil }, root: root, linked: map[inode]*names{}, room: room}
		if err := c.directory(t.Context(), source, root, "", 0); !errors.Is(err, want) {
			t.Errorf("with %d bytes: %v", room, err)
		}
		if want == nil && (c.room != room || len(c.linked) > 0) {
			t.Errorf("%d files are remembered, and %d bytes are left of %d", len(c.linked), c.room, room)
		}
		if err := errors.Join(source.Close(), root.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Pods choose names, which Events and statuses repeat.
func TestFailuresAreSafeAndShort(t *testing.T) {
	long := strings.Repeat("a/", 300)
	for at, want := range map[string]string{
		"a/b":                    "a/b: input/output error",
		"a\x1b[2J\n\xff":         `a\x1b[2J\n` + "\uFFFD: input/output error",
		long + "\x1b\xffb":       "…" + long[len(long)-197:] + `\x1b` + "\uFFFDb: input/output error",
		long[:len(long)-1] + "é": "…" + long[len(long)-199:len(long)-1] + "é: input/output error",
	} {
		got := failed(at, &fs.PathError{Op: "open", Path: "/host/" + at, Err: unix.EIO})
		if got.Error() != want || !errors.Is(got, unix.EIO) {
			t.Errorf("%q, want %q", got, want)
		}
		if twice := failed("above", got); twice.Error() != want {
			t.Errorf("once more: %q", twice)
		}
	}
}
