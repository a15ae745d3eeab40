// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The watch begins when the host has joined, and is the first to end: it would start the kubelet again.
func TestTheWatchComesLastAndGoesFirst(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	calls := w.units.Calls()
	if !slices.Equal(calls[len(calls)-1:], []string{"restart " + watchUnit}) {
		t.Errorf("the last call of a join is %s", calls[len(calls)-1])
	}
	l, err := ReadLedger(w.root)
	if err != nil || !slices.Contains(l.Units, watchUnit) || !l.lists("/usr/local/bin/muster") || !l.lists(unitDir+"/"+watchUnit) {
		t.Errorf("the ledger has units %v, files %v, %v", l.Units, l.Files, err)
	}
	mustRun(t, w.join)
	if again := w.units.Calls()[len(calls):]; slices.Contains(again, "restart "+watchUnit) || !slices.Contains(again, "start "+watchUnit) {
		t.Errorf("a second join calls %v", again)
	}
	calls = w.units.Calls()
	mustRun(t, w.leave)
	if got := w.units.Calls()[len(calls):][:2]; !slices.Equal(got, []string{"stop " + watchUnit, "disable " + watchUnit}) {
		t.Errorf("a leave begins with %v", got)
	}
}

// systemd itself finds no fault with the unit, and finds it closed enough.
func TestSystemdReadsTheWatch(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze is not here: tools/testneeds.sh installs what tests need")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "muster"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := newWorld(t).host()
	h.BinDir = dir
	unit := filepath.Join(dir, watchUnit)
	if err := os.WriteFile(unit, h.watchArtifact().content, 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(h.watchArtifact().content), "BINDIR") {
		t.Error("the unit does not say where muster is")
	}
	for _, args := range [][]string{{"verify", "--man=no", "--recursive-errors=no", unit}, {"security", "--offline=yes", "--threshold=35", unit}} {
		cmd := exec.CommandContext(t.Context(), analyze, args...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		out, err := cmd.CombinedOutput()
		if err != nil || args[0] == "verify" && len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
