// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// minRoom is what pushes leave free on the host's disk, in bytes, as pulls do: etcd is on it, too.
const minRoom = 1 << 30

// free is how many bytes the file system of a directory has left for its user.
func free(dir string) (int64, error) {
	var about unix.Statfs_t
	if err := unix.Statfs(dir, &about); err != nil {
		return 0, fmt.Errorf("looking at the disk of the registry: %w", err)
	}
	return int64(about.Bavail) * about.Bsize, nil //nolint:gosec // G115: far below 2^63
}

// room is an error that is [unix.ENOSPC] if nothing more may be pushed.
func (s *Store) room() error {
	left, err := s.free(s.dir)
	if err == nil && left < minRoom {
		err = fmt.Errorf("the host's disk has %d bytes left, of which %d are not for images: %w", left, int64(minRoom), unix.ENOSPC)
	}
	return err
}

// roomy writes as long as there is room.
type roomy struct {
	store *Store
	to    io.Writer
}

// Write writes a part.
func (r roomy) Write(part []byte) (int, error) {
	if err := r.store.room(); err != nil {
		return 0, err
	}
	return r.to.Write(part)
}
