// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// goneProcess is the number of a process that has ended.
func goneProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

func TestLinkLocks(t *testing.T) {
	for name, c := range map[string]struct{ content, err string }{
		"of a process that runs": {strconv.Itoa(os.Getppid()) + "\x00", "is held by process " + strconv.Itoa(os.Getppid()) + ": end that program"},
		"of the first process":   {"1\n", "is held by process 1:"},
		"of one that is gone":    {goneProcess(t) + "\x00", ""},
		"of this number":         {strconv.Itoa(os.Getpid()) + "\x00", ""},
		"of nobody":              {"", "is held by an unknown process"},
		"of text":                {"x", "is held by an unknown process"},
		"of a group":             {"-1", "is held by an unknown process"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"subuid.lock", "subgid.lock"} {
				etc := t.TempDir()
				path := filepath.Join(etc, file)
				if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
				release, err := lock(etc, 50*time.Millisecond)
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), path+" "+c.err) {
						t.Fatalf("got %v, want %s", err, c.err)
					}
					holds(t, etc, file, c.content)
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					tidy(t, etc) // those taken before are released
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				holds(t, etc, "subuid.lock", strconv.Itoa(os.Getpid())+"\x00")
				holds(t, etc, "subgid.lock", strconv.Itoa(os.Getpid())+"\x00")
				release()
				tidy(t, etc)
			}
		})
	}
}

// The lock of lckpwdf(3) is a record lock, which belongs to a process: a child holds it here, and says when.
func TestPasswordLock(t *testing.T) {
	if path := os.Getenv("SUBID_TEST_HOLD"); path != "" {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("locked\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it
		_ = file.Close()
		return
	}
	etc := t.TempDir()
	holder := child(t, "TestPasswordLock", "SUBID_TEST_HOLD="+filepath.Join(etc, ".pwd.lock"))
	holder.expect(t, "locked")
	_, err := lock(etc, 50*time.Millisecond)
	want := ".pwd.lock is locked by process " + strconv.Itoa(holder.cmd.Process.Pid) + ": useradd and vipw lock it"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	tidy(t, etc)
	done := make(chan error, 1)
	go func() {
		_, err := Reserve(etc, me, 1)
		done <- err
	}()
	holder.end(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A record lock would not keep out a goroutine of the same process. A caller does not write the lines that it read
// before it had the lock: no range that another caller reserved meanwhile is lost.
func TestGoroutines(t *testing.T) {
	etc := t.TempDir()
	const rounds = 4
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := range rounds {
				name := "muster-" + strconv.Itoa(i)
				if _, err := Reserve(etc, name, 1); err != nil {
					t.Error(err)
				}
				if _, err := Reserve(etc, name+"-"+strconv.Itoa(round), 65537); err != nil {
					t.Error(err)
				}
				if err := Release(etc, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	disjoint(t, etc, 4*rounds)
	tidy(t, etc)
}

// systemd refuses a link in this place, too (take_etc_passwd_lock): what is behind it may be anything.
func TestPasswordLockIsALink(t *testing.T) {
	etc := etcOf(t, map[string]string{"passwd": "root:x:0:0::/:\n"})
	path := filepath.Join(etc, ".pwd.lock")
	if err := os.Symlink("passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Reserve(etc, me, 1); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	tidy(t, etc)
}

// The file is read again under the lock: a line that another program wrote meanwhile stays.
func TestReadAgain(t *testing.T) {
	for what, call := range map[string]func(etc string) error{
		"Reserve": func(etc string) error { _, err := Reserve(etc, "new", 1); return err },
		"Release": func(etc string) error { return Release(etc, me) },
	} {
		etc := etcOf(t, map[string]string{"subuid": me + at, "subgid": me + at, "subuid.lock": strconv.Itoa(os.Getppid())})
		done := make(chan error, 1)
		go func() { done <- call(etc) }()
		for waiting := filepath.Join(etc, "subuid."+strconv.Itoa(os.Getpid())); ; <-time.After(time.Millisecond) {
			if _, err := os.Lstat(waiting); err == nil {
				break
			}
		}
		if err := os.WriteFile(filepath.Join(etc, "subuid"), []byte("b:1:1\n"+me+at), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(etc, "subuid.lock")); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if raw, err := os.ReadFile(filepath.Join(etc, "subuid")); err != nil || !strings.HasPrefix(string(raw), "b:1:1\n") {
			t.Errorf("%s left %q, %v", what, raw, err)
		}
	}
}
