// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/places"
)

// world is what an attack knows and has.
type world struct {
	places.Map
	// mark is the name of the file that the attack makes on the host if it gets there.
	mark string
	// private is nil if the attack is in a mount namespace of its own, which ends with it, and says why not otherwise.
	private error
}

// newWorld prepares the calling thread for an attack.
func newWorld(where places.Map, attack, rights string) *world {
	w := &world{Map: where, mark: attack + "." + rights}
	// When memory runs out, the attack must be ended first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: processorSeconds, Max: processorSeconds})
	unix.Umask(0)
	w.private = unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
	if w.private == nil {
		w.private = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	return w
}

// mount mounts in the attack's own mount namespace, and nowhere else: nothing that it mounts is left.
func (w *world) mount(source, target, kind string, flags uintptr, data string) error {
	if w.private != nil {
		return fmt.Errorf("taking a mount namespace: %w", w.private)
	}
	return unix.Mount(source, target, kind, flags, data)
}

// scratch mounts a file system in memory and returns its path.
func (w *world) scratch() (string, error) {
	dir, err := w.spare()
	if err != nil {
		return "", err
	}
	return dir, w.mount("escape", dir, "tmpfs", 0, "size=1m,mode=700")
}

// spare finds a directory that something can be mounted on without hiding a prize.
func (w *world) spare() (string, error) {
	for _, dir := range []string{"/mnt", "/srv", "/opt", "/home", "/media", "/tmp", "/var/tmp", "/run"} {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		hides := false
		for _, used := range []string{w.Shared, w.Volume, w.Disk} {
			hides = hides || used == dir || strings.HasPrefix(used, dir+"/")
		}
		if !hides {
			return dir, nil
		}
	}
	return "", fmt.Errorf("finding a directory to mount on: %w", unix.ENOENT)
}

// detached makes a file system of a kind that is mounted nowhere, and returns its root.
func detached(kind string) (int, error) {
	config, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(config) }()
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, fmt.Errorf("making %s: %w", kind, err)
	}
	root, err := unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("mounting %s: %w", kind, err)
	}
	return root, nil
}

// fromRoot looks for the host's file below a directory that may be the host's root, or the root of the file system that
// the file is on, and leaves a mark beside it. It returns false if the file is not there.
func (w *world) fromRoot(root int, how string) (finding, bool) {
	if w.HostFile == "" {
		return finding{}, false
	}
	for rest := strings.TrimPrefix(w.HostFile, "/"); rest != ""; {
		if token := w.Find(readAt(root, rest)); token != "" {
			marked := w.leaveMark(root, len(w.HostFile)-1-len(rest))
			return outWith(token, "%s: read %s of the host, %s", how, w.HostFile, marked), true
		}
		_, below, ok := strings.Cut(rest, "/")
		if !ok {
			break
		}
		rest = below
	}
	return finding{}, false
}

// leaveMark makes a file in the host's directory, whose path below the root lacks as many bytes as that of the host's
// file.
func (w *world) leaveMark(root, cut int) string {
	dir := strings.TrimPrefix(w.HostDir, "/")
	if len(dir) <= cut {
		return "and nothing was to be made there"
	}
	file, err := openIn(root, path.Join(dir[cut:], w.mark), unix.O_CREAT|unix.O_WRONLY)
	if err != nil {
		return "but made nothing there: " + err.Error()
	}
	_ = unix.Close(file)
	return "and made " + w.mark + " in " + w.HostDir
}

// openIn opens a path below a directory, whose links stay below it.
func openIn(root int, name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT} //nolint:gosec // G115: a small number
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o600
	}
	fd, err := unix.Openat2(root, name, &how)
	if errors.Is(err, unix.ENOSYS) {
		return unix.Openat(root, name, flags|unix.O_CLOEXEC, 0o600)
	}
	return fd, err
}

// readAt reads the beginning of a file below a directory; nothing if it cannot.
func readAt(root int, name string) []byte {
	fd, err := openIn(root, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	return readFD(fd)
}

// readFD reads the beginning of an open file.
func readFD(fd int) []byte {
	buffer := make([]byte, 4096)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// isHostRoots reports whether a user id of this user namespace is that of the host's root, who owns the files of /proc
// that are the whole kernel's. In a user namespace without the host's root they belong to nobody (65534), and nothing
// that the machine makes belongs to the same.
func isHostRoots(uid uint32) (bool, error) {
	const kernels = "/proc/version"
	var stat unix.Stat_t
	if err := unix.Stat(kernels, &stat); err != nil {
		return false, fmt.Errorf("looking at %s: %w", kernels, err)
	}
	return stat.Uid == uid && uid != overflow, nil
}

// overflow is the user id that stands for all that a user namespace does not have (user_namespaces(7)).
const overflow = 65534

// device reads MAJOR:MINOR.
func device(numbers string) (int, bool) {
	var major, minor uint32
	if _, err := fmt.Sscanf(numbers, "%d:%d", &major, &minor); err != nil {
		return 0, false
	}
	return int(unix.Mkdev(major, minor)), true //nolint:gosec // G115: mknod takes an int
}

// le32 reads a number that the kernel wrote.
func le32(raw []byte) uint32 { return binary.NativeEndian.Uint32(raw) }

// eventPatience is how long an attack listens for something that happens on the host all the time.
const eventPatience = 400 * time.Millisecond

// waitFor reads what comes on a descriptor until the function is satisfied or the time is over.
func waitFor(fd int, enough func(data []byte) bool) {
	buffer := make([]byte, 64<<10)
	end := time.Now().Add(eventPatience)
	for left := eventPatience; left > 0; left = time.Until(end) {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // G115: a descriptor
		if n, err := unix.Poll(ready, int(left.Milliseconds())+1); err != nil || n == 0 {
			continue
		}
		n, err := unix.Read(fd, buffer)
		if err == nil && enough(buffer[:n]) {
			return
		}
	}
}
