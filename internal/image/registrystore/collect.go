// SPDX-License-Identifier: Apache-2.0

package registrystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// restTime is how long what nothing refers to stays: a push takes less.
const restTime = 24 * time.Hour

// Collect removes what nothing refers to, and reports how many blobs went and how many bytes they had.
func (s *Store) Collect(ctx context.Context) (blobs int, bytes int64, err error) {
	return blobs, bytes, s.locked(ctx, func() error {
		if err := errors.Join(s.collectRemoved(), s.collectUploads()); err != nil {
			return err
		}
		repositories, err := s.List()
		if err != nil {
			return err
		}
		used := map[digest.Digest]bool{}
		for _, r := range repositories {
			if err := s.collectLinks(r.Name, used); err != nil {
				return err
			}
		}
		blobs, bytes, err = s.collectBlobs(used)
		return err
	})
}

func (s *Store) old(info fs.FileInfo) bool { return s.now().Sub(info.ModTime()) > restTime }

// collectRemoved removes what is left of repositories whose removal was cut short: no removal is under way while the
// store is locked.
func (s *Store) collectRemoved() error {
	return s.each("repositories", func(path string, entry fs.DirEntry) error {
		if !strings.HasPrefix(entry.Name(), removing) {
			return nil
		}
		return os.RemoveAll(path)
	})
}

func (s *Store) collectUploads() error {
	return s.each("uploads", func(path string, entry fs.DirEntry) error {
		info, err := os.Stat(filepath.Join(path, "data"))
		if errors.Is(err, fs.ErrNotExist) { // it was being begun or ended
			info, err = entry.Info()
		}
		if err != nil || !s.old(info) {
			return err
		}
		return os.RemoveAll(path)
	})
}

// collectLinks removes the links of a repository to blobs that no manifest of it has, and notes what is used.
func (s *Store) collectLinks(name string, used map[digest.Digest]bool) error {
	manifests, err := s.Manifests(name)
	if err != nil {
		return err
	}
	own := map[digest.Digest]bool{}
	for _, m := range manifests {
		used[m.Digest] = true
		for _, blob := range m.Blobs {
			own[blob] = true
		}
	}
	dir, err := filepath.Rel(s.dir, filepath.Join(s.repository(name), "layers"))
	if err != nil {
		return err
	}
	return s.each(dir, func(path string, entry fs.DirEntry) error {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum := digest.NewDigestFromEncoded(digest.SHA256, entry.Name())
		if own[sum] || !s.old(info) {
			used[sum] = true
			return nil
		}
		return os.Remove(path)
	})
}

func (s *Store) collectBlobs(used map[digest.Digest]bool) (blobs int, bytes int64, err error) {
	all, err := s.blobs().List()
	for _, b := range all {
		if used[b.Digest] || b.Digest == "" && s.now().Sub(b.Used) <= restTime { // in use, or being written
			continue
		}
		if err := b.Remove(); err != nil {
			return blobs, bytes, err
		}
		blobs++
		bytes += b.Size
	}
	return blobs, bytes, err
}

// each calls fn for each entry of a directory.
func (s *Store) each(dir string, fn func(path string, entry fs.DirEntry) error) error {
	dir = filepath.Join(s.dir, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for what nothing refers to: %w", err)
	}
	for _, entry := range entries {
		if err := fn(filepath.Join(dir, entry.Name()), entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what nothing refers to: %w", err)
		}
	}
	return nil
}
