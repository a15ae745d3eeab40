// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/nodeconfig"
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

// The disk of one machine in another does not make it that one: what it is known by is removed, and that is said.
func TestACopiedDiskIsNotTheOriginal(t *testing.T) {
	for name, left := range map[string]time.Duration{"good": time.Hour, "expired": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			c := onDisk(t, left)
			said := ""
			joined, err := c.ownCredential("b", time.Now(), func(what string) { said += what })
			if err != nil || joined || !strings.Contains(said, "that of system:node:a, and this machine is node b") {
				t.Errorf("joined %t, %v; said %q", joined, err, said)
			}
			if left, err := os.ReadDir(c.dir); err != nil || exists(c.kubeconfig) {
				t.Errorf("left are %v, %v", left, err)
			} else {
				for _, file := range left {
					t.Errorf("%s is left", file.Name())
				}
			}
		})
	}
	c := onDisk(t, time.Hour)
	joined, err := c.ownCredential("a", time.Now(), func(what string) { t.Errorf("said %q", what) })
	if err != nil || !joined || !exists(c.kubeconfig) {
		t.Errorf("its own: joined %t, %v", joined, err)
	}
	nothing := credential{dir: t.TempDir(), kubeconfig: filepath.Join(t.TempDir(), "none")}
	if joined, err := nothing.ownCredential("a", time.Now(), func(what string) { t.Errorf("said %q", what) }); err != nil || joined {
		t.Errorf("nothing: joined %t, %v", joined, err)
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
