// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuseOp is what the kernel asks the program of a file system for (linux/fuse.h, enum fuse_opcode).
type FuseOp uint32

// Requests that tests look for.
const (
	FuseLookup  FuseOp = 1
	FuseGetattr FuseOp = 3
	FuseRead    FuseOp = 15
	FusePoll    FuseOp = 40
)

const (
	fuseForget      FuseOp = 2
	fuseMknod       FuseOp = 8
	fuseOpen        FuseOp = 14
	fuseStatfs      FuseOp = 17
	fuseRelease     FuseOp = 18
	fuseInit        FuseOp = 26
	fuseCreate      FuseOp = 35
	fuseBatchForget FuseOp = 42
)

// FuseFile is the name of the only file that a [Fuse] begins with.
const FuseFile = "file"

// Sizes of linux/fuse.h, and of the file in bytes.
const (
	fuseInHeader, fuseOutHeader = 40, 16
	fuseSize                    = 4096
)

// Fuse is a file system whose program is another process: one that hangs in it hangs alone. It has one file, of zeros,
// and any other that is made.
type Fuse struct {
	// Dir is where it is mounted.
	Dir     string
	program *exec.Cmd
	ended   bool
}

// MountFuse mounts a file system at a directory of its own, for the calling user, until the test ends. The test is skipped on a
// host without FUSE. Requests of the kinds in never stay without an answer: whoever waits for the answer cannot be
// killed until the file system is gone.
//
// The program is the test itself in another process, which gets no further than here.
func MountFuse(t *testing.T, never ...FuseOp) *Fuse {
	t.Helper()
	const mark = "MUSTER_TEST_FUSE"
	if os.Getenv(mark) != "" {
		ServeFuse(firstExtra, never...)
		os.Exit(0) //nolint:forbidigo // the process is the program's, and not the test's
	}
	dir := t.TempDir()
	connection, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = connection.Close() }()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", connection.Fd(), unix.Getuid(), unix.Getgid())
	if err := unix.Mount("test", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatal(err)
	}
	f := &Fuse{Dir: dir, program: exec.Command(self, "-test.run=^"+t.Name()+"$")} //nolint:noctx // it ends with the file system
	t.Cleanup(func() { _ = f.End() })
	f.program.Env, f.program.ExtraFiles = append(os.Environ(), mark+"=1"), []*os.File{connection}
	f.program.Stdout = new(strings.Builder)
	if err := f.program.Start(); err != nil {
		t.Fatal(err)
	}
	return f
}

// End takes the file system away and returns what the kernel has asked for. Whoever waits for an answer has an error.
func (f *Fuse) End() []FuseOp {
	if !f.ended {
		f.ended = true
		_ = unix.Unmount(f.Dir, unix.MNT_FORCE) // ends requests, and fails if there were any
		_ = unix.Unmount(f.Dir, unix.MNT_DETACH)
		_ = f.program.Process.Kill()
		_ = f.program.Wait()
	}
	var all []FuseOp
	for word := range strings.FieldsSeq(f.program.Stdout.(*strings.Builder).String()) { //nolint:forcetypeassert // made above
		if op, err := strconv.ParseUint(word, 10, 32); err == nil {
			all = append(all, FuseOp(op))
		}
	}
	return all
}

// firstExtra is the descriptor of the first of exec.Cmd.ExtraFiles.
const firstExtra = 3

// ServeFuse is the program of a file system, whose connection it has, until that is gone. It prints what the kernel asks
// for.
func ServeFuse(connection int, never ...FuseOp) {
	(&files{connection: connection, never: never}).serve()
}

// files is what the program of a file system has.
type files struct {
	connection int
	never      []FuseOp
	made       bool
}

func (f *files) serve() {
	buffer := make([]byte, 1<<18)
	for {
		n, err := unix.Read(f.connection, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < fuseInHeader {
			return
		}
		op := FuseOp(binary.LittleEndian.Uint32(buffer[4:]))
		fmt.Println(uint32(op))
		body, errno := f.answer(op, binary.LittleEndian.Uint64(buffer[16:]), buffer[fuseInHeader:n])
		if op == fuseForget || op == fuseBatchForget || slices.Contains(f.never, op) {
			continue
		}
		head := words(uint32(fuseOutHeader+len(body)), -int32(errno), buffer[8:16]) //nolint:gosec // G115: short, and an errno
		if _, err := unix.Write(f.connection, append(head, body...)); err != nil && !errors.Is(err, unix.ENOENT) {
			return
		}
	}
}

func (f *files) answer(op FuseOp, node uint64, body []byte) ([]byte, unix.Errno) {
	entry := append(words(uint64(2), make([]byte, 32)), fuseAttr(2)...)
	opened := make([]byte, 16)
	switch op {
	case fuseInit: // version 7.31, no flags, and the sizes that older kernels know
		return words(uint32(7), uint32(31), make([]byte, 12), uint32(fuseSize), make([]byte, 40)), 0
	case FuseLookup:
		if name, _, _ := bytes.Cut(body, []byte{0}); string(name) != FuseFile && !f.made {
			return nil, unix.ENOENT
		}
		return entry, 0
	case FuseGetattr:
		return append(make([]byte, 16), fuseAttr(node)...), 0
	case fuseMknod:
		f.made = true
		return entry, 0
	case fuseCreate:
		f.made = true
		return append(entry, opened...), 0
	case fuseOpen:
		return opened, 0
	case FuseRead:
		return make([]byte, fuseSize), 0
	case FusePoll:
		return make([]byte, 8), 0
	case fuseStatfs:
		return make([]byte, 80), 0
	case fuseRelease, fuseForget, fuseBatchForget: // nobody waits for an answer to the last two
		return nil, 0
	}
	return nil, unix.ENOSYS
}

// fuseAttr is struct fuse_attr: of the root, a directory, or of a file.
func fuseAttr(node uint64) []byte {
	mode, size := uint32(unix.S_IFREG|0o666), uint64(fuseSize)
	if node == 1 {
		mode, size = unix.S_IFDIR|0o777, 0
	}
	owner := words(uint32(unix.Getuid()), uint32(unix.Getgid())) //nolint:gosec // G115: ids
	return words(node, size, make([]byte, 44), mode, uint32(1), owner, uint32(0), uint32(fuseSize), uint32(0))
}

// words are values as the kernel has them in memory.
func words(all ...any) []byte {
	var raw bytes.Buffer
	for _, one := range all {
		_ = binary.Write(&raw, binary.NativeEndian, one) // values of fixed sizes
	}
	return raw.Bytes()
}
