// SPDX-License-Identifier: Apache-2.0

package prize

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// The victim is a user that nobody on a host is likely to be, another one each time, since the kernel takes keys
	// back at its leisure. Root's limits are left alone: the rest of the host lives by them.
	firstVictim, victims = 40_000, 20_000
	// left is how many inotify instances and keys the victim can still have.
	left = 4
	// mostInstances is how many the limit of a host may be for all but a few of them to be taken.
	mostInstances = 2048
)

// plantUser uses up nearly all that the kernel lets one user have. Somebody who is counted together with that user gets
// no more than what is left.
func (p *Planted) plantUser(string) error {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	p.Map.HostUID = firstVictim + int(binary.LittleEndian.Uint32(random[:])%victims)
	victim := uintptr(p.Map.HostUID)
	taken, release := make(chan error), make(chan struct{})
	ended := make(chan struct{})
	var instances []int
	go func() {
		defer close(ended)
		// The thread keeps the user for good, and its keyring ends with it.
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, victim, victim, victim); errno != 0 {
			taken <- fmt.Errorf("becoming user %d: %w", victim, errno)
			return
		}
		var err error
		instances, err = p.takeInstances()
		if err == nil {
			err = p.takeKeys()
		}
		taken <- err
		if err == nil {
			<-release
		}
	}()
	err := <-taken
	p.later(func() error {
		close(release)
		<-ended
		for _, fd := range instances {
			_ = unix.Close(fd)
		}
		return nil
	})
	return err
}

// takeInstances takes inotify instances for the calling thread's user.
func (p *Planted) takeInstances() ([]int, error) {
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, err
	}
	if limit > mostInstances {
		return nil, nil
	}
	var all []int
	for {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		switch {
		case errors.Is(err, unix.EMFILE) && len(all) > left:
			for _, fd := range all[len(all)-left:] {
				_ = unix.Close(fd)
			}
			p.Map.HostInotify = left
			return all[:len(all)-left], nil
		case err != nil:
			return all, fmt.Errorf("taking inotify instance %d of %d: %w", len(all)+1, limit, err)
		}
		all = append(all, fd)
	}
}

// takeKeys takes keys for the calling thread's user, in the keyring of the thread.
func (p *Planted) takeKeys() error {
	const most = 10_000
	var all []int
	for i := range most {
		id, err := unix.AddKey("user", "muster-escape-"+strconv.Itoa(i), []byte("x"), unix.KEY_SPEC_THREAD_KEYRING)
		switch {
		case errors.Is(err, unix.EDQUOT) && len(all) > left:
			for _, id := range all[len(all)-left:] {
				if _, err := unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0); err != nil {
					return fmt.Errorf("giving a key back: %w", err)
				}
			}
			p.Map.HostKeys = left
			return nil
		case errors.Is(err, unix.ENOSYS):
			return nil
		case err != nil:
			return fmt.Errorf("taking key %d: %w", i+1, err)
		}
		all = append(all, id)
	}
	return nil // a host without a limit
}
