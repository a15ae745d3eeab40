// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// A machine ends although a process of it waits for a file system whose program does not end (FUSE), and cannot be
// killed.
func TestEndOfAProcessThatHangs(t *testing.T) {
	p, _ := launchIsolated(t)
	const id, at = machinetest.First, "/mnt"
	pid, _, err := p.find(id)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("this kernel has no FUSE:", err)
	}
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(held) }()
	done := make(chan error, 1)
	go host.OnThread(func() {
		done <- enter(held, pid, userns.IDs{}, func() error {
			return unix.Mount("test", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%[2]d", connection, 1<<29))
		})
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	waits := exec.CommandContext(t.Context(), "nsenter", "--target="+strconv.Itoa(pid), "--all", "stat", at+"/file")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the machine is removed, whatever has become of it
		_ = unix.Close(connection)
		_ = waits.Wait()
	})
	request := make([]byte, 1<<18)
	for range 2 { // the first request is how it begins; the process waits for the second one, and cannot be killed
		if _, err := unix.Read(connection, request); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 16+64) // struct fuse_init_out: version 7.31, and how much may be written at once
		binary.LittleEndian.PutUint32(answer, 16+64)
		copy(answer[8:16], request[8:16])
		binary.LittleEndian.PutUint32(answer[16:], 7)
		binary.LittleEndian.PutUint32(answer[20:], 31)
		binary.LittleEndian.PutUint32(answer[36:], 4096)
		if binary.LittleEndian.Uint32(request[4:]) != 26 { // FUSE_INIT
			break
		}
		if _, err := unix.Write(connection, answer); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	if err := p.Stop(t.Context(), id); err != nil {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	if _, running, err := p.find(id); err != nil || running {
		t.Errorf("it runs: %t, %v", running, err)
	}
}
