// SPDX-License-Identifier: Apache-2.0

package devicemount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/host/hosttest"
	"muster.dev/muster/internal/platform/userns"
)

// TestMain lets the test's own binary be process number one of a machine: it answers mounts, and runs scripts whose
// mounts it hears of.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hang" {
		fmt.Println(hang("/tmp/other"))
		os.Exit(1)
	}
	if len(os.Args) != 3 || os.Args[1] != "machine" {
		os.Exit(m.Run())
	}
	if err := machine(os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func machine(script string) error {
	done := make(chan error, 1)
	go host.OnThread(func() {
		fd, err := userns.ConfineListening()
		if err != nil || fd < 0 {
			done <- fmt.Errorf("there is no listener: %w", err)
			return
		}
		go func() { _ = Serve(context.Background(), fd, memory, slog.New(slog.DiscardHandler)) }() //nolint:forbidigo // there is no test in this process
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		done <- cmd.Run()
	})
	return <-done
}

// hang mounts many file systems whose type is in memory that never answers: a file of its own, in a file system that is
// mounted at a path.
func hang(at string) error {
	connection, err := unix.Open("/tmp/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Mount("test", at, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", connection)); err != nil {
		return err
	}
	go hosttest.ServeFuse(connection, hosttest.FuseRead)
	file, err := unix.Open(at+"/"+hosttest.FuseFile, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	memory, err := unix.Mmap(file, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err := errors.Join(err, unix.Close(file)); err != nil { // a process that ends with it open would wait for itself
		return err
	}
	var calls sync.WaitGroup
	for range 2 * maxHeard {
		calls.Go(func() {
			path := unsafe.Pointer(unsafe.StringData("/tmp\x00"))
			_, _, _ = unix.Syscall6(unix.SYS_MOUNT, uintptr(path), uintptr(path), uintptr(unsafe.Pointer(&memory[0])), 0, 0, 0)
		})
	}
	calls.Wait()
	return errors.New("nothing hangs")
}

// memory is a host that makes file systems of memory for devices, with what it was asked in the name of a file.
func memory(_ context.Context, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
	var is unix.Stat_t
	if err := unix.Fstat(int(device.Fd()), &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFBLK {
		return nil, fmt.Errorf("not a device: %w", errors.Join(err, unix.ENOTBLK))
	}
	flags, err := unix.FcntlInt(device.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return nil, err
	}
	switch fileSystem.Options {
	case "damaged":
		return nil, fmt.Errorf("damaged: %w", unix.EUCLEAN)
	case "away":
		return nil, fmt.Errorf("no service: %w", unix.EAGAIN)
	case "tell":
		fmt.Println("asked")
	case "slow":
		<-time.After(time.Second)
	}
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, err
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	open := "rw"
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		open = "ro"
	}
	mark, err := unix.Openat(mount, strings.Join([]string{fileSystem.Type, open, fileSystem.Options}, "-"), unix.O_CREAT|unix.O_CLOEXEC|unix.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(mount), "mount"), unix.Close(mark)
}

// run runs a script on a machine and returns what it printed.
func run(t *testing.T, script string, prepare func() error) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes namespaces: run it as root")
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", "machine", script)
	cmd.ExtraFiles = []*os.File{self}
	return output(t, cmd, prepare)
}

func output(t *testing.T, cmd *exec.Cmd, prepare func() error) string {
	t.Helper()
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &unix.SysProcAttr{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := userns.Start(cmd, userns.IDs{First: 1 << 28, Count: 1 << 16}, unix.CLONE_NEWPID|unix.CLONE_NEWIPC, prepare); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(out)
	_ = cmd.Wait() // its output says how it went
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
