// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// started is the directory of a process that runs with this environment and nothing else.
func started(t *testing.T, cmd *exec.Cmd, environment ...string) string {
	t.Helper()
	cmd.Env = environment
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
}

func TestRead(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour)
	sleep := func() *exec.Cmd { return exec.Command("/usr/bin/sleep", "60") }
	program, err := filepath.EvalSymlinks("/usr/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"some": {"A=b", "EMPTY="}, "long": {"A=b", "LONG=" + strings.Repeat("x", 100_000), "Z=1"}, "not NAME=value": {"A"},
	} {
		got, err := Read(started(t, sleep(), want...), soon)
		if string(got.Environment) != strings.Join(want, "\x00")+"\x00" || got.Executable != program || got.Name != "sleep" || err != nil {
			t.Errorf("%s: got %.100q, %+v, %s, %v", name, got.Environment, got.Stat, got.Executable, err)
		}
	}

	root := started(t, exec.Command("/usr/bin/env", "-i", "/usr/bin/sleep", "60"), "SOON=gone")
	eventually(t, "the other program", func() bool { stat, err := ReadStat(root); return err == nil && stat.Name == "sleep" })
	if got, err := Read(root, soon); len(got.Environment) > 0 || err != nil {
		t.Errorf("of a process without: %q, %v", got.Environment, err)
	}

	root = started(t, exec.Command("/usr/bin/true"), "A=b")
	eventually(t, "its end", func() bool { stat, err := ReadStat(root); return err == nil && stat.State == 'Z' })
	if got, err := Read(root, soon); err == nil {
		t.Errorf("a zombie: %+v", got)
	}
	if got, err := Read(t.TempDir(), soon); !os.IsNotExist(err) {
		t.Errorf("no process: %+v, %v", got, err)
	}
	if got, err := Read("/proc/2", soon); err == nil && got.kernel { // in a container it is somebody else
		t.Errorf("a thread of the kernel: %+v", got)
	}
}

// In the middle of execve a process has no environment, or had one that goes away while it is read: the more of it, the
// longer both take. A Go program calls it from any of its threads.
func TestReadWhatBecomesAnotherProgram(t *testing.T) {
	t.Parallel()
	environment := []string{"BECOMES_ITSELF=yes", "UNTIL=" + filepath.Join(t.TempDir(), "until")}
	for n := range 50 {
		environment = append(environment, "LONG"+strconv.Itoa(n)+"="+strings.Repeat("x", 1000))
	}
	want := strings.Join(environment, "\x00") + "\x00"
	root := started(t, exec.Command("/proc/self/exe"), environment...)
	for n := range 2000 {
		if got, err := Read(root, time.Now().Add(time.Minute)); string(got.Environment) != want || err != nil {
			t.Fatalf("look number %d: %d bytes of %d, %+v, %v", n, len(got.Environment), len(want), got.Stat, err)
		}
	}
}

// A caller that can wait no longer is told so.
func TestReadPatience(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Symlink("/usr/bin/true", filepath.Join(root, "exe")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"environ": "", "stat": "17 (true) R" + strings.Repeat(" 0", 60)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if got, err := Read(root, began.Add(20*time.Millisecond)); err == nil {
		t.Errorf("got %+v", got)
	}
	if waited := time.Since(began); waited < 20*time.Millisecond {
		t.Errorf("it waited for %s only", waited)
	}
}
