// SPDX-License-Identifier: Apache-2.0

package devicemount

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/userns"
)

const (
	// maxHeard is how many calls are read at a time. Each may hang, since their arguments are in memory of the
	// caller's, which may be a file.
	maxHeard = 64
	// maxMounts is how many mounts of devices are made at a time. Each may hang.
	maxMounts = 16
	// retryInterval is how long it is waited after an error of the kernel's that has no name here.
	retryInterval = 100 * time.Millisecond
)

// environment says which descriptor hears of mounts, from one program that process number one is to the next.
const environment = "MUSTER_MOUNT_LISTENER"

// Pass has the program that the calling process becomes next have a descriptor of userns.ConfineListening, and returns
// its environment.
func Pass(fd int, env []string) ([]string, error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return nil, fmt.Errorf("passing on what hears of mounts: %w", err)
	}
	return append(slices.Clone(env), environment+"="+strconv.Itoa(fd)), nil
}

// Passed takes the descriptor, which no program that is started has from then on. False if there is none.
func Passed() (fd int, ok bool) {
	fd, err := strconv.Atoi(os.Getenv(environment))
	_ = os.Unsetenv(environment)
	if err != nil || fd < 3 {
		return -1, false
	}
	unix.CloseOnExec(fd)
	return fd, true
}

// Ask asks the host for a mount of the file system on a device. Errors wrap the errno that mount(2) has for them.
type Ask func(ctx context.Context, device *os.File, fileSystem blockfs.Request) (*os.File, error)

// server answers the calls of a machine.
type server struct {
	listener *listener
	ask      Ask
	log      *slog.Logger
	hearing  chan struct{} // a place for each call that is looked at
	making   chan struct{} // a place for each mount
	asking   chan struct{} // a single place: the host answers few requests of a machine at a time, and the kubelet has some
}

// Serve answers mounts that a descriptor of userns.ConfineListening hears of, as long as this process runs: nothing
// mounts anything on the machine while nobody answers. The context is the host's to be asked with, and does not end it.
func Serve(ctx context.Context, fd int, ask Ask, log *slog.Logger) error {
	l, err := newListener(fd)
	if err != nil {
		return err
	}
	s := &server{listener: l, ask: ask, log: log, hearing: make(chan struct{}, maxHeard), making: make(chan struct{}, maxMounts), asking: make(chan struct{}, 1)}
	for said := ""; ; {
		n, err := l.next()
		if err != nil {
			if err.Error() != said {
				log.Error("hearing of mounts; trying again", "error", err)
				said = err.Error()
			}
			time.Sleep(retryInterval)
			continue
		}
		select {
		case s.hearing <- struct{}{}:
			go func() {
				defer func() { <-s.hearing }()
				s.hear(ctx, n)
			}()
		default: // as many hang
			s.answer(n, errNotOurs) //nolint:gosec // G118: it does not end with the context
		}
	}
}

// hear answers a call, or has it answered.
func (s *server) hear(ctx context.Context, n notification) {
	typeAt := n.args[2]
	if n.call == unix.SYS_FSOPEN {
		typeAt = n.args[0]
	}
	kind, err := readString(n.pid, typeAt)
	switch {
	case err != nil || !slices.Contains(blockfs.Types, kind):
		s.answer(n, errNotOurs)
	case n.call == unix.SYS_FSOPEN: // whoever called it tries mount(2)
		s.answer(n, unix.ENOSYS)
	default:
		select {
		case s.making <- struct{}{}:
			go func() {
				defer func() { <-s.making }()
				s.answer(n, s.mount(ctx, n))
			}()
		default:
			s.answer(n, unix.EAGAIN)
		}
	}
}

// answer lets a call go on, or ends it with an error, or well.
func (s *server) answer(n notification, err error) {
	r := response{id: n.id}
	var errno unix.Errno
	switch {
	case err == nil:
	case errors.Is(err, errNotOurs):
		r.flags = goOn
	case errors.As(err, &errno):
		r.errno = -int32(errno)
	default:
		r.errno = -int32(unix.EPERM)
	}
	if err := s.listener.respond(r); err != nil {
		s.log.Error("answering a mount", "error", err)
	}
}

// asked is what a caller wants mounted.
type asked struct {
	source, target string
	fileSystem     blockfs.Request
}

// read reads it from the caller's memory.
func read(n notification) (a asked, err error) {
	flags, anew := userns.IsNewMount(n.args[3])
	if n.call != unix.SYS_MOUNT || !anew || n.args[0] == 0 {
		return a, errNotOurs
	}
	a.fileSystem.Flags = flags
	for into, address := range map[*string]uint64{&a.source: n.args[0], &a.target: n.args[1], &a.fileSystem.Type: n.args[2], &a.fileSystem.Options: n.args[4]} {
		if into == &a.fileSystem.Options && address == 0 {
			continue
		}
		if *into, err = readString(n.pid, address); err != nil {
			return a, errNotOurs
		}
	}
	if !slices.Contains(blockfs.Types, a.fileSystem.Type) { // it was another a moment ago
		return a, errNotOurs
	}
	return a, nil
}

// mount does what a caller has asked for.
func (s *server) mount(ctx context.Context, n notification) error {
	a, err := read(n)
	if err != nil {
		return err
	}
	c, err := open(n.pid)
	if err != nil {
		return err
	}
	defer c.close()
	if !s.listener.waits(n.id) { // the call has ended: its arguments may have been another's, and nobody hears the answer
		return errNotOurs
	}
	var device *os.File
	place := -1
	defer func() {
		if place >= 0 {
			_ = unix.Close(place)
		}
	}()
	if err := c.as(func() (err error) {
		if device, err = openDevice(a.source, a.fileSystem.Flags&unix.MS_RDONLY != 0); err != nil {
			return err
		}
		place, err = openPlace(a.target)
		return err
	}); err != nil {
		_ = device.Close()
		return err
	}
	defer func() { _ = device.Close() }()
	mount, err := s.askFor(ctx, device, a.fileSystem)
	if err != nil {
		s.log.Warn("a device was not mounted", "device", a.source, "at", a.target, "type", a.fileSystem.Type, "error", err)
		return err
	}
	defer func() { _ = mount.Close() }()
	if !s.listener.waits(n.id) {
		return errNotOurs
	}
	return c.as(func() error {
		return unix.MoveMount(int(mount.Fd()), "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	})
}

// askFor asks the host when its turn has come.
func (s *server) askFor(ctx context.Context, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
	s.asking <- struct{}{}
	defer func() { <-s.asking }()
	return s.ask(ctx, device, fileSystem)
}

// openDevice opens a block device by a path of the caller's. Links that lead elsewhere by themselves (/proc/PID/fd) are
// not followed: they would be this process's.
func openDevice(path string, readOnly bool) (*os.File, error) {
	var is unix.Stat_t
	if err := unix.Stat(path, &is); err != nil {
		return nil, err
	}
	if is.Mode&unix.S_IFMT != unix.S_IFBLK {
		return nil, errNotOurs
	}
	flags := uint64(unix.O_RDWR)
	if readOnly {
		flags = unix.O_RDONLY
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY, Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	return deviceOf(fd, path)
}

// deviceOf makes a file of what was opened, if it is a block device: the path may lead elsewhere by now. Package os asks
// a file that does not block whether it is ready, and holds up all of this process while a program that has the file
// (FUSE) does not answer.
func deviceOf(fd int, path string) (*os.File, error) {
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFBLK {
		_ = unix.Close(fd)
		return nil, errNotOurs
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openPlace takes hold of the directory at which something is to be mounted, by a path of the caller's.
func openPlace(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}
