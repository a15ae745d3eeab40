// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/runner/runnertest"
	"muster.dev/muster/internal/platform/statedir"
)

// The management plane, which has no followers, takes other flags, another program and a newer minor by its front. Nothing
// else of it is started again.
func TestManagementPlane(t *testing.T) {
	t.Parallel()
	place, turns := runnertest.NewPlace(), new(Turns)
	account := component.Account{State: statedir.Dir(t.TempDir()), BinDir: "/bin", Places: portplan.AccountPorts{ManagementServer0: 20001, ManagementServer1: 20002}.Places()}
	flag, minor := 0, "1.36"
	for _, change := range []struct {
		what   string
		change func()
		want   string
	}{
		{"a new plane", func() {}, component.ManagementName(0)},
		{"a flag", func() { flag++ }, component.ManagementName(1)},
		{"a patch", func() { place.Replace(component.ManagementName(1)) }, component.ManagementName(0)},
		{"nothing", func() {}, component.ManagementName(0)},
		{"a minor", func() { minor = "1.37" }, component.ManagementName(1)},
	} {
		change.change()
		wanted := component.ManagementPlane(account)
		for i := range wanted.Servers {
			wanted.Servers[i].Path, wanted.Servers[i].Args = "/bin/"+minor+"/generic-apiserver", []string{fmt.Sprintf("--v=%d", flag)}
		}
		ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
		r, err := New(Config{Runner: place.New(ctx), Plane: wanted, Room: func() (int64, error) { return NewcomerMemory, nil }, Turns: turns, Began: func(string) {}, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = r.Begin(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := r.Run(ctx)
		if err != nil || outcome.Refusal != nil || !slices.Equal(outcome.Servers, []string{change.want}) {
			t.Errorf("%s: %+v, %v", change.what, outcome, err)
		}
		end()
	}
	if ends, want := place.Ends(), []string{component.ManagementName(0), component.ManagementName(1), component.ManagementName(0)}; !slices.Equal(ends, want) {
		t.Errorf("ended: %v, want %v", ends, want)
	}
	if _, err := os.Stat(statedir.Management(account.State).PlaneRecord()); err != nil {
		t.Error(err)
	}
}

// The record of a cluster's plane is none of the management plane's.
func TestRecordOfAnotherPlane(t *testing.T) {
	t.Parallel()
	for _, name := range []string{component.APIServerName(0), component.APIServerName(2)} {
		plane := component.ManagementPlane(component.Account{State: statedir.Dir(t.TempDir()), BinDir: "/bin"})
		slot, _ := component.ServerSlot(name)
		if err := os.WriteFile(plane.Record, fmt.Appendf(nil, `{"servers":[{"slot":%d,"phase":"Serving","spec":{"name":%q}}]}`, slot, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Plane: plane}); err == nil || !strings.Contains(err.Error(), "another plane") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
