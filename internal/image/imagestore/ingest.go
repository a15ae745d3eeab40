// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/platform/blobstore"
	"muster.dev/muster/internal/platform/filelock"
)

// ingestPrefix begins the directories of loads.
const ingestPrefix = "ingest-"

// Ingest holds blobs that were hashed and do not belong to an image yet. Nobody else writes to it.
type Ingest struct {
	store   *Store
	dir     string
	release func()
	number  int
}

// Begin makes a place for the blobs of a load. End it.
func (s *Store) Begin() (*Ingest, error) {
	if err := os.MkdirAll(s.dir(), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of images: %w", err)
	}
	for {
		dir, err := os.MkdirTemp(s.dir(), ingestPrefix)
		if err != nil {
			return nil, fmt.Errorf("making a directory for blobs: %w", err)
		}
		release, err := filelock.Take(dir, lockName)
		if errors.Is(err, filelock.ErrTaken) { // somebody takes it for one that was left
			continue
		}
		if err != nil {
			return nil, err
		}
		return &Ingest{store: s, dir: dir, release: release}, nil
	}
}

// End removes what became no image's.
func (i *Ingest) End() error {
	err := os.RemoveAll(i.dir)
	i.release()
	return err
}

// Add takes a blob in, to the end of the reader.
func (i *Ingest) Add(from io.Reader) (_ digest.Digest, size int64, err error) {
	i.number++
	path := filepath.Join(i.dir, fmt.Sprint("blob-", i.number))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return "", 0, fmt.Errorf("taking a blob in: %w", err)
	}
	sum := digest.SHA256.Digester()
	size, err = io.CopyBuffer(writerOnly{io.MultiWriter(file, sum.Hash())}, from, make([]byte, 1<<20))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", 0, fmt.Errorf("taking a blob in: %w", errors.Join(err, os.Remove(path)))
	}
	if err := os.Rename(path, i.path(sum.Digest())); err != nil {
		return "", 0, fmt.Errorf("taking a blob in: %w", err)
	}
	return sum.Digest(), size, nil
}

// writerOnly keeps io.CopyBuffer to its buffer.
type writerOnly struct{ io.Writer }

func (i *Ingest) path(blob digest.Digest) string {
	return filepath.Join(i.dir, blob.Encoded())
}

// Open opens a blob that was taken in, or that the store has.
func (i *Ingest) Open(blob digest.Digest) (*os.File, error) {
	if err := blobstore.Check(blob); err != nil {
		return nil, fmt.Errorf("opening a blob: %w", err)
	}
	file, err := os.Open(i.path(blob))
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.Open(i.store.blobs().Path(blob))
	}
	return file, err
}

// keep moves a blob into the store, on the disk for good. The store is locked.
func (i *Ingest) keep(blob ocispec.Descriptor) error {
	if info, err := os.Stat(i.store.blobs().Path(blob.Digest)); err == nil && info.Size() == blob.Size {
		return nil
	}
	file, err := os.Open(i.path(blob.Digest))
	if err != nil {
		return fmt.Errorf("keeping blob %s: %w", blob.Digest, err)
	}
	return errors.Join(i.store.blobs().Keep(file, blob.Digest), file.Close())
}
