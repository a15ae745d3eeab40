// SPDX-License-Identifier: Apache-2.0

package pulledstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/blobstore"
)

// Collect removes what was used longest ago, if there are more bytes than a bound, until a tenth of the bound is free.
// It reports how much it removed, and how much there is then. Tags that lead to nothing any more go as well.
func (s *Store) Collect(bound int64) (blobs int, removed, left int64, err error) {
	all, err := s.blobs().List()
	if err != nil {
		return 0, 0, 0, err
	}
	all = slices.DeleteFunc(all, func(b blobstore.Blob) bool { return b.Digest == "" })
	for _, b := range all {
		left += b.Size
	}
	if left <= bound {
		return 0, 0, left, nil
	}
	slices.SortFunc(all, func(a, b blobstore.Blob) int { return a.Used.Compare(b.Used) })
	for _, b := range all {
		if left <= bound-bound/10 {
			break
		}
		if err := os.Remove(s.path("types", b.Digest.Encoded())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return blobs, removed, left, fmt.Errorf("removing the type of a pulled manifest: %w", err)
		}
		if err := b.Remove(); err != nil {
			return blobs, removed, left, err
		}
		blobs++
		removed, left = removed+b.Size, left-b.Size
	}
	return blobs, removed, left, s.collectTags()
}

func (s *Store) tagFiles() ([]string, error) {
	files, err := filepath.Glob(s.path("tags", "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("looking at pulled tags: %w", err)
	}
	return files, nil
}

// roomForTag counts one more tag. If they are too many then, those used longest ago go until a tenth of the bound is
// free. The mutex is held.
func (s *Store) roomForTag() error {
	if s.tags++; s.tags <= s.maxTags {
		return nil
	}
	files, err := s.tagFiles()
	if err != nil {
		return err
	}
	used := make(map[string]time.Time, len(files))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			used[file] = info.ModTime()
		}
	}
	slices.SortFunc(files, func(a, b string) int { return used[a].Compare(used[b]) })
	s.tags = len(files) + 1
	for _, file := range files {
		if s.tags <= s.maxTags-s.maxTags/10 {
			break
		}
		if err := removeTag(file); err != nil {
			return err
		}
		s.tags--
	}
	return nil
}

func removeTag(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a pulled tag: %w", err)
	}
	_ = os.Remove(filepath.Dir(file)) // unless it has others
	return nil
}

// collectTags removes tags that lead to nothing, and repositories without tags.
func (s *Store) collectTags() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	files, err := s.tagFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // being written or removed
		}
		path, err := s.blob(digest.Digest(content))
		if err == nil {
			if _, err = os.Lstat(path); err == nil { //nolint:gosec // G703: blob has checked the digest
				continue
			}
		}
		if err := removeTag(file); err != nil {
			return err
		}
	}
	return nil
}
