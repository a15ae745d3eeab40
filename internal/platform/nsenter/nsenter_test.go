// SPDX-License-Identifier: Apache-2.0

// These tests make namespaces, so they need root.
package nsenter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/nsenter"
	"muster.dev/muster/internal/platform/userns"
)

// machine starts something that is to a machine what a stone is to a sculpture: namespaces and a root directory of its
// own.
func machine(t *testing.T) int { t.Helper(); return machineOf(t, userns.IDs{}) }

// machineOf starts it in a user namespace, if the ids are its own.
func machineOf(t *testing.T, ids userns.IDs) int {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes namespaces: run it as root")
	}
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Dir(root)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`set -e
mount --make-rprivate /
mount -t tmpfs none %[1]q
cd %[1]q
mkdir mnt tmp
for name in bin dev etc lib lib64 proc sbin sys usr; do
	if test -L /$name; then cp -d /$name .; elif test -d /$name; then mkdir $name; mount --rbind /$name $name; fi
done
hostname machine-under-test
mount -t tmpfs none %[1]q/mnt
echo here > %[1]q/mnt/mark
mount --bind /dev/null %[1]q/etc/profile
exec chroot %[1]q sh -c 'echo ready; exec sleep 1000'`, root)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	const flags = unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP
	if err := userns.Start(cmd, ids, flags, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line := make([]byte, 6); !readFull(out, line) || string(line) != "ready\n" {
		t.Fatalf("the machine did not start: %q", line)
	}
	return cmd.Process.Pid
}

func readFull(from io.Reader, into []byte) bool {
	_, err := io.ReadFull(from, into)
	return err == nil
}

// run runs a program on the machine and returns its output.
func run(t *testing.T, pid int, args ...string) (string, int, error) {
	t.Helper()
	return runIn(t, pid, userns.IDs{}, args...)
}

func runIn(t *testing.T, pid int, ids userns.IDs, args ...string) (string, int, error) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&out, reader)
	}()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	code, runErr := nsenter.Run(t.Context(), nsenter.Config{
		PID: pid, IDs: ids, Args: args, Env: []string{"PATH=/nowhere:/bin:/usr/bin", "MARK=1"}, Dir: "/mnt", In: null, Out: writer, Err: writer,
	})
	_ = writer.Close()
	_ = null.Close()
	<-done
	_ = reader.Close()
	return strings.TrimSpace(out.String()), code, runErr
}

// In a user namespace the program is root there, and nobody outside.
func TestUserNamespace(t *testing.T) {
	ids := userns.IDs{First: 1 << 28, Count: 1 << 16}
	pid := machineOf(t, ids)
	out, code, err := runIn(t, pid, ids, "sh", "-c", "id -u; set -- $(cat /proc/self/uid_map); echo $1 $2; cat /proc/sys/kernel/hostname mark; exit 7")
	if want := "0\n0 268435456\nmachine-under-test\nhere"; out != want || code != 7 || err != nil {
		t.Errorf("it printed %q, not %q; status %d, %v", out, want, code, err)
	}
	if out, code, err := runIn(t, pid, ids, "sh", "-c", "kill -9 $$"); code != 137 || err != nil {
		t.Errorf("killed, its status is %d: %q, %v", code, out, err)
	}
}

func TestRun(t *testing.T) {
	pid := machine(t)
	for _, test := range []struct {
		name, want string
		args       []string
		code       int
	}{
		{"host name", "machine-under-test", []string{"cat", "/proc/sys/kernel/hostname"}, 0},
		{"files and working directory", "here", []string{"cat", "mark"}, 0},
		{"no network but its own", "1", []string{"sh", "-c", "ls /sys/class/net >/dev/null; tail -n +3 /proc/net/dev | wc -l"}, 0},
		{"environment", "1 /mnt", []string{"sh", "-c", "echo $MARK $PWD"}, 0},
		{"exit code", "", []string{"sh", "-c", "exit 7"}, 7},
		{"signal", "", []string{"sh", "-c", "kill -9 $$"}, 137},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, code, err := run(t, pid, test.args...)
			if err != nil || code != test.code || out != test.want {
				t.Fatalf("got %q, exit code %d, error %v; want %q, %d", out, code, err, test.want, test.code)
			}
		})
	}
}

