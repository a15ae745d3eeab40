// SPDX-License-Identifier: Apache-2.0

package systemdtest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/systemd"
	"muster.dev/muster/internal/platform/systemd/systemdtest"
)

func TestFake(t *testing.T) {
	var told []string
	f := &systemdtest.Fake{
		Root:    t.TempDir(),
		Started: func(unit string) { told = append(told, "started "+unit) },
		Stopped: func(unit string) { told = append(told, "stopped "+unit) },
	}
	ctx := t.Context()
	if err := f.Do(ctx, systemd.Start, "a.service"); err == nil {
		t.Error("a unit that does not exist was started")
	}
	dir := filepath.Join(f.Root, "etc/systemd/system")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.service"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if units, err := f.ShowAll(ctx, "a.service", "b.service"); err != nil || !units[0].Exists() || units[0].Outdated || units[1].Exists() {
		t.Errorf("units %+v, error %v", units, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.service"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if unit, err := f.Show(ctx, "a.service"); err != nil || !unit.Outdated {
		t.Errorf("unit %+v, error %v", unit, err)
	}
	if err := f.Do(ctx, systemd.Start, "a.service"); err == nil {
		t.Error("a unit was started that nobody had reloaded")
	}
	for _, verb := range []systemd.Verb{systemd.Reload, systemd.Enable, systemd.Start, systemd.Start, systemd.Restart} {
		units := []string{"a.service"}
		if verb == systemd.Reload {
			units = nil
		}
		if err := f.Do(ctx, verb, units...); err != nil {
			t.Fatal(err)
		}
	}
	if unit, err := f.Show(ctx, "a.service"); err != nil || !unit.Active() || unit.UnitFileState != "enabled" || len(f.Units()) != 1 {
		t.Errorf("unit %+v, error %v, %d units", unit, err, len(f.Units()))
	}
	if err := f.Do(ctx, systemd.Stop, "a.service"); err != nil {
		t.Fatal(err)
	}
	want := []string{"started a.service", "stopped a.service", "started a.service", "stopped a.service"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	broken := errors.New("broken")
	f.Before = func(what string) error {
		if what == "start a.service" {
			return broken
		}
		return nil
	}
	if err := f.Do(ctx, systemd.Start, "a.service"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if unit, err := f.Show(ctx, "a.service"); err != nil || unit.Active() {
		t.Error("what failed was done")
	}
}
