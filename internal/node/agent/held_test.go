// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/node/bootreport"
)

// diskOf is a machine's disk with files of a drill.
func diskOf(t *testing.T, files ...string) string {
	t.Helper()
	disk := t.TempDir()
	if err := os.MkdirAll(filepath.Join(disk, filepath.Dir(bootreport.HeldPrefix)), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if err := os.WriteFile(filepath.Join(disk, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// A program is held by its own file alone, from when the file is there until it is gone, and not beyond the end of the machine.
func TestHeld(t *testing.T) {
	t.Parallel()
	disk, log := diskOf(t), slog.New(slog.DiscardHandler)
	path := filepath.Join(disk, bootreport.HeldPrefix+"kubelet")
	if !mayRun(t.Context(), log, disk, "kubelet") {
		t.Fatal("it may not run without a drill")
	}
	ctx, end := context.WithCancel(t.Context())
	now := held(ctx, disk, "kubelet")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-now:
	case <-time.After(patience):
		t.Fatal("it is not ended")
	}
	if !mayRun(t.Context(), log, disk, "containerd") {
		t.Error("another program is held, too")
	}
	free := make(chan bool, 1)
	go func() { free <- mayRun(ctx, log, disk, "kubelet") }()
	select {
	case <-free:
		t.Fatal("it may run while it is held")
	case <-time.After(2 * heldInterval):
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	select {
	case may := <-free:
		if !may {
			t.Error("it may not run when the drill has ended")
		}
	case <-time.After(patience):
		t.Fatal("it waits on when the drill has ended")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end()
	if mayRun(ctx, log, disk, "kubelet") {
		t.Error("it may run on a machine that ends")
	}
	select {
	case <-held(ctx, disk, "containerd"):
		t.Error("a program is held that no drill holds")
	case <-time.After(2 * heldInterval):
	}
}

// A machine that boots forgets what drills left on its disk, and keeps all else.
func TestForgetDrills(t *testing.T) {
	t.Parallel()
	kept := "var/lib/muster/state"
	disk := diskOf(t, bootreport.HeldPrefix+"kubelet", bootreport.HeldPrefix+"containerd", bootreport.FillerPath, kept)
	for range 2 {
		if err := forgetDrills(disk); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(disk, filepath.Dir(kept)))
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(kept) {
		t.Errorf("%v, %v", left, err)
	}
	if isHeld(disk, "kubelet") || isHeld(disk, "containerd") {
		t.Error("a program is still held")
	}
}
