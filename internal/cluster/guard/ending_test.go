// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/host/hosttest"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/userns"
)

const envRole = "MUSTER_TEST_ROLE"

// TestMain is also a machine, and a service that visits one.
func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "":
		m.Run()
	case "machine":
		hang()
	case "service":
		visit()
	}
}

// hang is the first process of a machine: the program of a file system that never says whether a file is ready.
func hang() {
	connection, err := unix.Open(os.Args[2], unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("test", os.Args[1], "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", connection))
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("mounted")
	hosttest.ServeFuse(connection, hosttest.FusePoll)
}

// visit is a service that has its lock, with a thread that visits a machine as its root, and hangs there.
func visit() {
	if _, err := Lock(statedir.Dir(os.Args[1]).Lock()); err != nil {
		fmt.Println(err)
		return
	}
	first, _ := strconv.ParseUint(os.Args[3], 10, 32)
	root, err := unix.Open(filepath.Join("/proc", os.Args[2], "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	go host.OnThread(func() {
		err := userns.IDs{First: uint32(first), Count: 1}.Enter()
		fd := -1
		if err == nil {
			fd, err = unix.Openat(root, os.Args[4][1:], unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if err == nil {
			fmt.Println("visits")
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
		fmt.Println("visited:", err)
	})
	select {}
}

// startRole starts the test as a machine or a service, and returns what it prints.
func startRole(t *testing.T, cmd *exec.Cmd, role string, start func() error) *bufio.Scanner {
	t.Helper()
	cmd.Env = append(cmd.Env, envRole+"="+role)
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	if err := start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		_ = out.Close()
	})
	return bufio.NewScanner(out)
}

func await(t *testing.T, from *bufio.Scanner, line string) {
	t.Helper()
	var said []string
	for from.Scan() {
		if said = append(said, from.Text()); from.Text() == line {
			return
		}
	}
	t.Fatalf("waited for %q, and heard %q", line, said)
}

// startMachine starts what looks like a machine, with a file system that hangs at the directory.
func startMachine(t *testing.T, dir statedir.Dir, id string, ids userns.IDs, at string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	record, err := json.Marshal(machine.Record{
		ID: id, PrivateIP: netip.MustParseAddr("172.31.0.5"), PrivateDNSName: "ip-172-31-0-5.ec2.internal", Zone: "us-east-1a", IDs: ids,
	})
	if err == nil {
		err = errors.Join(os.MkdirAll(dir.Machine(id), 0o700), os.WriteFile(filepath.Join(dir.Machine(id), machine.RecordFile), record, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	device := filepath.Join(t.TempDir(), "fuse") // which root of the machine may open
	if err := errors.Join(unix.Mknod(device, unix.S_IFCHR, int(unix.Mkdev(10, 229))), os.Chmod(device, 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", at, device)
	cmd.Env, cmd.SysProcAttr = supervise.Marks(dir, local.ProcessName(id), ""), &syscall.SysProcAttr{}
	said := startRole(t, cmd, "machine", func() error { return userns.Start(cmd, ids, unix.CLONE_NEWPID, func() error { return nil }) })
	await(t, said, "mounted")
	return cmd, said
}

// world is a state directory with two machines, and a service that hangs in the first one.
type world struct {
	dir      statedir.Dir
	one, two *exec.Cmd // the machines
	service  *process.Handle
	log      strings.Builder
	toLog    *slog.Logger
}

const one, two = "i-000000000000000a1", "i-000000000000000a2"

// newWorld starts machines whose ids begin with a number, and the service.
func newWorld(t *testing.T, first uint32) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("this kernel has no FUSE")
	}
	at := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(at), 0o755), os.Chmod(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	w := &world{dir: statedir.Dir(t.TempDir())}
	w.toLog = slog.New(slog.NewTextHandler(&w.log, nil))
	ids := userns.IDs{First: first, Count: 1 << 16}
	var asked *bufio.Scanner
	w.one, asked = startMachine(t, w.dir, one, ids, at)
	w.two, _ = startMachine(t, w.dir, two, userns.IDs{First: ids.First + ids.Count, Count: ids.Count}, at)
	if running, err := local.Running(w.dir); len(running) != 2 || err != nil {
		t.Fatalf("the machines that run are %v, %v", running, err)
	}
	service := exec.Command("/proc/self/exe", string(w.dir), strconv.Itoa(w.one.Process.Pid), strconv.Itoa(int(ids.First)), filepath.Join(at, hosttest.FuseFile))
	service.Env, service.SysProcAttr = supervise.Marks(w.dir, ProcessServe, ""), &syscall.SysProcAttr{Setsid: true}
	said := startRole(t, service, "service", service.Start)
	await(t, said, "visits")
	await(t, asked, strconv.Itoa(int(hosttest.FusePoll)))
	handle, err := process.Hold(service.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handle.Close)
	w.service = handle
	return w
}

// ended checks that the service has ended, and the other machine has not noticed.
func (w *world) ended(t *testing.T) {
	t.Helper()
	if !w.service.Ended() {
		t.Error("the service has not ended")
	}
	release, err := Lock(w.dir.Lock())
	if err != nil {
		t.Fatal(err)
	}
	release()
	if stat, err := process.ReadStat(filepath.Join("/proc", strconv.Itoa(w.two.Process.Pid))); err != nil || stat.State == 'Z' {
		t.Errorf("the other machine's file system has ended, too: %+v, %v", stat, err)
	}
}

// A service that is killed while one of its threads waits for a FUSE file system of a machine does not end: it keeps
// its lock. Whoever waits for its end ends the file systems of that machine, and of no other.
func TestAKilledServiceEndsThatAMachineHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1<<29+3<<20)
	if freed := AwaitEnd(t.Context(), w.dir, w.toLog); len(freed) > 0 {
		t.Errorf("while the service runs, file systems of %v were ended", freed)
	}
	if err := w.service.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.service.Wait(short); err == nil {
		t.Error("this kernel ends a process that waits for FUSE: nothing needs to be done about it any more")
	}
	if _, err := Lock(w.dir.Lock()); !errors.Is(err, ErrRunning) {
		t.Errorf("locked beside the service that was killed: %v", err)
	}
	stop := Watch(t.Context(), w.dir, w.toLog)
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.service.Wait(long); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if freed := stop(); !slices.Equal(freed, []string{one}) || !strings.Contains(w.log.String(), "machines="+one) {
			t.Errorf("file systems of %v were ended; the log:\n%s", freed, w.log.String())
		}
	}
	w.ended(t)

	if _, err := w.one.Process.Wait(); err != nil { // the program of its file system is its only process
		t.Fatal(err)
	}
	// A thread that is no machine's user waits, by an open file, for any of them.
	if freed, err := endFUSE(w.dir, []uint32{0}, false); !slices.Equal(freed, []string{two}) || err != nil {
		t.Errorf("file systems of %v were ended: %v", freed, err)
	}
	if _, err := w.two.Process.Wait(); err != nil {
		t.Error(err)
	}
}

// A service that is stopped ends, too.
func TestStopAServiceThatAMachineHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1<<29+4<<20)
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if freed, err := StopService(long, w.dir); !slices.Equal(freed, []string{one}) || err != nil {
		t.Fatalf("file systems of %v were ended: %v", freed, err)
	}
	w.ended(t)
}

// The next service waits for the one before, even if no guard runs.
func TestAServiceIsAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1<<29+5<<20)
	if err := w.service.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	AwaitEnd(t.Context(), w.dir, w.toLog)
	w.ended(t)
}

// The lock of a process that has ended, is another, or says nothing, is nobody's to wait for. The test is alone: a
// program that another test starts would have the lock for a moment.
func TestNoServiceIsEnding(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	begun := time.Now()
	log := slog.New(slog.DiscardHandler)
	AwaitEnd(t.Context(), dir, log)
	own, err := self()
	if err != nil {
		t.Fatal(err)
	}
	for _, holder := range []string{"", "x", own, fmt.Sprint(os.Getpid(), " 1"), "1073741824 1"} {
		release, err := filelock.Hold(dir.Lock(), holder)
		if err != nil {
			t.Fatal(err)
		}
		AwaitEnd(t.Context(), dir, log)
		release()
	}
	if waited := time.Since(begun); waited > endPatience {
		t.Errorf("it waited for %s", waited)
	}
}
