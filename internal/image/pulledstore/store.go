// SPDX-License-Identifier: Apache-2.0

package pulledstore

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/blobstore"
)

// ErrNotKept means that there is no such manifest or blob.
var ErrNotKept = errors.New("it was not pulled yet")

// maxTags is how many tags are kept. Each tag is a file, and a repository of somebody else's may have any number of
// tags, perhaps all of one image.
const maxTags = 10_000

// Store is what was pulled, in a directory.
type Store struct {
	dir     string
	now     func() time.Time
	maxTags int

	mutex sync.Mutex
	tags  int // how many there are at most
}

// Open opens the store in a directory, which it makes. Unfinished pulls of an earlier process are removed: only one
// process at a time has the store.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, now: time.Now, maxTags: maxTags}
	if err := os.RemoveAll(s.path("partial")); err != nil {
		return nil, fmt.Errorf("removing what was being pulled: %w", err)
	}
	for _, name := range []string{"blobs", "types", "tags", "partial"} {
		if err := os.MkdirAll(s.path(name), 0o700); err != nil {
			return nil, fmt.Errorf("making a directory for pulled images: %w", err)
		}
	}
	files, err := s.tagFiles()
	if err != nil {
		return nil, err
	}
	s.tags = len(files)
	return s, nil
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// maxName is the longest name of a file.
const maxName = 255

// tag is the file of a tag of a repository, which is called with its registry: docker.io/library/nginx.
func (s *Store) tag(repository, tag string) (string, error) {
	name := url.PathEscape(repository)
	if !tagForm.MatchString(tag) || len(name) > maxName || name == "" || name[0] == '.' {
		return "", fmt.Errorf("invalid name of an image %.300q with the tag %.150q", repository, tag)
	}
	return s.path("tags", name, tag), nil
}

func (s *Store) blobs() blobstore.Dir { return blobstore.Dir(s.path("blobs")) }

func (s *Store) blob(sum digest.Digest) (string, error) {
	if err := blobstore.Check(sum); err != nil {
		return "", fmt.Errorf("invalid %w", err)
	}
	return s.blobs().Path(sum), nil
}

// Blob opens a blob, and notes that it was used.
func (s *Store) Blob(sum digest.Digest) (*os.File, error) {
	path, err := s.blob(sum)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", sum, ErrNotKept)
	}
	if err != nil {
		return nil, fmt.Errorf("opening blob %s: %w", sum, err)
	}
	now := s.now()
	if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("noting the use of blob %s: %w", sum, err), file.Close())
	}
	return file, nil
}

// Tag is the digest that a tag led to, and notes that it was used.
func (s *Store) Tag(repository, tag string) (digest.Digest, error) {
	path, err := s.tag(repository, tag)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s:%s: %w", repository, tag, ErrNotKept)
	}
	if err != nil {
		return "", fmt.Errorf("reading tag %s of %s: %w", tag, repository, err)
	}
	now := s.now()
	if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("noting the use of tag %s of %s: %w", tag, repository, err)
	}
	return digest.Digest(content), nil
}

// SetTag notes what a tag leads to. When there are too many, those used longest ago go.
func (s *Store) SetTag(repository, tag string, sum digest.Digest) error {
	path, err := s.tag(repository, tag)
	if err != nil {
		return err
	}
	now, err := s.Tag(repository, tag)
	if err == nil && now == sum {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if errors.Is(err, ErrNotKept) {
		if err := s.roomForTag(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("noting tag %s of %s: %w", tag, repository, err)
	}
	return atomicfile.Write(path, []byte(sum), 0o600)
}

// Manifest reads a manifest, and notes that it was used.
func (s *Store) Manifest(sum digest.Digest) (mediaType string, content []byte, err error) {
	path, err := s.blob(sum)
	if err != nil {
		return "", nil, err
	}
	kind, err := os.ReadFile(s.path("types", sum.Encoded()))
	if err == nil {
		content, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%s: %w", sum, ErrNotKept)
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading manifest %s: %w", sum, err)
	}
	now := s.now()
	if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("noting the use of manifest %s: %w", sum, err)
	}
	return string(kind), content, nil
}

// PutManifest keeps a manifest, if it has the digest. Otherwise the error is a *blobstore.DigestError.
func (s *Store) PutManifest(sum digest.Digest, mediaType string, content []byte) error {
	if err := s.blobs().Put(sum, content); err != nil {
		return err
	}
	return atomicfile.Write(s.path("types", sum.Encoded()), []byte(mediaType), 0o600)
}
