// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/blobstore"
	"muster.dev/muster/internal/platform/filelock"
)

// The answers that callers tell apart.
var (
	ErrNoRepository = errors.New("there is no such repository")
	ErrExists       = errors.New("there is a repository of that name")
	ErrNotEmpty     = errors.New("the repository has images")
	ErrNoManifest   = errors.New("there is no such image")
	ErrNoBlob       = errors.New("there is no such blob in the repository")
	ErrNoUpload     = errors.New("there is no such upload")
	ErrBusy         = errors.New("another request is writing or finishing the upload")
	ErrInvalid      = errors.New("invalid")
	ErrImmutable    = errors.New("the tag exists, and tags of the repository are immutable")
)

// Repository is a repository of images.
type Repository struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Immutable tags lead to one image for good.
	Immutable  bool              `json:"immutable,omitempty"`
	ScanOnPush bool              `json:"scanOnPush,omitempty"` // kept; nothing scans
	Tags       map[string]string `json:"tags,omitempty"`
}

// Store is the repositories in a directory.
type Store struct {
	dir  string
	now  func() time.Time
	free func(dir string) (int64, error)
}

// New makes a Store. Nothing is read or made yet.
func New(dir string) *Store { return &Store{dir: dir, now: time.Now, free: free} }

// nameForm is ECR's (repositoryName).
var nameForm = regexp.MustCompile(`^(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*$`)

// maxName is ECR's, in bytes. As a file's name it has at most 128 slashes, each of three bytes; a file's name may have 255.
const maxName = 256

// CheckName checks the name of a repository.
func CheckName(name string) error {
	if len(name) < 2 || len(name) > maxName || !nameForm.MatchString(name) || len(url.PathEscape(name)) > 255 {
		return fmt.Errorf("%w repository name %.300q: it must have from 2 to %d characters: lower-case letters and digits, between them one of . _ - or /", ErrInvalid, name, maxName)
	}
	return nil
}

func (s *Store) repository(name string) string {
	return filepath.Join(s.dir, "repositories", url.PathEscape(name))
}

func (s *Store) blobs() blobstore.Dir {
	return blobstore.Dir(filepath.Join(s.dir, "blobs", string(digest.SHA256)))
}

const recordName = "repository.json"

// locked calls fn while no other process changes the store.
func (s *Store) locked(ctx context.Context, fn func() error) error {
	for _, dir := range []string{"repositories", "uploads", "blobs/sha256"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return fmt.Errorf("making a directory of the registry: %w", err)
		}
	}
	release, err := filelock.Wait(ctx, s.dir, "lock")
	if err != nil {
		return err
	}
	defer release()
	return fn()
}

// Create makes a repository.
func (s *Store) Create(ctx context.Context, r Repository) error {
	if err := CheckName(r.Name); err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		if _, err := s.Get(r.Name); !errors.Is(err, ErrNoRepository) {
			return errors.Join(err, fmt.Errorf("%s: %w", r.Name, ErrExists))
		}
		r.Created = s.now().UTC().Truncate(time.Second)
		for _, dir := range []string{"layers", "manifests", "tags"} {
			if err := os.MkdirAll(filepath.Join(s.repository(r.Name), dir), 0o700); err != nil {
				return fmt.Errorf("making repository %s: %w", r.Name, err)
			}
		}
		return s.write(r)
	})
}

func (s *Store) write(r Repository) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing repository %s: %w", r.Name, err)
	}
	return atomicfile.Write(filepath.Join(s.repository(r.Name), recordName), append(content, '\n'), 0o600)
}

// Get finds a repository.
func (s *Store) Get(name string) (Repository, error) {
	var r Repository
	if err := CheckName(name); err != nil {
		return r, err
	}
	content, err := os.ReadFile(filepath.Join(s.repository(name), recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("%s: %w", name, ErrNoRepository)
	case err == nil:
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, fmt.Errorf("reading repository %s: %w", name, err)
	}
	return r, nil
}

// List lists the repositories by their names.
func (s *Store) List() ([]Repository, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "repositories"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing repositories: %w", err)
	}
	var all []Repository
	for _, entry := range entries {
		name, err := url.PathUnescape(entry.Name())
		if err != nil || CheckName(name) != nil {
			continue // being removed
		}
		r, err := s.Get(name)
		if errors.Is(err, ErrNoRepository) {
			continue // being made or removed
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Repository) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Update changes a repository.
func (s *Store) Update(ctx context.Context, name string, change func(*Repository) error) error {
	return s.locked(ctx, func() error {
		r, err := s.Get(name)
		if err != nil {
			return err
		}
		if err := change(&r); err != nil {
			return err
		}
		return s.write(r)
	})
}

// removing begins the names of repositories that are being removed, which no repository has.
const removing = "."

// Delete removes a repository, and a repository with images only if forced.
func (s *Store) Delete(ctx context.Context, name string, force bool) error {
	return s.locked(ctx, func() error {
		if _, err := s.Get(name); err != nil {
			return err
		}
		manifests, err := s.Manifests(name)
		if err != nil {
			return err
		}
		if len(manifests) > 0 && !force {
			return fmt.Errorf("%s: %w", name, ErrNotEmpty)
		}
		gone := filepath.Join(s.dir, "repositories", fmt.Sprint(removing, s.now().UnixNano()))
		if err := os.Rename(s.repository(name), gone); err != nil {
			return fmt.Errorf("removing repository %s: %w", name, err)
		}
		return os.RemoveAll(gone)
	})
}
