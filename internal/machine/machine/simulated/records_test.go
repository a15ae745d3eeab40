// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/statedir"
)

// roll is a state directory with simulated machines and a simulator that looks at it.
type roll struct {
	*Simulator
	provider *Provider
}

func newRoll(t testing.TB) roll {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := New(Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return roll{&Simulator{config: SimulatorConfig{State: dir, Cluster: "Blue", Log: slog.New(slog.DiscardHandler)}}, provider}
}

func (r roll) launch(t testing.TB, i int) string {
	t.Helper()
	id := fmt.Sprintf("i-%017x", i)
	if _, err := r.provider.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: []byte("#!/bin/sh\n"), Cluster: "Blue"}); err != nil {
		t.Fatal(err)
	}
	return id
}

// age makes the directory look as if it had last changed a while ago.
func (r roll) age(t testing.TB, ago time.Duration) {
	t.Helper()
	if err := os.Chtimes(r.config.State.Machines(), time.Time{}, time.Now().Add(-ago)); err != nil {
		t.Fatal(err)
	}
}

func (r roll) want(t *testing.T, news bool, running map[string]context.CancelFunc, ids ...string) {
	t.Helper()
	found, is, err := r.records(running)
	var have []string
	for id := range found {
		have = append(have, id)
	}
	slices.Sort(have)
	if err != nil || is != news || !slices.Equal(have, ids) {
		t.Errorf("machines %v, news %v, %v; want %v, %v", have, is, err, ids, news)
	}
}

// A directory of machines that has not changed is not read again. A machine that is not complete yet is waited for, and
// a change right after a look is seen although file systems' clocks are coarse.
func TestUnchangedDirectoryIsNotRead(t *testing.T) {
	r := newRoll(t)
	r.want(t, true, nil)
	first := r.launch(t, 1)
	r.want(t, true, nil, first)
	running := map[string]context.CancelFunc{first: nil}
	r.want(t, true, running, first) // it changed within the last second: there may be more
	r.age(t, time.Minute)
	r.want(t, true, running, first)
	r.want(t, false, running)
	r.want(t, false, running)

	second := fmt.Sprintf("i-%017x", 2)
	if err := os.Mkdir(r.config.State.Machine(second), 0o700); err != nil {
		t.Fatal(err)
	}
	r.age(t, 40*time.Second)
	r.want(t, true, running, first)
	r.want(t, true, running, first) // the second one is not complete
	if err := os.Remove(r.config.State.Machine(second)); err != nil {
		t.Fatal(err)
	}
	r.launch(t, 2)
	r.age(t, 30*time.Second)
	r.want(t, true, running, first, second)
	r.want(t, false, running)

	if err := r.provider.Stop(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	r.want(t, true, running, first)
	r.age(t, 28*time.Second)
	r.want(t, true, running, first)
	r.want(t, false, running)
	r.launch(t, 2)
	r.want(t, true, running, first, second)
	r.age(t, 26*time.Second)
	r.want(t, true, running, first, second)
	r.want(t, false, running)

	if err := r.provider.Terminate(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	r.age(t, 20*time.Second)
	r.want(t, true, running, second)
	if err := os.RemoveAll(filepath.Clean(r.config.State.Machines())); err != nil {
		t.Fatal(err)
	}
	r.want(t, true, running)
}

// BenchmarkLook is a look at 5,000 machines that all run, one of five in a second.
func BenchmarkLook(b *testing.B) {
	r, running := newRoll(b), map[string]context.CancelFunc{}
	for i := range 5000 {
		id := fmt.Sprintf("i-%017x", i)
		if err := os.MkdirAll(r.config.State.Machine(id), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.config.State.Machine(id), machine.UserDataFile), nil, 0o600); err != nil {
			b.Fatal(err)
		}
		running[id] = nil
	}
	for _, ago := range []time.Duration{-time.Hour, time.Hour} {
		b.Run(map[bool]string{true: "changing", false: "unchanged"}[ago < 0], func(b *testing.B) {
			r.age(b, ago)
			for b.Loop() {
				if _, _, err := r.records(running); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The simulator looks for a machine that is started before the mark of its stop is gone: a provider that is killed right
// after that, here by a mark that cannot be moved, leaves no machine silent that is said to run.
func TestSimulatorIsToldBeforeAStart(t *testing.T) {
	r := newRoll(t)
	id := r.launch(t, 1)
	mark := filepath.Join(r.config.State.Machine(id), stoppedFile)
	way := filepath.Join(r.config.State.Machine(id), bootFile)
	if err := errors.Join(os.WriteFile(mark, nil, 0o600), os.MkdirAll(filepath.Join(way, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	r.age(t, time.Minute)
	r.want(t, true, nil)
	r.want(t, false, nil)
	if _, err := r.provider.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: []byte("#!/bin/sh\n"), Cluster: "Blue"}); err == nil {
		t.Fatal("the mark is gone")
	}
	if err := errors.Join(os.RemoveAll(way), os.Rename(mark, way)); err != nil {
		t.Fatal(err)
	}
	r.want(t, true, nil, id)
}
