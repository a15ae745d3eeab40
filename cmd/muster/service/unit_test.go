// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"os/exec"
	"testing"

	"muster.dev/muster/internal/platform/serviceunit"
)

// An installation without a unit needs no systemctl to be stopped or removed; with a unit, the lack of it is told.
func TestWithoutSystemctl(t *testing.T) {
	t.Setenv("PATH", "")
	root := t.TempDir()
	host := serviceunit.Host{Root: root, IsRoot: true, Systemd: manager()}
	unit := serviceunit.Unit{State: "/var/lib/muster", Program: "/opt/muster/bin/muster"}
	if err := host.Stopped(t.Context(), unit); err != nil {
		t.Errorf("without a unit: %v", err)
	}
	if removed, err := host.Uninstall(t.Context(), unit); removed || err != nil {
		t.Errorf("without a unit: removed %t, %v", removed, err)
	}
	if _, err := (serviceunit.Host{Root: root, IsRoot: true}).Install(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if err := host.Stopped(t.Context(), unit); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("with a unit: %v", err)
	}
}
