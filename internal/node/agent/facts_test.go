// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// stubResolver is the file that systemd-resolved 252 puts in place of /etc/resolv.conf, without its comments.
const stubResolver = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch ec2.internal\n"

// Pods cannot reach the stub of systemd-resolved, so the kubelet gives them the name servers behind it.
func TestResolverBehindTheStub(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "stub"), []byte(stubResolver))
	servers, domains, err := resolver(filepath.Join(root, "stub"))
	if err != nil || len(domains) != 1 || domains[0] != "ec2.internal" {
		t.Fatalf("%q, %q, %v", servers, domains, err)
	}
	const behind = "/run/systemd/resolve/resolv.conf"
	if got := resolverConfig(root, servers); got != "" {
		t.Errorf("without systemd-resolved's own file: %q", got)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, behind)), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, behind), []byte("nameserver 10.0.0.2\n"))
	if got := resolverConfig(root, servers); got != behind {
		t.Errorf("behind the stub: %q", got)
	}
	if got := resolverConfig(root, []string{"10.0.0.2"}); got != "" {
		t.Errorf("without the stub: %q", got)
	}
}

// On a host that has not joined there is no directory of containerd's yet, and looking makes none: its disk may hold
// overlays nevertheless.
func TestOverlaysOfADirectoryToCome(t *testing.T) {
	const memory = "/dev/shm"                     // a tmpfs, which can be the upper layer of an overlay
	dir, err := os.MkdirTemp(memory, "overlays-") //nolint:usetesting // the test needs this file system
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if !overlays(filepath.Join(dir, "containerd")) {
		t.Error("a directory to come on a tmpfs can hold no overlays")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("looking left %v, %v", left, err)
	}
	if overlays("/does/not/exist/at/all") {
		t.Error("a directory without a file system can hold overlays")
	}
}

func TestHasIPTables(t *testing.T) {
	root := t.TempDir()
	if hasIPTables(root) {
		t.Error("iptables is found where nothing is")
	}
	if err := os.MkdirAll(filepath.Join(root, "sbin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "sbin/iptables"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if !hasIPTables(root) {
		t.Error("iptables is not found")
	}
}
