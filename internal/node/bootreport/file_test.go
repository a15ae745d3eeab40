// SPDX-License-Identifier: Apache-2.0

package bootreport_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/bootreport"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 5, time.FixedZone("x", 3600))

// disk is a machine's disk, with the directory that the report is in.
func disk(t *testing.T) (root *os.Root, path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, bootreport.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, path
}

// The host reads the machine's report as it was written, and the file keeps its size and its place: a full disk must
// not keep it from being written.
func TestReport(t *testing.T) {
	root, path := disk(t)
	if _, ok := bootreport.Read(root); ok {
		t.Error("a report is read where no file is")
	}
	file, err := bootreport.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Size() != bootreport.Size || before.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", before, err)
	}
	if _, ok := bootreport.Read(root); ok {
		t.Error("a report is read before there is one")
	}
	if err := file.Set(bootreport.Report{Reason: bootreport.UserDataFailed, Message: "user data, part 1: exit status 4\nlast lines: no \x1b[31mdisk", Since: noon}); err != nil {
		t.Fatal(err)
	}
	got, ok := bootreport.Read(root)
	want := bootreport.Report{Reason: bootreport.UserDataFailed, Message: "user data, part 1: exit status 4 last lines: no ?[31mdisk", Since: noon.UTC().Truncate(time.Second)}
	if !ok || got != want {
		t.Errorf("read %+v, %v", got, ok)
	}
	for _, long := range []string{`"`, `\\`, "<", "x\u2028", "€", "\xff"} { // characters that are longer in JSON
		if err := file.Set(bootreport.Report{Reason: bootreport.BootFailed, Message: strings.Repeat(long, bootreport.Size), Since: noon}); err != nil {
			t.Fatal(err)
		}
		if got, ok := bootreport.Read(root); !ok || len(got.Message) < bootreport.MaxMessage-8 {
			t.Errorf("of many %q was read %q, %v", long, got.Message, ok)
		}
	}
	if err := file.Clear(bootreport.DiskFull); err != nil {
		t.Fatal(err)
	}
	if _, ok := bootreport.Read(root); !ok {
		t.Error("the end of another thing ended it")
	}
	if err := file.Clear(); err != nil {
		t.Fatal(err)
	}
	if got, ok := bootreport.Read(root); ok {
		t.Errorf("after its end there is %+v", got)
	}
	after, err := os.Stat(path)
	if err != nil || after.Size() != bootreport.Size || !os.SameFile(before, after) {
		t.Errorf("the file was replaced: %v, %v", after, err)
	}
}

// Root on the machine may put anything there. Its host is not held by it, and prints nothing that a terminal would
// obey.
func TestHostileReport(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a pipe":         func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a link away":    func(path string) error { return os.Symlink("/etc/hostname", path) },
		"holes":          func(path string) error { return sized(path, 1<<40) },
		"no JSON":        func(path string) error { return os.WriteFile(path, []byte("failed"), 0o600) },
		"no reason":      func(path string) error { return os.WriteFile(path, []byte(`{"message":"x"}`), 0o600) },
		"nothing to say": func(path string) error { return os.WriteFile(path, []byte(`{"reason":"DiskFull"}`), 0o600) },
	} {
		root, path := disk(t)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		if got, ok := bootreport.Read(root); ok {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	root, path := disk(t)
	raw, err := json.Marshal(bootreport.Report{Reason: "Ready", Message: "\x1b[2J" + strings.Repeat("ä", bootreport.MaxMessage/2) + "€"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	got, ok := bootreport.Read(root)
	if !ok || got.Reason != bootreport.BootFailed || strings.Contains(got.Message, "\x1b") || len(got.Message) > bootreport.MaxMessage || !strings.HasSuffix(got.Message, "ä…") {
		t.Errorf("read %+v, %v", got, ok)
	}
}

// Create does not follow a link that the machine's last boot left.
func TestCreateFollowsNoLink(t *testing.T) {
	_, path := disk(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if _, err := bootreport.Create(path); err == nil {
		t.Error("it was followed")
	}
}

func sized(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}
