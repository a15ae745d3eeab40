// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// onDisk is the credential of node a, good for so long.
func onDisk(t *testing.T, left time.Duration) credential {
	t.Helper()
	w := newWatched(t)
	w.certificate("client", left)
	w.certificate("server", left)
	return credential{dir: w.CertDir, kubeconfig: w.Kubeconfig}
}

// A machine has joined if it holds a certificate of its own; with a copy of another's it has not.
func TestJoinedIsByItsOwnCertificate(t *testing.T) {
	now := time.Now()
	c := onDisk(t, time.Hour)
	if !c.joined("a", now) || !c.joined(" A ", now) {
		t.Error("with its own certificate the node has not joined")
	}
	if c.joined("b", now) || c.joined("", now) {
		t.Error("another node's certificate is taken for its own")
	}
	if c.joined("a", now.Add(2*time.Hour)) {
		t.Error("an expired certificate is good")
	}
	if err := os.Remove(c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	if c.joined("a", now) {
		t.Error("without a kubeconfig the node has joined")
	}
}

// The disk of one machine in another does not make it that one: what it is known by is set aside, and that is said. It
// comes back if the machine is that node after all, and goes when it has joined as another.
func TestACopiedDiskIsNotTheOriginal(t *testing.T) {
	var said string
	say := func(what string) { said += what }
	quiet := func(what string) { t.Errorf("said %q", what) }
	for name, left := range map[string]time.Duration{"good": time.Hour, "expired": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			c := onDisk(t, left)
			before, err := os.ReadDir(c.dir)
			if err != nil {
				t.Fatal(err)
			}
			said = ""
			if err := c.disown("b", time.Now(), say); err != nil || !strings.Contains(said, "that of system:node:a, and this machine is node b") {
				t.Errorf("%v; said %q", err, said)
			}
			if seen, err := os.ReadDir(c.dir); err != nil || len(seen) > 0 || exists(c.kubeconfig) {
				t.Errorf("the kubelet sees %v, %v", seen, err)
			}
			if joined, err := c.regain("b", time.Now(), quiet); err != nil || joined {
				t.Errorf("joined as b: %t, %v", joined, err)
			}
			put(t, filepath.Join(c.dir, "kubelet-client.key.tmp"), []byte("of an attempt"))
			said = ""
			joined, err := c.regain("a", time.Now(), say)
			if after, readErr := os.ReadDir(c.dir); err != nil || joined != (left > 0) || !exists(c.kubeconfig) || len(after) != len(before) || !strings.Contains(said, "node a again") {
				t.Errorf("back as a: joined %t, %v; it has %v, %v; said %q", joined, err, after, readErr, said)
			}
			if err := c.disown("b", time.Now(), say); err != nil {
				t.Fatal(err)
			}
			if err := c.forgetOthers(); err != nil || exists(c.aside("a")) {
				t.Errorf("what is another's is still there: %v", err)
			}
		})
	}
	c := onDisk(t, time.Hour)
	if err := c.disown("a", time.Now(), quiet); err != nil || !exists(c.kubeconfig) {
		t.Errorf("its own: %v", err)
	}
	if joined, err := c.regain("a", time.Now(), quiet); err != nil || !joined {
		t.Errorf("its own: joined %t, %v", joined, err)
	}
	nothing := credential{dir: t.TempDir(), kubeconfig: filepath.Join(t.TempDir(), "none")}
	if err := nothing.disown("a", time.Now(), quiet); err != nil {
		t.Error(err)
	}
	if joined, err := nothing.regain("a", time.Now(), quiet); err != nil || joined {
		t.Errorf("nothing: joined %t, %v", joined, err)
	}
}

