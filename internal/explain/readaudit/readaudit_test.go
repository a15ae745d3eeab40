// SPDX-License-Identifier: Apache-2.0

package readaudit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/statedir"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newDir(t *testing.T) statedir.Dir {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Each read is a line that muster logs shows, by this user, in a file for its owner alone.
func TestAdd(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	record := readaudit.Of(dir)
	for _, what := range []string{"status", "explain machine i-1\nx"} {
		if err := record.Add(readaudit.Read{Time: noon, By: readaudit.Self(), With: "muster mcp", Client: "inspector", Command: what}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := logs.Copy(t.Context(), &out, logs.Config{Sources: logs.Components(dir), Tail: logs.All}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last readaudit.Read
	if len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &last) != nil || last.Command != "explain machine i-1\nx" || last.By.UID != os.Getuid() || last.By.PID != os.Getpid() || !last.Time.Equal(noon) {
		t.Errorf("%q", lines)
	}
	if info, err := os.Stat(dir.Log(readaudit.LogName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Requests as long as they can be leave the reads before them on record for long, and are known by their beginnings.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	record := readaudit.Of(dir)
	long := "GET /?q=" + strings.Repeat("ü", 100<<10)
	for n := range 100 {
		read := readaudit.Read{Time: noon, By: readaudit.Self(), Client: long, Command: long, User: long}
		if n == 0 {
			read = readaudit.Read{Time: noon, By: readaudit.Self(), Command: "GET /machines/i-1"}
		}
		if err := record.Add(read); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(dir.Log(readaudit.LogName))
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var first, last readaudit.Read
	if err != nil || len(lines) != 100 || json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[99]), &last) != nil {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if first.Command != "GET /machines/i-1" || !strings.HasPrefix(last.Command, "GET /?q=üü") || !strings.HasSuffix(last.Command, "ü… and 202760 bytes more") || len(last.User) > 600 || len(last.Client) > 600 {
		t.Errorf("%q, %.3000q", lines[0], lines[99])
	}
}

// Many writers lose no line where the file becomes the older part once, and the file stays small.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	const writers, each = 4, 12
	long := strings.Repeat("x", 100<<10)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := readaudit.Of(dir).Add(readaudit.Read{Time: noon, With: "test", File: long}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	count := 0
	for _, path := range []string{dir.Log(readaudit.LogName), dir.Log(readaudit.LogName) + ".1"} {
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) > 4<<20 {
			t.Errorf("%s: %d bytes, %v", path, len(raw), err)
		}
		for line := range bytes.Lines(raw) {
			if !json.Valid(line) {
				t.Errorf("a line is torn: %.60q", line)
			}
			count++
		}
	}
	if count != writers*each {
		t.Errorf("%d lines of %d", count, writers*each)
	}
}

// Where the record cannot be written, there is an error, and a link leads nowhere.
func TestCannotWrite(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Mkdir(filepath.Dir(dir.Log("x")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, dir.Log(readaudit.LogName)); err != nil {
		t.Fatal(err)
	}
	if err := readaudit.Of(dir).Add(readaudit.Read{Command: "status"}); err == nil || !strings.Contains(err.Error(), "nothing is read") {
		t.Errorf("by a link: %v", err)
	}
	if _, err := os.Stat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("the link's end: %v", err)
	}
}
