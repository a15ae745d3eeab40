// SPDX-License-Identifier: Apache-2.0

package watchfile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Whoever has all inotify instances of a host delays nobody by more than a second.
func TestAFileThatCannotBeWatchedIsLookedAtEachSecond(t *testing.T) {
	for name, tc := range map[string]struct {
		file File
		want int
	}{
		"polled now and then": {File{Poll: 30 * time.Second}, 10},
		"polled more often":   {File{Poll: 500 * time.Millisecond}, 20},
		"glanced at":          {File{Poll: 30 * time.Second, Glance: 250 * time.Millisecond}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				tc.file.Path, tc.file.Logger = "/nowhere/file", slog.New(slog.NewTextHandler(&log, nil))
				tc.file.Watch = func(string) (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-time.Millisecond)
				defer cancel()
				looks := 0
				tc.file.Run(ctx, func() { looks++ })
				if looks < tc.want || looks > 2*tc.want {
					t.Errorf("looked at it %d times in 10 s, want %d", looks, tc.want)
				}
				if n := strings.Count(log.String(), "directory not watched"); n != 1 {
					t.Errorf("warned %d times:\n%s", n, log.String())
				}
			})
		})
	}
}

func TestVersionsOfAFile(t *testing.T) {
	file := File{Path: filepath.Join(t.TempDir(), "file")}
	if v, err := file.Version(); err == nil || v.Same(v) {
		t.Errorf("of no file: %+v, %v", v, err)
	}
	if err := os.WriteFile(file.Path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := file.Version()
	if err != nil {
		t.Fatal(err)
	}
	if first.Same(first) {
		t.Error("a file that has just changed may change once more within a step of the clock")
	}
	first.looked = first.changed.Add(settled + time.Millisecond)
	again, err := file.Version()
	if err != nil || !again.Same(first) {
		t.Errorf("it is the same: %+v, %+v, %v", first, again, err)
	}
	if err := os.WriteFile(file.Path+".new", []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file.Path+".new", file.Path); err != nil {
		t.Fatal(err)
	}
	if next, err := file.Version(); err != nil || next.Same(first) {
		t.Errorf("it is another: %+v, %+v, %v", first, next, err)
	}
}

func TestAFileThatIsTooLarge(t *testing.T) {
	for size, want := range map[int64]string{16 << 10: "has more than 16 KiB", 2 << 20: "has more than 2 MiB"} {
		file := File{Path: filepath.Join(t.TempDir(), "file"), MaxSize: size}
		for extra, refused := range []bool{false, true} {
			if err := os.WriteFile(file.Path, make([]byte, size+int64(extra)), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := file.Read(); (err != nil) != refused || refused && !strings.Contains(err.Error(), want) {
				t.Errorf("%d bytes of %d: %v", size+int64(extra), size, err)
			}
		}
	}
}
