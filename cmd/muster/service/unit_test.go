// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/serviceunit"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/systemd/systemdtest"
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

// Systemd has stopped trying to start an installation before that is taken down: afterwards it may be back.
func TestSystemdIsToldFirst(t *testing.T) {
	for _, remove := range []bool{false, true} {
		root, dir := t.TempDir(), statedir.Dir(t.TempDir())
		var said bytes.Buffer
		var asked []string
		fake := &systemdtest.Fake{Root: root, Before: func(what string) error {
			asked = append(asked, strings.Fields(what)[0]+" after "+said.String())
			return nil
		}}
		host, unit := serviceunit.Host{Root: root, IsRoot: true, Systemd: fake}, serviceunit.Unit{State: dir, Program: "/opt/muster/bin/muster"}
		if _, err := host.Install(t.Context(), unit); err != nil {
			t.Fatal(err)
		}
		asked = nil
		o := &terminal.Options{Streams: terminal.Streams{Out: &said, Err: &said}}
		if err := takeDown(t.Context(), o, dir, host, unit, remove); err != nil || said.Len() == 0 {
			t.Errorf("removed %t: %v, %q", remove, err, said.String())
		}
		if asked[0] != "stop after " {
			t.Errorf("removed %t: systemd was asked to %q", remove, asked)
		}
		if installed, err := host.Installed(unit); installed == remove || err != nil {
			t.Errorf("removed %t: installed %t, %v", remove, installed, err)
		}
	}
}