// A faulty drop-in does not take a machine's certificate: it may have no other way in. Settings that make it another
// node do so when it boots, and not before.
func TestAWrongDropInTakesNothing(t *testing.T) {
	a := newAgent(t)
	a.credential = onDisk(t, time.Hour)
	a.instance = render.Instance{ID: "i-0000000000000000a", PrivateIP: netip.MustParseAddr("192.168.64.11"), PrivateDNSName: "b"}
	refused, wrong := complete(t), complete(t)
	refused.Join.NodeName = "no_name"
	wrong.Kubelet.Flags = []string{"--kubeconfig=/mine"}
	for name, spec := range map[string]nodeconfig.Spec{"refused": refused, "not to be rendered": wrong} {
		err := a.become(t.Context(), told{dropIns: []nodeconfig.Source{{Name: "drop-in", Content: document(t, spec)}}})
		if err == nil || !a.credential.joined("a", time.Now()) {
			t.Errorf("%s: %v; it has its certificate: %t", name, err, a.credential.joined("a", time.Now()))
		}
	}
	a.booted = true // and the drop-in is faulty besides: a test must not come as far as to write this machine's files
	err := a.become(t.Context(), told{dropIns: []nodeconfig.Source{{Name: "drop-in", Content: document(t, wrong)}}})
	if err == nil || !strings.Contains(err.Error(), "it becomes another node when it boots") || !a.credential.joined("a", time.Now()) {
		t.Errorf("another name: %v", err)
	}
}

// A file that somebody opened to others is closed again, and that is said.
func TestLoosenedFilesAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	files := []render.File{{Path: path, Mode: 0o600, Content: []byte("secret")}}
	var said []string
	say := func(what string) { said = append(said, what) }
	for _, loose := range []bool{false, true, false} {
		if loose {
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		said = nil
		if err := WriteFiles(files, true, say); err != nil || len(said) > 0 != loose {
			t.Errorf("%v, said %q", err, said)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}

// The token is used up when the certificate is there, and the machine boots as the same node without it.
func TestTheTokenIsForgotten(t *testing.T) {
	settled := complete(t)
	byHash := nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{APIServerEndpoint: settled.Cluster.APIServerEndpoint, CIDR: "10.100.0.0/16"},
		Join:    nodeconfig.Join{Token: settled.Join.Token, CACertHashes: []string{"sha256:" + strings.Repeat("0", 64)}, NodeName: "mine"},
	}
	for name, left := range map[string]nodeconfig.Spec{"told all": settled, "found by a hash": byHash} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			path := filepath.Join(a.config.DropInDir, initDropIn)
			put(t, path, document(t, left))
			for i, want := range []bool{true, false} { // done again it changes nothing
				dropIns, err := readDropIns(t.Context(), a.config.DropInDir)
				if err != nil {
					t.Fatal(err)
				}
				if forgotten, err := forgetToken(told{dropIns: dropIns}, a.config.DropInDir, settled); err != nil || forgotten != want {
					t.Fatalf("time %d: forgotten %t, %v", i+1, forgotten, err)
				}
			}
			raw, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(raw), "0123456789abcdef") {
				t.Errorf("left is %s, %v", raw, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: path, Content: raw}}, false)
			if err != nil || merged.Spec.Join.NodeName != left.Join.NodeName {
				t.Fatalf("%+v, %v", merged.Spec.Join, err)
			}
			if _, err := settle(t.Context(), merged.Spec, true, func(string) {}); err != nil {
				t.Errorf("without the token it does not boot: %v", err)
			}
		})
	}
	a := newAgent(t)
	if forgotten, err := forgetToken(told{}, a.config.DropInDir, settled); err != nil || forgotten {
		t.Errorf("where init has left nothing: %t, %v", forgotten, err)
	}
}

// A host's kubelet loses its token when it has a certificate, and not before.
func TestTheBootstrapKubeconfigIsForgotten(t *testing.T) {
	c := onDisk(t, time.Hour)
	path := filepath.Join(t.TempDir(), "bootstrap-kubeconfig")
	put(t, path, []byte("token"))
	bare := credential{dir: t.TempDir(), kubeconfig: c.kubeconfig}
	ended, cancel := contextThatEnded(t)
	defer cancel()
	if forgotten, err := bare.forgetBootstrap(ended, path); err != nil || forgotten || !exists(path) {
		t.Errorf("without a certificate: %t, %v", forgotten, err)
	}
	for range 2 {
		if forgotten, err := c.forgetBootstrap(t.Context(), path); err != nil || !forgotten || exists(path) {
			t.Errorf("with one: %t, %v", forgotten, err)
		}
	}
}
