// SPDX-License-Identifier: Apache-2.0

package blockfs

import (
	"context"
	"encoding/binary"
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
	checkMemory = 1 << 30
	// checkedAs is the descriptor by which the program has the device.
	checkedAs = "/proc/self/fd/3"
	// superblockEnd is where the superblock of ext4 ends (Documentation/filesystems/ext4/super.rst of the kernel), and
	// that of XFS has ended.
	superblockEnd = 2048
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

// recognize looks for what a file system of the kind begins with, and refuses one that names other devices: they would
// be the host's.
func recognize(device *os.File, kind string) error {
	begin := make([]byte, superblockEnd)
	if _, err := device.ReadAt(begin, 0); err != nil {
		return fmt.Errorf("no %s is on the device, which cannot be read: %w", kind, unix.EINVAL)
	}
	if kind == "xfs" {
		if string(begin[:4]) != "XFSB" {
			return fmt.Errorf("no XFS is on the device: %w", unix.EINVAL)
		}
		return nil
	}
	superblock := begin[1024:]
	if binary.LittleEndian.Uint16(superblock[0x38:]) != 0xef53 {
		return fmt.Errorf("no ext4 is on the device: %w", unix.EINVAL)
	}
	const journalDevice = 0x8
	switch {
	case binary.LittleEndian.Uint32(superblock[0x60:])&journalDevice != 0, binary.LittleEndian.Uint32(superblock[0xe8:]) != 0:
		return fmt.Errorf("the file system has its journal elsewhere: %w", unix.EINVAL)
	case superblock[0x200] != 0:
		return fmt.Errorf("the file system brings options of its own, which tune2fs -E mount_opts= takes away: %w", unix.EINVAL)
	}
	return nil
}

// check has a program look at a file system, as the first of the ids and without any rights: it belongs to them.
func check(ctx context.Context, device *os.File, p plan, ids userns.IDs) error {
	args, fine := p.checker()
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("no %s on this host, which checks a file system before it is mounted (packages e2fsprogs, xfsprogs): %w", args[0], unix.EOPNOTSUPP)
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -v %d && exec "$@"`, checkMemory>>10)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limited, "sh", program}, args[1:]...)...)
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
