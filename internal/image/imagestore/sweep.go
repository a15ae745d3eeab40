// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/filelock"
)

// sweep removes blobs that no image has, and what was left of loads that were cut short.
func (s *Store) sweep(c catalogue) error {
	used := map[digest.Digest]bool{}
	for _, e := range c.Entries {
		for _, blob := range e.Blobs() {
			used[blob.Digest] = true
		}
	}
	if err := s.removeUnused(s.dir(), used); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir())
	if err != nil {
		return fmt.Errorf("looking for what is left of loads: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ingestPrefix) {
			if err := removeAbandoned(filepath.Join(s.dir(), entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeAbandoned removes the directory of a load whose process has ended: that process held its lock.
func removeAbandoned(dir string) error {
	release, err := filelock.Take(dir, lockName)
	if errors.Is(err, filelock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return os.RemoveAll(dir)
}

// unusedName is the file, beside a directory of blobs, that says since when some are used by nothing.
const unusedName = "unused.json"

// removeUnused removes the blobs below a directory that have not been used for an hour.
func (s *Store) removeUnused(dir string, used map[digest.Digest]bool) error {
	record := filepath.Join(dir, unusedName)
	before := map[string]time.Time{}
	if content, err := os.ReadFile(record); err == nil {
		_ = json.Unmarshal(content, &before) // damaged: the hour begins anew
	}
	blobs, err := blobsOf(dir).List()
	if err != nil {
		return err
	}
	now, still := s.now(), map[string]time.Time{}
	for _, blob := range blobs {
		if used[blob.Digest] {
			continue
		}
		since, ok := before[blob.Name]
		if !ok || since.After(now) {
			since = now
		}
		if now.Sub(since) < unusedFor {
			still[blob.Name] = since
			continue
		}
		if err := blob.Remove(); err != nil {
			return err
		}
	}
	content, err := json.Marshal(still)
	if err != nil {
		return fmt.Errorf("recording which blobs nothing uses: %w", err)
	}
	return atomicfile.Replace(record, content, 0o600)
}