func TestRunInItsProcessNamespace(t *testing.T) {
	pid := machine(t)
	out, _, err := run(t, pid, "sh", "-c", "readlink /proc/$(cat /proc/self/stat | cut -d' ' -f1)/ns/uts; echo $$")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(out)
	if number := fields[len(fields)-1]; len(number) > 3 { // a young namespace has small numbers
		t.Fatalf("shell has process number %s, which is not one of a namespace that has just been made", number)
	}
}

func TestRunWhatIsNotThere(t *testing.T) {
	pid := machine(t)
	for _, name := range []string{"no-such-program", "/no/such/program"} {
		if _, _, err := run(t, pid, name); !errors.Is(err, nsenter.ErrNoCommand) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := run(t, pid, "/mnt/mark"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a file that is no program: %v", err)
	}
	if _, err := nsenter.Run(t.Context(), nsenter.Config{PID: pid, Still: func() bool { return false }}); err == nil {
		t.Error("entered a process that is not the machine's any more")
	}
}

// The first process of a machine has the host's root directory until it has built its own, in namespaces that are the
// machine's already.
func TestRunBeforeAMachineHasItsRoot(t *testing.T) {
	booting := exec.CommandContext(t.Context(), "sleep", "60")
	booting.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if err := booting.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = booting.Process.Kill()
		_ = booting.Wait()
	}()
	if out, _, err := run(t, booting.Process.Pid, "echo", "on the host"); !errors.Is(err, nsenter.ErrBooting) || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

// A person's terminal is the slave of one of ours here, so that a test can sit at the other end.
func TestRunOnATerminal(t *testing.T) {
	pid := machine(t)
	keyboard, screen := pty(t)
	code := make(chan int, 1)
	go func() {
		got, err := nsenter.Run(t.Context(), nsenter.Config{
			PID: pid, Env: []string{"PATH=/bin:/usr/bin", "TERM=dumb", "HOME=/mnt"}, Dir: "/", TTY: true, In: screen, Out: screen, Err: screen,
		})
		if err != nil {
			t.Error(err)
		}
		code <- got
	}()
	var seen bytes.Buffer
	lines := make(chan []byte)
	go func() {
		for {
			buf := make([]byte, 1024)
			n, err := keyboard.Read(buf)
			if err != nil {
				close(lines)
				return
			}
			lines <- buf[:n]
		}
	}()
	until := func(want string) {
		deadline := time.After(20 * time.Second)
		for !strings.Contains(seen.String(), want) {
			select {
			case data := <-lines:
				seen.Write(data)
			case <-deadline:
				t.Fatalf("%q has not come; there is %q", want, seen.String())
			}
		}
	}
	typing := func(text string) {
		if _, err := keyboard.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	typing("tty && stty size && cat /proc/sys/kernel/hostname && echo do''ne\n")
	until("done")
	for _, want := range []string{"/dev/pts/", "33 99", "machine-under-test"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("%q is missing in %q", want, seen.String())
		}
	}
	typing("sh -c 'echo se\"\"t; exec sleep 100'\n")
	until("set")
	typing("\x03") // reaches sleep through the terminal, and nothing else
	typing("echo code=$?\n")
	until("code=130")
	typing("exit 5\n")
	select {
	case got := <-code:
		if got != 5 {
			t.Fatalf("exit code %d, want 5; there is %q", got, seen.String())
		}
	case data := <-lines:
		seen.Write(data)
		if got := <-code; got != 5 {
			t.Fatalf("exit code %d, want 5", got)
		}
	}
}

func TestInterruptedRunEnds(t *testing.T) {
	pid := machine(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		got, err := nsenter.Run(ctx, nsenter.Config{PID: pid, Args: []string{"/bin/sh", "-c", "echo up; exec sleep 1000"}, In: reader, Out: writer, Err: writer})
		if err != nil {
			t.Error(err)
		}
		code <- got
	}()
	if word := make([]byte, 3); !readFull(reader, word) {
		t.Fatal("nothing was printed")
	}
	cancel()
	if got := <-code; got != 128+int(syscall.SIGTERM) {
		t.Fatalf("exit code %d", got)
	}
}

func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
	})
	return master, slave
}
