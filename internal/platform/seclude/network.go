// SPDX-License-Identifier: Apache-2.0

package seclude

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ownNetwork moves the calling thread into a new network namespace, in which the loopback interface is up.
func ownNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("taking a network namespace: %w", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket in a network namespace: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request)
	}
	if err == nil {
		request.SetUint16(request.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		return fmt.Errorf("bringing up the loopback interface of a network namespace: %w", err)
	}
	return nil
}
