// SPDX-License-Identifier: Apache-2.0

// These tests make real machines: they need root, and the programs that make build builds.

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/sparsedisk"
)

// At the reserve of the host's disk the machine that grows is stopped, and boots again when there is room. The disk has
// a reserve that a program which writes without end does not use up between two looks.
func TestKeepReserve(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(sparsedisk.Make(t.Context(), dir+"/disk", 20<<30), sparsedisk.Mount(t.Context(), dir+"/disk", dir+"/host", "muster-test")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sparsedisk.Unmount(dir + "/host"); err != nil {
			t.Error(err)
		}
	})
	s := newSiteIn(t, filepath.Join(dir, "host"))
	p := s.isolating(t, 6)
	for _, id := range []string{machinetest.First, machinetest.Second} {
		mustLaunch(t, p, machine.LaunchRequest{ID: id, UserData: []byte("none"), OwnIDs: true})
	}
	ballast := filepath.Join(dir, "host", "ballast")
	now, err := roomOf(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	reserve(t, ballast, now.available-now.boots()-100<<20)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.KeepReserve(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(2 * reserveInterval) //nolint:forbidigo // it looks by the clock
	filler := filepath.Join(s.dir.Machine(machinetest.First), rootDir, "filler")
	go s.fillWhileRunning(filler, machinetest.First)
	eventually(t, "the machine that fills the disk is stopped", func() error {
		running, err := Running(s.dir)
		if err == nil && (running[machinetest.First] != 0 || running[machinetest.Second] == 0) {
			err = fmt.Errorf("%v run", running)
		}
		return err
	})
	if now, err := roomOf(s.dir); err != nil || now.available < now.reserve()/4 {
		t.Errorf("the host has %d bytes left of a reserve of %d, %v", now.available, now.reserve(), err)
	}
	request := machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none"), OwnIDs: true}
	if _, err := p.Launch(t.Context(), request); !errors.Is(err, machine.ErrDiskReserve) || strings.Contains(err.Error(), "\n") {
		t.Errorf("launching it again: %v", err)
	}
	go s.fillWhileRunning(filepath.Join(s.dir.Machine(machinetest.Second), rootDir, "filler"), machinetest.Second)
	eventually(t, "the other one is stopped when it goes on", func() error {
		running, err := Running(s.dir)
		if err == nil && len(running) != 0 {
			err = fmt.Errorf("%v run", running)
		}
		return err
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	mustLaunch(t, p, request)
	if _, err := os.Lstat(filepath.Join(s.dir.Machine(machinetest.First), reserveFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still marked: %v", err)
	}
	if info, err := os.Stat(filler + "0"); err != nil || info.Size() == 0 {
		t.Errorf("what it had written: %v, %v", info, err)
	}
}

// fillWhileRunning writes as a program of the machine would, which ends with it.
func (s *site) fillWhileRunning(path, id string) {
	for i := range 400 {
		if running, err := Running(s.dir); err != nil || running[id] == 0 || fill(path+strconv.Itoa(i), 4<<20) != nil {
			return
		}
	}
}

// reserve makes a file that takes room of a file system in a file, and none of the disk of the test's host.
func reserve(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, size), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func fill(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	part := make([]byte, 1<<20)
	for i := range part {
		part[i] = byte(i)
	}
	for ; size > 0 && err == nil; size -= int64(len(part)) {
		if _, err = file.Write(part); err == nil {
			err = file.Sync()
		}
	}
	return errors.Join(err, file.Close())
}
