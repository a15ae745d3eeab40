// SPDX-License-Identifier: Apache-2.0

package earlier

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProgramsOfBoth(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "bin")
	for _, name := range []string{"kubernetes", "muster", "muster-webhook-proxy", "muster-egress", "cni/bridge", "images/coredns.tar", "images/metrics-server.tar", "addons/traefik.tar"} {
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
	if shared([]string{"images/coredns"}, "muster-egress") || !shared([]string{"egress"}, "muster-egress") {
		t.Error("a way out is shared by a commit that has none, or is not by one that has")
	}
}
