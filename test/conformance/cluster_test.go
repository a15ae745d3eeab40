// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// musterScript stands in for muster: it writes down how it was called, with what state, and what it read, and fails at
// what FAIL names.
const musterScript = `#!/bin/sh
echo "$(basename "$MUSTER_STATE_DIR") $*" >>"$CALLS"
case "$1 $2" in
"$FAIL"*) echo talk >&2; echo "Error: $1 failed" >&2; exit 1;;
"get machines") echo machine/i-1; echo machine/i-2;;
"exec "*) echo "read $(wc -c) bytes" >>"$CALLS";;
esac
`

// testCluster starts a cluster by the script. Its calls are in the file.
func testCluster(t *testing.T, failAt string) (c *cluster, calls func() string, err error) {
	t.Helper()
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(filepath.Join(bin, "muster"), []byte(musterScript), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("CALLS", log)
	t.Setenv("FAIL", failAt)
	c, err = startCluster(t.Context(), bin, "1.36", 2)
	if c == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the directories go that they write to
		for _, registry := range c.registries {
			_ = registry.Wait()
		}
	})
	return c, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}, err
}

func TestClusterFromUpToDown(t *testing.T) {
	c, calls, err := testCluster(t, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(images, []byte("seven b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.load(t.Context(), images, []byte("index")); err != nil {
		t.Fatal(err)
	}
	if err := c.end(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	got := calls()
	for _, want := range []string{
		"state up --version 1.36 --nodes 2 --issuer-host issuer.conformance.test --kubeconfig " + c.kubeconfig,
		"state exec i-1 -- ctr -n k8s.io images import --label io.cri-containerd.pinned=pinned -\nread 7 bytes",
		"state exec i-2 -- ctr -n k8s.io images import",
		`server = "http://127.0.0.1:5099"`,
		"/etc/containerd/certs.d/registry.k8s.io/hosts.toml",
		"state exec i-1 -- /run/conformance-registry -registry",
		"state exec i-2 -- /run/conformance-registry -registry",
		"read 5 bytes", // the index
		"state down --delete",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("muster was never called for %q:\n%s", want, got)
		}
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", c.dir, err)
	}
}

func TestClusterThatStaysUp(t *testing.T) {
	c, calls, err := testCluster(t, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.end(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(calls(), "down") {
		t.Errorf("the cluster that was to be kept was taken down:\n%s", calls())
	}
}

func TestClusterThatFails(t *testing.T) {
	for _, step := range []string{"up", "get", "exec", "down"} {
		t.Run(step, func(t *testing.T) {
			c, calls, err := testCluster(t, step)
			if err == nil {
				err = c.load(t.Context(), os.DevNull, []byte("index"))
			}
			if ended := c.end(t.Context(), false); ended != nil {
				err = ended
				if _, gone := os.Stat(c.dir); gone != nil {
					t.Errorf("what is needed to take the cluster down by hand is gone: %v", gone)
				}
			}
			if err == nil || step != "get" && !strings.Contains(err.Error(), "Error: "+step+" failed") {
				t.Errorf("error %v, want muster's own", err)
			}
			if !strings.Contains(calls(), "state down --delete") {
				t.Errorf("the cluster was not taken down:\n%s", calls())
			}
		})
	}
}
