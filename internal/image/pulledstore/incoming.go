// SPDX-License-Identifier: Apache-2.0

package pulledstore

import (
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/blobstore"
)

// Free is how many bytes the file system of the store has left for its user.
func (s *Store) Free() (int64, error) {
	var about unix.Statfs_t
	if err := unix.Statfs(s.dir, &about); err != nil {
		return 0, fmt.Errorf("looking at the disk of pulled images: %w", err)
	}
	return int64(about.Bavail) * about.Bsize, nil //nolint:gosec // G115: far below 2^63
}

// Incoming is a blob that is being pulled.
type Incoming struct {
	store    *Store
	file     *os.File
	digester digest.Digester
}

// Begin begins a blob.
func (s *Store) Begin() (*Incoming, error) {
	file, err := os.CreateTemp(s.path("partial"), "")
	if err != nil {
		return nil, fmt.Errorf("beginning a blob: %w", err)
	}
	return &Incoming{s, file, digest.SHA256.Digester()}, nil
}

// Write adds to it.
func (i *Incoming) Write(part []byte) (int, error) {
	n, err := i.file.Write(part)
	_, _ = i.digester.Hash().Write(part[:n])
	return n, err
}

// Open opens what there is of it, to be read while it grows. It cannot be opened any more once it is kept or dropped.
func (i *Incoming) Open() (*os.File, error) { return os.Open(i.file.Name()) }

// Keep makes it a blob of the store, if it has the digest. Otherwise the error is a *blobstore.DigestError, and the
// blob is dropped.
func (i *Incoming) Keep(sum digest.Digest) error {
	if got := i.digester.Digest(); got != sum {
		return errors.Join(&blobstore.DigestError{Want: sum, Got: got}, i.Drop())
	}
	if err := i.store.blobs().Keep(i.file, sum); err != nil {
		return errors.Join(err, i.Drop())
	}
	return i.file.Close()
}

// Drop removes it.
func (i *Incoming) Drop() error {
	return errors.Join(i.file.Close(), os.Remove(i.file.Name()))
}
