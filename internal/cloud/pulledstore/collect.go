// SPDX-License-Identifier: Apache-2.0

package pulledstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// Collect removes what was used longest ago, if there are more bytes than a bound, until a tenth of the bound is free. It reports how much it removed, and
// how much there is then. Tags that lead to nothing any more go as well.
func (s *Store) Collect(bound int64) (blobs int, removed, left int64, err error) {
	type blob struct {
		name string
		size int64
		used time.Time
	}
	entries, err := os.ReadDir(s.path("blobs"))
	if err != nil {
		return 0, 0, 0, fmt.Errorf("looking at pulled blobs: %w", err)
	}
	var all []blob
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(entry.Name(), ".") { // being written
			continue
		}
		if err != nil {
			return 0, 0, 0, fmt.Errorf("looking at pulled blobs: %w", err)
		}
		all = append(all, blob{entry.Name(), info.Size(), info.ModTime()})
		left += info.Size()
	}
	if left <= bound {
		return 0, 0, left, nil
	}
	slices.SortFunc(all, func(a, b blob) int { return a.used.Compare(b.used) })
	for _, b := range all {
		if left <= bound-bound/10 {
			break
		}
		for _, path := range []string{s.path("types", b.name), s.path("blobs", b.name)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return blobs, removed, left, fmt.Errorf("removing a pulled blob: %w", err)
			}
		}
		blobs++
		removed, left = removed+b.size, left-b.size
	}
	return blobs, removed, left, s.collectTags()
}

// collectTags removes tags that lead to nothing, and repositories without tags.
func (s *Store) collectTags() error {
	files, err := filepath.Glob(s.path("tags", "*", "*"))
	if err != nil {
		return fmt.Errorf("looking at pulled tags: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // being written or removed
		}
		path, err := s.blob(digest.Digest(content))
		if err == nil {
			if _, err = os.Lstat(path); err == nil {
				continue
			}
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a pulled tag: %w", err)
		}
		_ = os.Remove(filepath.Dir(file)) // unless it has others
	}
	return nil
}
