// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/render"
)

// A file that somebody puts in the place of a join's is theirs: leave names it and lets it be.
func TestLeaveSparesWhatSomebodyChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		change func(w *world, path string)
	}{
		"a configuration":       {"/etc/kubernetes/kubelet/config.json", func(w *world, path string) { w.write(path, "mine") }},
		"a unit":                {"/etc/systemd/system/kubelet.service", func(w *world, path string) { w.write(path, "[Service]\n# mine") }},
		"a program":             {"/usr/local/bin/runc", func(w *world, path string) { w.write(path, "another runc") }},
		"a program of its size": {"/usr/local/bin/runc", func(w *world, path string) { w.write(path, strings.ToUpper("program runc")) }},
		"the link to one": {"/usr/local/bin/kubelet", func(w *world, path string) {
			_ = os.Remove(w.at(path))
			if err := os.Symlink("/opt/my/kubelet", w.at(path)); err != nil {
				w.t.Fatal(err)
			}
		}},
		"a link in place of a file": {"/usr/local/bin/ctr", func(w *world, path string) {
			_ = os.Remove(w.at(path))
			if err := os.Symlink("/opt/my/ctr", w.at(path)); err != nil {
				w.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mustRun(t, w.join)
			tc.change(w, tc.path)
			want := w.tree()[tc.path]
			mustRun(t, w.leave)
			if got := w.tree()[tc.path]; got != want || !strings.Contains(w.said(), "stay, as somebody has changed them since the join: "+tc.path+"\n") {
				t.Errorf("%s is %q, not %q; said:\n%s", tc.path, got, want, w.said())
			}
			if got := w.tree()["/etc/kubernetes/kube-proxy/config.yaml"]; got != "" {
				t.Errorf("other files stay, too: %q", got)
			}
		})
	}
}

// Authorities are replaced by the node's own watch when the cluster replaces them, so they are not taken for anybody
// else's.
func TestLeaveRemovesAuthoritiesThatWereTakenOver(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	mustRun(t, w.join)
	w.write(authority, "others")
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

// A ledger of an older muster knows no hashes: the files that it lists go, as they did then.
func TestLeaveWithALedgerWithoutHashes(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	mustRun(t, w.join)
	l, err := ReadLedger(w.root)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Hashes) < 10 || len(l.Hashes["/usr/local/bin/runc"]) != 1 || len(l.Hashes["/etc/eks/kubelet/environment"]) != 1 || l.Hashes[render.PathBootstrapKubeconfig] != nil {
		t.Errorf("the hashes are %v", l.Hashes)
	}
	l.Hashes = nil
	if err := l.save(w.root); err != nil {
		t.Fatal(err)
	}
	w.write("/etc/kubernetes/kubelet/config.json", "mine")
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

// A program of another version, installed by a join that was killed before it could be read, is the join's own.
func TestKilledWhileAProgramIsReplaced(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	mustRun(t, w.join)
	if err := os.WriteFile(filepath.Join(w.programs, "runc"), []byte("newer runc"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := w.host()
	w.crashAt = 0
	h.disk.before = func(what string) error {
		if strings.HasPrefix(what, "enable") {
			return errCrash
		}
		return nil
	}
	if _, err := h.Join(t.Context(), w.request()); err == nil {
		t.Fatal("it was not killed")
	}
	if got := w.tree()["/usr/local/bin/runc"]; !strings.HasSuffix(got, "newer runc") {
		t.Fatalf("runc is %q", got)
	}
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

func TestHashesThatAreRefused(t *testing.T) {
	for content, want := range map[string]string{
		`{"version": 1, "hashes": {"/etc/a/b": ["sha256:00"]}}`:                          "which it does not list",
		`{"version": 1, "files": ["/etc/a/b"], "hashes": {"/etc/a/b": ["sha256:00"]}}`:   "which is not a hash",
		`{"version": 1, "files": ["/etc/a/b"], "hashes": {"/etc/a/b": ["/etc/passwd"]}}`: "which is not a hash",
	} {
		if _, err := parseLedger([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", content, err, want)
		}
	}
}

// A file's size and time are its owner's to choose.
func TestEqualFilesHaveEqualContent(t *testing.T) {
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	large := bytes.Repeat([]byte("x"), 2*chunk+7)
	other := bytes.Clone(large)
	other[len(other)-1] = 'y'
	original := put("original", large)
	for name, tc := range map[string]struct {
		content []byte
		want    bool
	}{
		"the same": {large, true}, "the last byte differs": {other, false}, "shorter": {large[:chunk], false}, "nothing": {nil, false},
	} {
		if got, err := equalFiles(original, put("copy", tc.content)); err != nil || got != tc.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if got, err := equalFiles(put("a", nil), put("b", nil)); err != nil || !got {
		t.Errorf("two that are empty: %t, %v", got, err)
	}
	if _, err := equalFiles(original, filepath.Join(dir, "none")); err == nil {
		t.Error("what is not there is equal")
	}
}

// The holder of a lock on a directory that everybody can read keeps no join from going on.
func TestALockOnVarLibKeepsNobodyOut(t *testing.T) {
	w := newWorld(t)
	dir, err := os.Open(w.at("/var/lib"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	mustRun(t, w.join)
}

// A containerd that was there may have had pods of another life of the host.
func TestLeaveRemovesPodsOfThisLifeOnly(t *testing.T) {
	w := newWorld(t)
	w.containerd = true
	began := time.Now().Truncate(time.Second)
	mustRun(t, w.join)
	mustRun(t, w.leave)
	if w.removedSince.Before(began) || w.removedSince.After(time.Now()) {
		t.Errorf("pods since %s are removed; the join began at %s", w.removedSince, began)
	}
	w = newWorld(t)
	mustRun(t, w.join)
	mustRun(t, w.leave)
	if !w.removedSince.IsZero() {
		t.Errorf("of a containerd of its own, only pods since %s are removed", w.removedSince)
	}
}
