// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// process is another process, which runs one test of this binary.
type process struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
}

func child(t *testing.T, test string, env ...string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+test+"$")
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return process{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
}

// expect reads one line.
func (p process) expect(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("process %d said %q, want %q", p.cmd.Process.Pid, p.lines.Text(), want)
	}
}

// end closes the input of the process and waits until it succeeds.
func (p process) end(t *testing.T) {
	t.Helper()
	_ = p.in.Close()
	for p.lines.Scan() {
		if text := p.lines.Text(); text != "PASS" {
			t.Log(text)
		}
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("process %d: %v", p.cmd.Process.Pid, err)
	}
}

// disjoint fails unless both files reserve the same ranges, n in number, and none overlaps another.
func disjoint(t *testing.T, etc string, n int) {
	t.Helper()
	h, err := read(etc)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(h.uid.content, "\n")
	if lines != n || lines != strings.Count(h.gid.content, "\n") {
		t.Errorf("want %d lines in both:\n%s\n%s", n, h.uid.content, h.gid.content)
	}
	for line := range strings.Lines(h.uid.content) {
		if r, there, err := h.plan(owner(line), 1); err != nil || !there {
			t.Errorf("%q: %v, %v, %v", line, r, there, err)
		}
	}
}

// reserving is what another process of TestProcesses does, from when its input is closed: it takes ranges, gives some
// back, and takes others.
func reserving(t *testing.T, etc, prefix string) {
	t.Helper()
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	for i := range 12 {
		name := fmt.Sprintf("%s-%d", prefix, i)
		if _, err := Reserve(etc, name, uint32(1+i%3)<<16); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			if err := Release(etc, fmt.Sprintf("%s-%d", prefix, i-1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Reserve(etc, "both-"+strconv.Itoa(i), 65536); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcesses(t *testing.T) {
	if etc := os.Getenv("SUBID_TEST_ETC"); etc != "" {
		reserving(t, etc, os.Getenv("SUBID_TEST_PREFIX"))
		return
	}
	etc := etcOf(t, map[string]string{"subuid": "b:100000:65536\n", "subgid": "b:65536:65536\n"})
	var all []process
	for _, prefix := range []string{"one", "two"} {
		p := child(t, "TestProcesses", "SUBID_TEST_ETC="+etc, "SUBID_TEST_PREFIX="+prefix)
		p.expect(t, "ready")
		all = append(all, p)
	}
	for _, p := range all {
		_ = p.in.Close()
	}
	for _, p := range all {
		p.end(t)
	}
	for _, name := range []string{"subuid", "subgid"} { // b has other ids in each, which disjoint would not like
		path := filepath.Join(etc, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(raw), "\n")
		if !strings.HasPrefix(first, "b:") {
			t.Errorf("%s begins with %q", name, first)
		}
		if err := os.WriteFile(path, []byte(rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	disjoint(t, etc, 2*(12-4)+12)
	tidy(t, etc)
}

// A process that is killed at any moment leaves nothing that keeps the next one from reserving and releasing.
func TestKilled(t *testing.T) {
	if etc := os.Getenv("SUBID_TEST_ETC"); etc != "" {
		for {
			if _, err := Reserve(etc, me, 65536); err != nil {
				t.Fatal(err)
			}
			_, _ = os.Stdout.WriteString("reserved\n")
			if err := Release(etc, me); err != nil {
				t.Fatal(err)
			}
			_, _ = os.Stdout.WriteString("released\n")
		}
	}
	etc := t.TempDir()
	if _, err := Reserve(etc, "other", 65536); err != nil {
		t.Fatal(err)
	}
	for round := range 12 {
		p := child(t, "TestKilled", "SUBID_TEST_ETC="+etc)
		for range 1 + round%4 {
			if !p.lines.Scan() {
				t.Fatalf("the process ended: %v", p.lines.Err())
			}
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait()
		if r, err := Reserve(etc, me, 65536); err != nil || r.First != lowest+65536 {
			t.Fatalf("round %d: %v, %v", round, r, err)
		}
		disjoint(t, etc, 2)
		if round%2 == 0 {
			if err := Release(etc, me); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A file that is left has the number of a process in its name. A process with the same number overwrites it.
	leftovers, err := filepath.Glob(filepath.Join(etc, "sub?id.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leftovers {
		if _, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(path), ".")); err != nil {
			t.Errorf("%s is left", path)
		}
	}
}

// On a host whose files are made elsewhere, people are told the line, and a range that is there is read.
func TestReadOnly(t *testing.T) {
	if etc := os.Getenv("SUBID_TEST_ETC"); etc != "" {
		if err := errors.Join(
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(etc, etc, "", unix.MS_BIND, ""),
			unix.Mount("", etc, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
		); err != nil {
			t.Fatal(err)
		}
		refused(t, etc, "read-only file system")
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts file systems in a namespace: run it as root")
	}
	etc := etcOf(t, map[string]string{"subuid": "there" + at, "subgid": "there" + at})
	isolated(t, etc, "TestReadOnly", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	tidy(t, etc)
}

// A file of a container is often a mount of its own, which no file can be renamed to.
func TestMountPoint(t *testing.T) {
	if etc := os.Getenv("SUBID_TEST_ETC"); etc != "" {
		path := filepath.Join(etc, "subuid")
		if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(path, path, "", unix.MS_BIND, "")); err != nil {
			t.Fatal(err)
		}
		refused(t, etc, "device or resource busy")
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts file systems in a namespace: run it as root")
	}
	etc := etcOf(t, map[string]string{"subuid": "there" + at, "subgid": "there" + at})
	isolated(t, etc, "TestMountPoint", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	tidy(t, etc)
}

func TestNotRoot(t *testing.T) {
	if etc := os.Getenv("SUBID_TEST_ETC"); etc != "" {
		refused(t, etc, "permission denied")
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test runs a process as another user: run it as root")
	}
	etc := etcOf(t, map[string]string{"subuid": "there" + at, "subgid": "there" + at})
	for dir := etc; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the other user must get there
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	isolated(t, etc, "TestNotRoot", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	tidy(t, etc)
}

func isolated(t *testing.T, etc, test string, attributes *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+test+"$", "-test.v")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = append(os.Environ(), "SUBID_TEST_ETC="+etc), "/", attributes
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%v: %s", err, out)
	}
}

// refused fails unless the files are only read, and errors say why and what to do.
func refused(t *testing.T, etc, why string) {
	t.Helper()
	if r, err := Reserve(etc, "there", 65536); err != nil || r.First != lowest {
		t.Errorf("what is there: %v, %v", r, err)
	}
	if r, ok, err := Find(etc, "there"); err != nil || !ok || r.First != lowest {
		t.Errorf("what is there: %v, %v, %v", r, ok, err)
	}
	if err := Release(etc, me); err != nil {
		t.Errorf("nothing to release: %v", err)
	}
	files := filepath.Join(etc, "subuid") + " and " + filepath.Join(etc, "subgid") + ", then try again"
	_, reserveErr := Reserve(etc, me, 65536)
	for want, err := range map[string]error{
		"add muster-1a2b3c4d:2013331456:65536 in " + files:      reserveErr,
		"remove every line that begins with there: in " + files: Release(etc, "there"),
	} {
		if err == nil || !strings.Contains(err.Error(), why+": as root, or in the configuration that these files are made from, "+want) {
			t.Errorf("got %v, want %s … %s", err, why, want)
		}
	}
}
