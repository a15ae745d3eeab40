// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/cluster/machine"
	"muster.dev/muster/internal/cluster/machine/machinetest"
	"muster.dev/muster/internal/platform/userns"
)

// Root on a machine with ids of its own is nobody on the host, and the machine runs containerd.
func TestUserNamespace(t *testing.T) {
	s := newSite(t)
	c := config(s.dir, s.binDir)
	c.IDs = func() (userns.IDs, error) { return userns.IDs{First: 1 << 29, Count: 4 << 16}, nil }
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := s.serve(t)
	t.Cleanup(stop)
	if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: userData(t), Type: "m5.large", OwnIDs: true}); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	pid, running, err := p.find(machinetest.First)
	if err != nil || !running {
		t.Fatalf("machine does not run: %v", err)
	}
	if got := strings.Fields(read(t, filepath.Join("/proc", strconv.Itoa(pid), "uid_map"))); strings.Join(got, " ") != "0 536870912 65536" {
		t.Errorf("ids: %v", got)
	}
	eventually(t, "containerd answers", func() error {
		if log := read(t, filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log")); !strings.Contains(log, "containerd answers") {
			return errors.New(log)
		}
		return nil
	})
	eventually(t, "the sandbox image is imported", func() error {
		_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "root/var/lib/muster/imported-pause"))
		return err
	})
	listener, err := p.Listen(machinetest.First, "/run/there/socket")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
