// SPDX-License-Identifier: Apache-2.0

// These tests make mount namespaces, so they need root.
package seclude_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster.dev/muster/internal/platform/seclude"
)

// id is of no user of the host.
const id = 1<<28 + 7

// run runs a shell script in a view and returns what it printed.
func run(t *testing.T, view seclude.View, script string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test gives a program a user of its own: run it as root")
	}
	cmd := exec.Command("/bin/sh", "-c", "exec 2>&1\n"+script)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	var out strings.Builder
	cmd.Stdout = &out
	if err := seclude.Start(cmd, id, view); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its output says how it went
	return out.String()
}

func TestNoRights(t *testing.T) {
	out := run(t, seclude.View{}, "id -u; id -G; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; ls /proc/1; readlink /proc/self/cwd; echo x >/dev/null && echo null")
	for _, want := range []string{
		fmt.Sprintf("%d\n%d\n", id, id), "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "/proc/1': No such file", "\n/\n", "null\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// Files outside the view do not exist there. Files in the view are as the host has them, below private directories too.
func TestView(t *testing.T) {
	base := t.TempDir()
	dir := func(name string, owner int) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(path string) {
		if err := os.WriteFile(path, []byte("content of "+filepath.Base(path)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, id, id); err != nil {
			t.Fatal(err)
		}
	}
	read, write, other := dir("private/read", id), dir("private/write", id), dir("private/other", id)
	for _, path := range []string{filepath.Join(read, "a"), filepath.Join(other, "b"), filepath.Join(other, "c")} {
		file(path)
	}
	view := seclude.View{
		Reads: []string{read}, Writes: []string{write}, Files: []string{filepath.Join(other, "c")}, Links: map[string]string{filepath.Join(base, "private/link"): "read/a"},
	}
	out := run(t, view, fmt.Sprintf(`cd %s/private
cat read/a other/b other/c link
echo new >write/new && echo wrote
touch read/x; touch x; touch /etc/x; touch /x; mkdir /usr/x
chmod 666 read/a
touch /tmp/mine && echo tmp
mv read/a write/; ls / other
`, base))
	for _, want := range []string{
		"content of a\ncat: other/b: No such file or directory\ncontent of c\ncontent of a\n", "wrote\n", "tmp\n",
		"'read/x': Read-only file system", "'x': Permission denied", "'/etc/x': Read-only file system", "'/x': Read-only file system", "'/usr/x': Read-only file system",
		"'read/a': Read-only file system",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat("/tmp/mine"); err == nil {
		t.Error("its /tmp is the host's")
	}
	if raw, err := os.ReadFile(filepath.Join(write, "new")); err != nil || string(raw) != "new\n" {
		t.Errorf("what it wrote: %q, %v", raw, err)
	}
	if strings.Contains(out, "root\n") || strings.Contains(out, "var\n") || strings.Contains(out, "home\n") {
		t.Errorf("sees directories of the host:\n%s", out)
	}
}

// A file that is replaced on the host is replaced in the view.
func TestViewFollows(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "read line; cat "+filepath.Join(dir, "later"))
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := seclude.Start(cmd, id, seclude.View{Reads: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if at, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid)); err != nil || !strings.HasPrefix(at, "/usr/bin/") && !strings.HasPrefix(at, "/bin/") {
		t.Errorf("it runs %q, %v; want its program by the host's path", at, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "later"), []byte("later"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _ = input.Write([]byte("\n"))
	_ = input.Close()
	_ = cmd.Wait()
	if out.String() != "later" {
		t.Errorf("it read %q", out.String())
	}
}

func TestTry(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if err := seclude.Try(); err != nil {
		t.Error(err)
	}
	if after, err := os.Readlink("/proc/self/ns/mnt"); err != nil || after != before {
		t.Errorf("this process was in %s and is in %s: %v", before, after, err)
	}
}

func TestNeverRoot(t *testing.T) {
	if err := seclude.Start(exec.Command("/bin/true"), 0, seclude.View{}); err == nil {
		t.Error("a program was started as root")
	}
}

// A program with a network of its own has the loopback interface, which is up, and no other.
func TestOwnNetwork(t *testing.T) {
	out := run(t, seclude.View{OwnNetwork: true}, "ls /sys/class/net >/dev/null; sed 1,2d /proc/net/dev | cut -d: -f1; cat /proc/net/fib_trie")
	for line := range strings.SplitSeq(out, "\n") {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "eth") || strings.HasPrefix(name, "en") || strings.HasPrefix(name, "mv-") {
			t.Errorf("it has the interface %s", name)
		}
	}
	if !strings.Contains(out, "lo\n") || !strings.Contains(out, "127.0.0.1") {
		t.Errorf("its loopback interface is not up:\n%s", out)
	}
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if own := strings.TrimSpace(run(t, seclude.View{OwnNetwork: true}, "readlink /proc/self/ns/net")); own == before || !strings.HasPrefix(own, "net:") {
		t.Errorf("it is in the network %s, and this process in %s", own, before)
	}
}

// A program that the service starts meanwhile holds every file that is open, until it is another program: what makes a
// view has none open for writing, with which its root directory could not be made read-only.
func TestViewsBesideStarts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes mount namespaces: run it as root")
	}
	var starts sync.WaitGroup
	ended := make(chan struct{})
	defer starts.Wait()
	defer close(ended)
	for range 4 {
		starts.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					_ = exec.Command("/bin/true").Run()
				}
			}
		})
	}
	for range 300 {
		if err := seclude.Try(); err != nil {
			t.Fatal(err)
		}
	}
}
