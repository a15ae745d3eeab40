// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// until ends a count when it has printed a number.
type until struct {
	bytes.Buffer
	number string
	cancel context.CancelFunc
}

func (u *until) Write(p []byte) (int, error) {
	if string(p) == u.number {
		u.cancel()
	}
	return u.Buffer.Write(p)
}

func TestCountGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, stop := range []string{"3\n", "7\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &until{number: stop, cancel: cancel}
		if err := count(ctx, out, dir, time.Millisecond); err != nil || !strings.HasSuffix(out.String(), stop) {
			t.Fatalf("%q, %v", out.String(), err)
		}
	}
	path := filepath.Join(dir, countFile)
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != "1\n2\n3\n4\n5\n6\n7\n" {
		t.Fatalf("%q, %v", raw, err)
	}
	for content, want := range map[string]string{"1\n2\n3": "2", "1\n3\n": "lost", "1\n\x00\n": "lost", "": "0"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := run(t.Context(), []string{"counted", dir}, &out)
		if got := strings.TrimSpace(out.String()); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %s", content, got, err, want)
		}
	}
}
