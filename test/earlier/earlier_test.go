// SPDX-License-Identifier: Apache-2.0

package earlier

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsOfBoth(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"1.36/kubernetes", "1.36/kubectl", "muster", "muster-webhook-proxy", "muster-egress", "cni/bridge", "images/coredns.tar", "images/metrics-server.tar", "addons/traefik.tar"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("kubernetes", filepath.Join(from, "1.36/kubelet")), os.Symlink("1.36/kubectl", filepath.Join(from, "kubectl")), os.Symlink("1.36/kubelet", filepath.Join(from, "kubelet"))); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "bin")
	if err := os.Symlink(from, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		has           []string
		kubelet, want string
	}{
		{[]string{"images/coredns"}, "kubelet", "cni/bridge images/coredns.tar kubectl kubelet kubernetes"},
		{[]string{"images/coredns", "kubernetes/1.36"}, "1.36/kubelet", "1.36/kubectl 1.36/kubelet 1.36/kubernetes cni/bridge images/coredns.tar kubectl kubelet"},
	} {
		to := filepath.Join(t.TempDir(), "bin")
		if err := linkTree(link, to, func(name string) string { return place(c.has, name) }); err != nil {
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
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if target, err := os.Readlink(filepath.Join(to, c.kubelet)); err != nil || target != "kubernetes" {
			t.Errorf("kubelet leads to %q, %v; a machine has nothing but this directory", target, err)
		}
	}
	if shared([]string{"images/coredns"}, "muster-egress") || !shared([]string{"egress"}, "muster-egress") {
		t.Error("a way out is shared by a commit that has none, or is not by one that has")
	}
}
