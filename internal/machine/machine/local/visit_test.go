// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// A machine in which every path of a volume hangs keeps nobody waiting for long, gets few threads of the service, and
// has nothing done on it once nobody waits for that any more.
func TestAPathThatNeverAnswers(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("this kernel has no FUSE")
	}
	p, _ := launchIsolated(t)
	const id, volumes = machinetest.First, kubeletDir + "plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1"
	connection := hang(t, p, id, volumes)
	p.visits.time = 200 * time.Millisecond
	source, err := os.OpenFile(t.TempDir(), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	const target = volumes + "/u"
	for name, call := range map[string]func() error{
		"mounted": func() error { _, err := p.Mounted(id, source, target); return err },
		"mount":   func() error { return p.Mount(id, source, target, false) },
		"unmount": func() error { return p.Unmount(id, target) },
		"listen":  func() error { _, err := p.Listen(id, target+"/socket"); return err },
	} {
		begun := time.Now()
		if err := call(); !errors.Is(err, ErrHangs) || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begun))
		}
	}
	var group sync.WaitGroup
	for range 3 * maxVisits {
		group.Go(func() {
			if _, err := p.Mounted(id, source, target); !errors.Is(err, ErrHangs) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if hanging, users := p.visits.counts(id); hanging != maxVisits || users != maxVisits {
		t.Errorf("%d calls hang, %d are counted, want %d", hanging, users, maxVisits)
	}
	begun := time.Now()
	if _, err := p.Mounted(id, source, target); !errors.Is(err, ErrHangs) || time.Since(begun) > p.visits.time/2 {
		t.Errorf("one call more: %v after %v", err, time.Since(begun))
	}
	_ = connection.Close() // the program ends, and every path answers with an error
	eventually(t, "no call hangs", func() error {
		if hanging, users := p.visits.counts(id); hanging+users > 0 {
			return fmt.Errorf("%d calls hang, %d are counted", hanging, users)
		}
		return nil
	})
	if mounted, err := p.Mounted(id, source, kubeletDir+"other"); mounted || err != nil {
		t.Errorf("once it answers: mounted %v, %v", mounted, err)
	}
}

func (v *visits) counts(id string) (hanging, users int) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if m := v.of[id]; m != nil {
		return m.hanging, m.users
	}
	return 0, 0
}

// hang mounts a file system on a machine whose program never answers. It answers errors when the file is closed.
func hang(t *testing.T, p *Provider, id, at string) *os.File {
	t.Helper()
	if err := p.inside(id, func(*visit) error { return os.MkdirAll(at, 0o755) }); err != nil {
		t.Fatal(err)
	}
	pid, _, err := p.find(id)
	if err != nil {
		t.Fatal(err)
	}
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(held) }()
	connection, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	done := make(chan error, 1)
	go host.OnThread(func() {
		done <- enter(held, pid, userns.IDs{}, func() error {
			return unix.Mount("test", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", connection.Fd()))
		})
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return connection
}

// What is done once nobody waits any more is not committed.
func TestVisits(t *testing.T) {
	v := &visits{time: time.Millisecond}
	one, err := v.begin("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.wait(one, make(chan error)); !errors.Is(err, ErrHangs) {
		t.Error(err)
	}
	if err := one.commit(); !errors.Is(err, ErrHangs) {
		t.Errorf("committed after all: %v", err)
	}
	one.end()
	two, err := v.begin("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := two.commit(); err != nil {
		t.Error(err)
	}
	done := make(chan error, 1)
	done <- os.ErrExist
	two.end()
	if err := v.wait(two, done); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if hanging, users := v.counts("a"); hanging+users != 0 || len(v.of) != 0 {
		t.Errorf("%d hang, %d are counted, %d machines", hanging, users, len(v.of))
	}
}
