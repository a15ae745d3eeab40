// SPDX-License-Identifier: Apache-2.0

package blockfs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/seclude"
	"muster.dev/muster/internal/platform/userns"
)

const (
	// Patience is how long a check may take.
	Patience = 5 * time.Minute
	// checkMemory is how much memory it may have, in bytes of addresses.
	checkMemory = 2 << 30
	// checkedAs is the descriptor by which the program has the device.
	checkedAs = "/proc/self/fd/3"
	// lastWords is how much of what it printed is told, in bytes.
	lastWords = 300
)

// checker is the command line that checks a file system, and the exit codes with which it may be mounted.
func (p plan) checker() (args []string, fine []int) {
	switch {
	case p.kind == "xfs":
		return []string{"xfs_repair", "-n", checkedAs}, []int{0}
	case p.readOnly:
		return []string{"e2fsck", "-f", "-n", checkedAs}, []int{0}
	}
	return []string{"e2fsck", "-f", "-p", checkedAs}, []int{0, 1} // mended
}

// recognize looks for what a file system of the kind begins with.
func recognize(device *os.File, kind string) error {
	magic, at := "\x53\xef", int64(1024+56)
	if kind == "xfs" {
		magic, at = "XFSB", 0
	}
	found := make([]byte, len(magic))
	if _, err := device.ReadAt(found, at); err != nil || string(found) != magic {
		return fmt.Errorf("no %s is on the device: %w", kind, unix.EINVAL)
	}
	return nil
}

// check has a program look at a file system, as the first of the ids and without any rights: it belongs to them.
func check(ctx context.Context, device *os.File, p plan, ids userns.IDs) error {
	if err := recognize(device, p.kind); err != nil {
		return err
	}
	args, fine := p.checker()
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("no %s on this host, which checks a file system before it is mounted (packages e2fsprogs, xfsprogs): %w", args[0], unix.EOPNOTSUPP)
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -v %d && exec "$@"`, checkMemory>>10)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limited, "sh", program}, args[1:]...)...) //nolint:gosec // G204: of two programs
	cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.ExtraFiles = []*os.File{device} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}
	said := &tail{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	if err := seclude.Start(cmd, uint32(ids.Host(0)), seclude.View{}); err != nil { //nolint:gosec // G115: an id
		return fmt.Errorf("starting %s: %w", args[0], err)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not end within %s: %w", args[0], Patience, unix.EUCLEAN)
	}
	for _, code := range fine {
		if cmd.ProcessState != nil && cmd.ProcessState.Exited() && cmd.ProcessState.ExitCode() == code {
			return nil
		}
	}
	return fmt.Errorf("%s finds damage (%w): %s: %w", args[0], err, said, unix.EUCLEAN)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > lastWords {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-lastWords:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "?")), " ")
}
