// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/statedir"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(sources []logs.Source) []string {
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	return names
}

func TestComponents(t *testing.T) {
	t.Parallel()
	state := statedir.Dir(t.TempDir())
	dir := state.Cluster("blue")
	if got := append(logs.Components(state), logs.ClusterComponents(dir)...); len(got) != 0 {
		t.Fatalf("found %v where nothing is", got)
	}
	write(t, state.Log("serve"), "x\n")
	if diff := cmp.Diff([]string{"serve"}, names(logs.Components(state))); diff != "" {
		t.Fatalf("the account's components (-want +got):\n%s", diff)
	}
	write(t, dir.Log("kube-apiserver"), "new\n")
	write(t, dir.Log("kube-apiserver")+".1", "old\n")
	write(t, dir.Audit(0), "c\n")
	write(t, filepath.Join(filepath.Dir(dir.Audit(0)), "audit-2026-11-20T11-00-00.000.log"), "b\n")
	write(t, filepath.Join(filepath.Dir(dir.Audit(0)), "audit-2026-11-20T10-00-00.000.log"), "a\n")
	write(t, dir.SecurityLog(0), "kept\n")
	write(t, filepath.Join(filepath.Dir(dir.SecurityLog(0)), "security-00000001.log"), "kept before\n")
	found := logs.ClusterComponents(dir)
	if diff := cmp.Diff([]string{"audit", "kube-apiserver", "security"}, names(found)); diff != "" {
		t.Fatalf("components (-want +got):\n%s", diff)
	}
	expect(t, []string{"a", "b", "c"}, printed(t, logs.Config{Sources: found[:1], Tail: logs.All}))
	expect(t, []string{"old", "new"}, printed(t, logs.Config{Sources: found[1:2], Tail: logs.All}))
	expect(t, []string{"kept before", "kept"}, printed(t, logs.Config{Sources: found[2:], Tail: logs.All}))
	if size, at := found[1].Size(); size != 8 || time.Since(at) > time.Hour {
		t.Fatalf("%d bytes, written %s", size, at)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	dir, id := statedir.Dir(t.TempDir()), "i-0123456789abcdef0"
	if got := logs.Machine(dir, id); len(got) != 0 {
		t.Fatalf("found %v where nothing is", got)
	}
	zone, err := os.ReadFile("testdata/Etc-GMT-5")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir.Machine(id), "root", "etc", "localtime"), string(zone))
	write(t, filepath.Join(dir.MachineLogs(id), "kubelet.log"), "I1120 17:00:00.000000 1 x.go:1] second\n")
	write(t, filepath.Join(dir.MachineLogs(id), "node.log"), `{"time":"2026-11-20T11:59:59Z","msg":"first"}`+"\n")
	found := logs.Machine(dir, id)
	if diff := cmp.Diff([]string{"kubelet", "node"}, names(found)); diff != "" {
		t.Fatalf("logs (-want +got):\n%s", diff)
	}
	expect(t, []string{
		`node    | {"time":"2026-11-20T11:59:59Z","msg":"first"}`,
		`kubelet | I1120 17:00:00.000000 1 x.go:1] second`, // five hours ahead of UTC
	}, printed(t, logs.Config{Sources: found, Tail: logs.All}))
}

// Nor is a time zone to hold us that is a pipe, or has no end.
func TestMachineWhoseTimeZoneIsNone(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a large file":  func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
		"another thing": func(path string) error { return os.WriteFile(path, []byte("TZif"), 0o600) },
		"a directory":   func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, id := statedir.Dir(t.TempDir()), "i-0123456789abcdef0"
			zone := filepath.Join(dir.Machine(id), "root", "etc", "localtime")
			write(t, filepath.Join(dir.MachineLogs(id), "node.log"), "fine\n")
			if err := os.MkdirAll(filepath.Dir(zone), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := put(zone); err != nil {
				t.Fatal(err)
			}
			found := make(chan []logs.Source, 1)
			go func() { found <- logs.Machine(dir, id) }()
			select {
			case got := <-found:
				if len(got) != 1 || got[0].Location != time.UTC {
					t.Errorf("found %+v", got)
				}
			case <-time.After(30 * time.Second):
				t.Error("it holds the reader")
			}
		})
	}
}

// A program with root on a machine can make links and pipes of its logs. The host's files are not for it to show, nor
// we to be held.
func TestMachineLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	dir, id := statedir.Dir(t.TempDir()), "i-0123456789abcdef0"
	secret := filepath.Join(string(dir), "secret.log")
	write(t, secret, "secret\n")
	write(t, filepath.Join(dir.MachineLogs(id), "node.log"), "fine\n")
	if err := os.Symlink(secret, filepath.Join(dir.MachineLogs(id), "kubelet.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir.MachineLogs(id), "node.log.1")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir.MachineLogs(id), "containerd.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := logs.Machine(dir, id)
	if diff := cmp.Diff([]string{"node"}, names(found)); diff != "" {
		t.Fatalf("logs (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	if err := logs.Copy(t.Context(), &out, logs.Config{Sources: found, Tail: logs.All}); err == nil || bytes.Contains(out.Bytes(), []byte("secret")) {
		t.Fatalf("printed %q (error %v)", &out, err)
	}
	pipe := logs.Source{Name: "x", Path: filepath.Join(dir.MachineLogs(id), "containerd.log"), Location: time.UTC}
	if err := logs.Copy(t.Context(), &out, logs.Config{Sources: []logs.Source{pipe}, Tail: logs.All}); err == nil {
		t.Fatal("read a pipe as a log")
	}
	whole := filepath.Join(dir.Machine("i-0123456789abcdef1"), "root", "var")
	if err := os.MkdirAll(whole, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(string(dir), filepath.Join(whole, "log")); err != nil {
		t.Fatal(err)
	}
	if got := logs.Machine(dir, "i-0123456789abcdef1"); len(got) != 0 {
		t.Fatalf("followed a link out of the machine: %v", got)
	}
}
