// SPDX-License-Identifier: Apache-2.0

// A test here mounts something, which needs root.

package hostjoin

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Disks are prepared after everything that can be refused without them, and before anything is written; a host that has
// joined, and one that is only asked what it would do, keeps its own.
func TestStorageIsPreparedOnce(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	calls := 0
	r.Storage = func(context.Context, func(string)) error { calls++; return errors.New("a disk is in use") }
	if _, err := w.host().Plan(t.Context(), r); err != nil || calls > 0 {
		t.Fatalf("a plan prepared disks %d times, %v", calls, err)
	}
	before := w.tree()
	if _, err := w.host().Join(t.Context(), r); err == nil || !strings.Contains(err.Error(), "a disk is in use") {
		t.Fatalf("got %v", err)
	}
	compare(t, "the host", before, w.tree())
	r.Storage = func(_ context.Context, say func(string)) error { calls++; say("made an array"); return nil }
	for range 2 {
		if _, err := w.host().Join(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 2 {
		t.Errorf("disks were prepared %d times", calls)
	}
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

// Mounts that are there by then are not taken away: a directory on which a disk is mounted cannot be removed, and is
// not the join's.
func TestLeaveKeepsWhatDisksAreMountedAt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a directory: run it as root")
	}
	w := newWorld(t)
	r := w.request()
	const dir = "/var/lib/kubelet"
	r.Storage = func(context.Context, func(string)) error {
		w.mkdir("/data")
		w.mkdir(dir)
		return unix.Mount(w.at("/data"), w.at(dir), "", unix.MS_BIND, "")
	}
	t.Cleanup(func() { _ = unix.Unmount(w.at(dir), unix.MNT_DETACH) })
	if _, err := w.host().Join(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLedger(w.root)
	if err != nil || !slices.Contains(l.Trees, Tree{Path: dir, Keep: true}) {
		t.Errorf("the ledger has %v, %v", l.Trees, err)
	}
	mustRun(t, w.leave)
	if left, err := os.ReadDir(w.at("/data")); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
	if mounts, err := mountsBelow(w.at("/var/lib")); err != nil || !slices.Contains(mounts, w.at(dir)) {
		t.Errorf("mounted are %v, %v", mounts, err)
	}
}
