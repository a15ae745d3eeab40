// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// IDs are the users and groups of a user namespace: its id n is the host's First+n, for n below Count. The zero value
// are the host's own ids.
type IDs struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// Own reports whether they are ids of a namespace, and not those of the host.
func (i IDs) Own() bool { return i.Count > 0 }

// Host is what an id of the namespace is on the host.
func (i IDs) Host(id uint32) int { return int(i.First + id) }

// Has reports whether an id of the host is one of the namespace.
func (i IDs) Has(host uint32) bool { return host >= i.First && host-i.First < i.Count }

func (i IDs) mapping() []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(i.First), Size: int(i.Count)}}
}

// Open returns a user namespace with the ids, for mounts that show the owners of files by them. Nothing runs in it.
func (i IDs) Open() (*os.File, error) {
	// A process has to be in it while it is opened; this one ends when its input does.
	cmd := exec.Command("/bin/cat") //nolint:noctx // it ends below
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: i.mapping(), GidMappings: i.mapping()}
	cmd.Env = []string{}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "ns/user"))
	_ = input.Close()
	_ = cmd.Wait() // how it ends says nothing
	if err != nil {
		return nil, fmt.Errorf("opening a user namespace: %w", err)
	}
	return namespace, nil
}
