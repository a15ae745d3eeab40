// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// beside adds a log of another cluster to a world, which the shipper reads after that of the world.
func (w *world) beside() Source {
	w.t.Helper()
	dir := filepath.Join(w.dir, "other")
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	other := Source{Path: filepath.Join(dir, "audit.log"), Log: "000000000000:/aws/eks/green/cluster", Stream: "kube-apiserver-audit-2", Zone: w.source.Zone, On: true}
	w.shipper.config.Sources = func() []Source { return []Source{w.source, other} }
	return other
}

// kept are the lines of a log that are on the log store's disk.
func (w *world) kept(of Source) (lines []string) {
	for _, row := range w.server.Disk() {
		if row["@log"] == of.Log {
			lines = append(lines, row["_msg"])
		}
	}
	return lines
}

// A link or a pipe that a component puts in the place of its log keeps no other cluster's log from being kept, and the log is read
// once it is a file again.
func TestALogThatCannotBeReadStopsNoOther(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"an older link": func(path string) error {
			return os.Symlink("/etc/hostname", strings.TrimSuffix(path, ".log")+"-2026-11-30T00-00-00.000.log")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			other := w.beside()
			if err := put(w.source.Path); err != nil {
				t.Fatal(err)
			}
			line := "of another cluster " + long
			if err := os.WriteFile(other.Path, []byte(line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := w.turn(); err == nil || !strings.Contains(err.Error(), w.source.Path) {
				t.Errorf("the round says %v of %s", err, w.source.Path)
			}
			if got := w.kept(other); !slices.Equal(got, []string{line}) {
				t.Fatalf("of the other log %q is kept", got)
			}
			entries, err := filepath.Glob(filepath.Join(filepath.Dir(w.source.Path), "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if err := os.Remove(entry); err != nil {
					t.Fatal(err)
				}
			}
			w.write(long)
			w.shipper.config.Sources = func() []Source { return []Source{w.source} }
			w.settled()
			if got := w.kept(w.source); !slices.Equal(got, w.written) {
				t.Errorf("%q is kept, want %q", got, w.written)
			}
		})
	}
}

// A log store that fails is not taken for a log that cannot be read: nothing counts as kept.
func TestAFailingStoreEndsTheRound(t *testing.T) {
	w := newWorld(t, false)
	other := w.beside()
	w.write(long)
	if err := os.WriteFile(other.Path, []byte(long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	w.server.Fail(func(path string) logstoretest.Fault {
		if path == "/select/logsql/query" {
			asked++
			return logstoretest.Refuses
		}
		return logstoretest.None
	})
	if err := w.turn(); err == nil || strings.Contains(err.Error(), w.source.Path) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if len(w.shipper.positions) != 0 {
		t.Errorf("positions %v", w.shipper.positions)
	}
}

// A log that grows as fast as it is read keeps no other log waiting.
func TestALogThatGrowsKeepsNoOtherWaiting(t *testing.T) {
	w := newWorld(t, false)
	other := w.beside()
	w.shipper.config.Budget = 1 << 10
	if err := os.WriteFile(other.Path, []byte(long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for round := 0; len(w.kept(other)) == 0; round++ {
		if round == 2 {
			t.Fatal("the log of another cluster is not read")
		}
		for range 20 {
			w.write(long)
		}
		more, err := w.shipper.turn(t.Context())
		if err != nil || !more {
			t.Fatalf("round %d: more: %v, %v", round, more, err)
		}
	}
	w.shipper.config.Sources = func() []Source { return []Source{w.source} }
	for range 100 {
		if err := w.turn(); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.kept(w.source); !slices.Equal(got, w.written) {
		t.Errorf("%d lines are kept, want %d", len(got), len(w.written))
	}
}

// A component that renames its files without end gets an error, and no round without end.
func TestFilesThatAreRenamedWithoutEnd(t *testing.T) {
	n := 0
	_, err := settled(func() ([]file, error) {
		n++
		return []file{{path: strings.Repeat("x", n), id: "1"}}, nil
	})
	if err == nil || n > 100 {
		t.Errorf("after %d lists: %v", n, err)
	}
	n = 0
	found, err := settled(func() ([]file, error) {
		n++
		return []file{{path: strings.Repeat("x", min(n, 3)), id: "1"}}, nil
	})
	if err != nil || len(found) != 1 || found[0].path != "xxx" {
		t.Errorf("after %d lists: %v, %v", n, found, err)
	}
	broken := errors.New("broken")
	if _, err := settled(func() ([]file, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A line that never ends is read in parts, each of them once.
func TestALineWithoutEnd(t *testing.T) {
	text := strings.Repeat("x", 2*longestLine+3*bufferSize) + "\nb\n"
	var offsets []int64
	at, rounds := int64(0), 0
	for size := int64(longestLine / 2); ; size = min(size+longestLine/2, int64(len(text))) {
		to, err := lines(strings.NewReader(text[:size]), at, 1<<30, true, func(offset int64, line []byte, cut bool) error {
			if cut != (len(line) == logevent.MaxText) {
				t.Errorf("at %d: %d bytes, cut: %v", offset, len(line), cut)
			}
			offsets = append(offsets, offset)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if rounds++; rounds > 20 {
			t.Fatalf("it is at %d", to)
		}
		if size-to > longestLine {
			t.Errorf("of %d bytes %d are read", size, to)
		}
		if at = to; at == int64(len(text)) {
			break
		}
	}
	if want := []int64{0, longestLine, 2 * longestLine, int64(len(text)) - 2}; !slices.Equal(offsets, want) {
		t.Errorf("lines at %v, want %v", offsets, want)
	}
}
