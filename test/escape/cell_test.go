// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/test/escape/prize"
	"muster.dev/muster/test/escape/verdict"
)

// cell is a machine in small: what a machine is made of, and nothing that runs on it but the program.
type cell struct {
	// Users gives it a user namespace of its own with a range of ids from Base.
	Users bool
	Base  int
	// Owner is the user of the host whom the namespace belongs to, and by whom the kernel counts what it takes; Base if
	// it is zero.
	Owner int
	// Each of these leaves out what keeps a user namespace closed.
	NoFilter, NoKeyring, NoLimits, DiskOfHost, Objects bool

	Dir, Program, Shared, Volume string
	Args                         []string
}

const (
	// cellVariable has the cell for the test's own program, which then is a stage of its start.
	cellVariable = "MUSTER_ESCAPE_CELL"
	// ids is how many a user namespace has.
	ids = 65536
	// A cell with a user namespace has less than the attacks ask for.
	diskOfCell, memoryOfCell, processesOfCell = 16 << 20, 96 << 20, 128
	mostDisk, mostMemory, mostProcesses       = 32 << 20, 128 << 20, 256
	// cellPatience is how long all attacks may take together.
	cellPatience = 3 * time.Minute
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(cellVariable); raw != "" {
		if err := stage(raw); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "cell:", err)
			os.Exit(usageExit)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == childWord { // the program tries an attack by running itself
		os.Exit(childMain(os.Args[2:]))
	}
	dir, err := os.MkdirTemp("", "escape-")
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built is the program as a story would build it, in a directory that TestMain removes.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programDir, "escape")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, output)
	}
	return program, nil
})

var programDir string

// plant makes prizes, and the program.
func plant(t *testing.T) (*prize.Planted, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes namespaces and secrets of the host's root: run it as root")
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	planted, err := prize.Plant(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := planted.Close(); err != nil {
			t.Errorf("taking the prizes back: %v", err)
		}
	})
	return planted, program
}

// run tries attacks in the cell.
func (c cell) run(t *testing.T, planted *prize.Planted, program string, args ...string) []verdict.Verdict {
	t.Helper()
	where := planted.Map
	where.Shared, where.Volume, where.Disk = "/shared", "/volume", "/tmp"
	if !c.Users || c.DiskOfHost {
		where.Disk = "/volume"
	}
	where.MostDisk, where.MostMemory, where.MostProcesses = mostDisk, mostMemory, mostProcesses
	c.Dir, c.Program, c.Shared, c.Volume = t.TempDir(), program, planted.Shared, planted.Volume
	c.Args = append(append([]string{"escape", "-o=json"}, where.Args()...), args...)
	owner := 0
	if c.Users {
		owner = c.Base
	}
	if err := os.Chown(planted.Volume, owner, owner); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), cellPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), cellVariable+"="+string(raw))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	order, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.limit(t, cmd.Process.Pid)
	_ = order.Close()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != gotOut {
			t.Fatalf("the cell: %v\n%s", err, stderr.String())
		}
	}
	all, err := verdict.Read(&stdout)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return all
}

// limit puts the cell's first process into control groups of its own.
func (c cell) limit(t *testing.T, pid int) {
	t.Helper()
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("muster-escape-test.%d.%d", os.Getpid(), pid)
	if err := groups.Create(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := groups.Remove(name, 10*time.Second); err != nil {
			t.Error(err)
		}
	})
	if c.Users && !c.NoLimits {
		if err := groups.Limit(name, host.Limits{Memory: memoryOfCell}); err != nil {
			t.Fatal(err)
		}
		for _, h := range groups.Hierarchies {
			if h.Unified && groups.Version() == 2 || slices.Contains(h.Options, "pids") {
				if err := os.WriteFile(filepath.Join(h.MountPoint, name, "pids.max"), []byte(strconv.Itoa(processesOfCell)), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := groups.Enter(name, pid); err != nil {
		t.Fatal(err)
	}
}
