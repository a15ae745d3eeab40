// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRecord(t *testing.T) {
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	once, err := record(speedHeader, "2026-11-24", commit, []speedRatio{{joinsCPU, 10, 14}, {upWall, 8, 8.2}})
	if err != nil {
		t.Fatal(err)
	}
	both, err := record(once, "2026-11-25", other, []speedRatio{{joinsCPU, 10, 11}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := record(both, "2026-11-24", commit, []speedRatio{{joinsCPU, 10, 13}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want string }{
		"a commit": {once, speedHeader + "2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tjoins: CPU seconds\t1.40\n" +
			"2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tup: seconds\t1.02\n"},
		"the next": {both, once + "2026-11-25\tbbbbbbbbbbbb\t144cca22d5e4\tjoins: CPU seconds\t1.10\n"},
		"the first again": {again, speedHeader + "2026-11-25\tbbbbbbbbbbbb\t144cca22d5e4\tjoins: CPU seconds\t1.10\n" +
			"2026-11-24\taaaaaaaaaaaa\t144cca22d5e4\tjoins: CPU seconds\t1.30\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%swant:\n%s", name, c.got, c.want)
		}
	}
	for name, kept := range map[string]string{"empty": "", "another header": "date\tcommit\n", "a line cut off": speedHeader + "2026-11-24\taaaaaaaaaaaa\n"} {
		if _, err := record(kept, "2026-11-24", commit, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProgramsOfBoth(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "bin")
	for _, name := range []string{"kubernetes", "muster", "muster-egress", "cni/bridge", "images/coredns.tar", "images/metrics-server.tar", "addons/traefik.tar"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("kubernetes", filepath.Join(from, "kubelet")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "bin")
	if err := os.Symlink(from, link); err != nil {
		t.Fatal(err)
	}
	if err := linkTree(link, to, func(name string) bool { return shared([]string{"images/coredns"}, name) }); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := filepath.WalkDir(to, func(file string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(to, file)
			got = append(got, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"cni/bridge", "images/coredns.tar", "kubelet", "kubernetes"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if target, err := os.Readlink(filepath.Join(to, "kubelet")); err != nil || target != "kubernetes" {
		t.Errorf("kubelet leads to %q, %v; a machine has nothing but this directory", target, err)
	}
}
