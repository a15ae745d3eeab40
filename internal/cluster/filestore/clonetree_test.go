// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
		c := cloner{reflink: func(*os.File, *os.File) error { return nil }, root: root, linked: map[inode]*names{}, room: room}
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
