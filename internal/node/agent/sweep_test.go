// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files that a killed program has left go when the machine boots, and nothing else does.
func TestWhatIsHalfDoneGoes(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	keep := []string{
		"/etc/.new-file", "/etc/eks/nodeadm.d/90-init.yaml", "/etc/kubernetes/linked", "/etc/kubernetes/pki/ca.crt", "/root/.new-file-1",
		"/var/lib/containerd/.new-file-1", "/var/lib/kubelet/kubeconfig", "/var/lib/kubelet/pki/kubelet-client-current.pem",
		"/var/lib/kubelet/pods/uid/.new-file-1", "/var/lib/muster/imported-pause", "/var/lib/muster/scripts-i-1",
	}
	gone := []string{
		"/etc/cni/net.d/.new-10-containerd-net.conflist-1", "/etc/containerd/.new-config.toml-1", "/etc/eks/nodeadm.d/.new-90-init.yaml-1",
		"/etc/kubernetes/kubelet/.new-config.json-1", "/var/lib/containerd/.overlay-1/upper/file", "/var/lib/kubelet/.new-bootstrap-kubeconfig-1",
		"/var/lib/kubelet/pki/.new-kubelet-client-2026-01-01-00-00-00.pem-1", "/var/lib/muster/.new-scripts-i-1-1", "/var/lib/muster/scripts/part-001",
	}
	others := filepath.Join(elsewhere, ".new-file-1")
	paths := []string{others}
	for _, path := range slices.Concat(keep, gone) {
		if path != "/etc/kubernetes/linked" {
			paths = append(paths, filepath.Join(root, path))
		}
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(root, "etc/kubernetes/linked")); err != nil {
		t.Fatal(err)
	}
	if err := sweep(root, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, path[len(root):])
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	if !slices.Equal(left, keep) || !exists(others) {
		t.Errorf("left is\n%q, not\n%q; elsewhere: %v", left, keep, exists(others))
	}
	if err := sweep(t.TempDir(), DefaultConfig()); err != nil {
		t.Errorf("on a machine that has nothing yet: %v", err)
	}
}
