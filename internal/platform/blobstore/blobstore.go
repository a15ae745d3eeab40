// SPDX-License-Identifier: Apache-2.0

// Package blobstore keeps blobs in a directory: each is a file that is called by the 64 hexadecimal digits of its
// SHA-256, whole and on the disk from its first moment on. Who may see a blob, and how long a blob stays, is the
// business of the stores above.
package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Dir is a directory of blobs.
type Dir string

// Check refuses a digest that is no SHA-256, before it becomes a file's name.
func Check(sum digest.Digest) error {
	if err := sum.Validate(); err != nil || sum.Algorithm() != digest.SHA256 {
		return fmt.Errorf("digest %.150q: it must be sha256: and 64 hexadecimal digits", string(sum))
	}
	return nil
}

// DigestError says that content has another digest than it was called by.
type DigestError struct{ Want, Got digest.Digest }

func (e *DigestError) Error() string {
	return fmt.Sprintf("the content of %s has the digest %s", e.Want, e.Got)
}

// Path is where a blob is. The digest must have been checked.
func (d Dir) Path(sum digest.Digest) string { return filepath.Join(string(d), sum.Encoded()) }

// Put writes a blob that is in memory, if it has the digest. Otherwise the error is a *DigestError.
func (d Dir) Put(sum digest.Digest, content []byte) error {
	if err := Check(sum); err != nil {
		return err
	}
	if got := digest.FromBytes(content); got != sum {
		return &DigestError{sum, got}
	}
	return atomicfile.Write(d.Path(sum), content, 0o400)
}

// Keep moves an open file of the same file system into the directory. The caller has hashed it, and nobody writes to it
// any more.
func (d Dir) Keep(file *os.File, sum digest.Digest) error {
	err := Check(sum)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), d.Path(sum))
	}
	if err != nil {
		return fmt.Errorf("keeping blob %s: %w", sum, err)
	}
	return nil
}

// Blob is a file of the directory.
type Blob struct {
	// Name is that of the file.
	Name string
	// Digest is empty while the blob is being written.
	Digest digest.Digest
	Size   int64 // in bytes
	// Used is when the file was written, or its time was set.
	Used time.Time
	dir  Dir
}

// List lists the blobs. Blobs that go meanwhile are left out.
func (d Dir) List() ([]Blob, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, fmt.Errorf("listing blobs: %w", err)
	}
	all := make([]Blob, 0, len(entries))
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing blobs: %w", err)
		}
		b := Blob{Name: entry.Name(), Size: info.Size(), Used: info.ModTime(), dir: d}
		if !strings.HasPrefix(entry.Name(), ".") {
			b.Digest = digest.NewDigestFromEncoded(digest.SHA256, entry.Name())
		}
		all = append(all, b)
	}
	return all, nil
}

// Remove removes a blob that List found, which may have gone already.
func (b Blob) Remove() error {
	if err := os.Remove(filepath.Join(string(b.dir), b.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a blob: %w", err)
	}
	return nil
}

// Sync makes sure that the names of blobs that were kept are on the disk.
func (d Dir) Sync() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return fmt.Errorf("syncing the directory of blobs: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
