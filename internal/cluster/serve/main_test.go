// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/statedir"
)

// newDir makes a state directory with a path short enough for sockets.
func newDir(t *testing.T) statedir.Dir {
	t.Helper()
	path, err := os.MkdirTemp("/tmp", "m") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	dir := statedir.Dir(path)
	for _, path := range []string{dir.Run(), dir.PKI()} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newCluster makes the directory of a cluster.
func newCluster(t *testing.T) statedir.Cluster {
	t.Helper()
	cluster := newDir(t).Cluster("blue")
	if err := os.MkdirAll(cluster.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
