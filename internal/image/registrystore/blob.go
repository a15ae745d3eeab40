// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

func (s *Store) link(name string, sum digest.Digest) string {
	return filepath.Join(s.repository(name), "layers", sum.Encoded())
}

// Blob is the size of a blob in a repository.
func (s *Store) Blob(name string, sum digest.Digest) (int64, error) {
	file, err := s.OpenBlob(name, sum)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("looking at blob %s: %w", sum, err)
	}
	return info.Size(), nil
}

// OpenBlob opens a blob of a repository. It can be read on even if it is removed meanwhile.
func (s *Store) OpenBlob(name string, sum digest.Digest) (*os.File, error) {
	if _, err := s.Get(name); err != nil {
		return nil, err
	}
	if err := CheckDigest(sum); err != nil {
		return nil, err
	}
	missing := fmt.Errorf("%s@%s: %w", name, sum, ErrNoBlob)
	if _, err := os.Lstat(s.link(name, sum)); err != nil {
		if _, err := s.read(name, sum); err != nil { // a manifest is a blob, too
			return nil, missing
		}
	}
	file, err := os.Open(s.blobs().Path(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("opening blob %s: %w", sum, err)
	}
	return file, nil
}

// Mount gives a repository a blob of another one.
func (s *Store) Mount(ctx context.Context, from, to string, sum digest.Digest) error {
	return s.locked(ctx, func() error {
		if _, err := s.Get(to); err != nil {
			return err
		}
		if _, err := s.Blob(from, sum); err != nil {
			return err
		}
		return s.give(to, sum)
	})
}

// give notes that a repository has a blob. The store is locked.
func (s *Store) give(name string, sum digest.Digest) error {
	path := s.link(name, sum)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("noting blob %s in %s: %w", sum, name, err)
	}
	now := s.now()
	return os.Chtimes(path, now, now) // pushed again: a day begins anew
}

// Begin begins an upload to a repository.
func (s *Store) Begin(ctx context.Context, name string) (id string, err error) {
	id = uuid.NewString()
	return id, s.locked(ctx, func() error {
		if _, err := s.Get(name); err != nil {
			return err
		}
		dir := filepath.Join(s.dir, "uploads", id)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("beginning an upload: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
			return fmt.Errorf("beginning an upload: %w", err)
		}
		return os.WriteFile(filepath.Join(dir, "repository"), []byte(name), 0o600)
	})
}

// upload is the file of an upload to a repository.
func (s *Store) upload(name, id string) (string, error) {
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return "", ErrNoUpload
	}
	dir := filepath.Join(s.dir, "uploads", id)
	owner, err := os.ReadFile(filepath.Join(dir, "repository"))
	if err != nil || string(owner) != name {
		return "", ErrNoUpload
	}
	return filepath.Join(dir, "data"), nil
}

// Uploaded is how much of an upload there is.
func (s *Store) Uploaded(name, id string) (int64, error) {
	path, err := s.upload(name, id)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, ErrNoUpload
	}
	return info.Size(), nil
}

// OffsetError is a part of an upload that does not begin where the upload is.
type OffsetError struct{ At int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the upload is at byte %d: the next part must begin there", e.At)
}

// Append adds a part to an upload, which must be at an offset unless that is negative, and returns where it is then. If
// a part breaks off, the bytes that came are kept.
func (s *Store) Append(name, id string, offset int64, from io.Reader) (at int64, err error) {
	path, err := s.upload(name, id)
	if err != nil {
		return 0, err
	}
	file, err := hold(path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("looking at an upload: %w", err), file.Close())
	}
	if at = info.Size(); offset >= 0 && offset != at {
		return at, errors.Join(&OffsetError{at}, file.Close())
	}
	n, err := io.CopyBuffer(roomy{s, file}, from, make([]byte, 256<<10))
	if err = errors.Join(err, file.Close()); err != nil {
		err = fmt.Errorf("writing an upload: %w", err)
	}
	return at + n, err
}

// hold opens the data of an upload for one request alone. Without that, a part that is still being sent when another
// request finishes the upload would go on growing the blob that it has become, which all repositories with that digest
// share.
func hold(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, ErrNoUpload
	}
	if err := take(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// take locks a file that was opened at a path, unless it was finished or ended meanwhile.
func take(file *os.File, path string) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	} else if err != nil {
		return fmt.Errorf("locking an upload: %w", err)
	}
	opened, err := file.Stat()
	if err != nil {
		return fmt.Errorf("looking at an upload: %w", err)
	}
	if named, err := os.Lstat(path); err != nil || !os.SameFile(opened, named) {
		return ErrNoUpload
	}
	return nil
}

// Finish makes an upload a blob of its repository, if it has the digest.
func (s *Store) Finish(ctx context.Context, name, id string, sum digest.Digest) error {
	if err := CheckDigest(sum); err != nil {
		return err
	}
	path, err := s.upload(name, id)
	if err != nil {
		return err
	}
	file, err := hold(path, os.O_RDONLY) // until it is a blob: what was hashed is what is kept
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	got, err := digest.SHA256.FromReader(file)
	if err == nil && got == sum {
		err = file.Sync()
	}
	if err != nil {
		return fmt.Errorf("reading an upload: %w", err)
	}
	if got != sum {
		return fmt.Errorf("%w digest %s: what was uploaded has %s", ErrInvalid, sum, got)
	}
	return s.locked(ctx, func() error {
		if _, err := s.Get(name); err != nil {
			return err
		}
		if err := s.blobs().Keep(file, sum); err != nil {
			return err
		}
		if err := s.give(name, sum); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Dir(path))
	})
}

// Abort ends an upload.
func (s *Store) Abort(name, id string) error {
	path, err := s.upload(name, id)
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(path))
}
