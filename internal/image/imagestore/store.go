// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/blobstore"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	lockName  = "lock"
	indexName = "index.json"
	// pollInterval is how often a lock that somebody has is tried.
	pollInterval = 20 * time.Millisecond
	// unusedFor is how long a blob stays after its last image: a machine may be about to unpack it.
	unusedFor = time.Hour
)

// Store is the images of one state directory.
type Store struct {
	state statedir.Dir
	now   func() time.Time
}

// New makes a Store. Nothing is read or made yet.
func New(state statedir.Dir) *Store { return &Store{state: state, now: time.Now} }

func (s *Store) dir() string { return s.state.Images() }

// locked calls fn while no other process changes the store.
func (s *Store) locked(ctx context.Context, fn func() error) error {
	if err := os.MkdirAll(string(s.blobs()), 0o700); err != nil {
		return fmt.Errorf("making the directory of images: %w", err)
	}
	for {
		release, err := filelock.Take(s.dir(), lockName)
		if err == nil {
			defer release()
			return fn()
		}
		if !errors.Is(err, filelock.ErrTaken) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another change of images: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// List lists the images.
func (s *Store) List() ([]Entry, error) {
	c, err := s.read()
	return c.Entries, err
}

func (s *Store) read() (catalogue, error) {
	var c catalogue
	content, err := os.ReadFile(filepath.Join(s.dir(), indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading which images are loaded: %w", err)
	}
	return c, nil
}

func (s *Store) write(c catalogue) error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("writing which images are loaded: %w", err)
	}
	return atomicfile.Write(filepath.Join(s.dir(), indexName), append(content, '\n'), 0o600)
}

// Add adds images, whose blobs were ingested, for the clusters with some namespaces; for all if there are none.
func (s *Store) Add(ctx context.Context, from *Ingest, images []loadedimages.Image, namespaces []string) error {
	return s.locked(ctx, func() error {
		c, err := s.read()
		if err != nil {
			return err
		}
		for _, image := range images {
			for _, blob := range image.Blobs() {
				if err := from.keep(blob); err != nil {
					return err
				}
			}
			c = c.put(Entry{Image: image, Namespaces: namespaces, Loaded: s.now().UTC().Truncate(time.Second)})
		}
		if err := s.blobs().Sync(); err != nil {
			return err
		}
		return s.change(c)
	})
}

// Remove takes names away: from the clusters with some namespaces, or everywhere if there are none.
func (s *Store) Remove(ctx context.Context, names, namespaces []string) error {
	return s.locked(ctx, func() error {
		c, err := s.read()
		if err != nil {
			return err
		}
		for _, name := range names {
			if c, err = c.remove(name, namespaces); err != nil {
				return err
			}
		}
		return s.change(c)
	})
}

// change writes what is loaded, and shows it to the machines of all clusters.
func (s *Store) change(c catalogue) error {
	if err := s.write(c); err != nil {
		return err
	}
	clusters, err := s.state.ListClusters()
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if err := s.show(c, cluster); err != nil {
			return err
		}
	}
	return s.sweep(c)
}

// Show makes the directory of a cluster as its machines are to see it, and returns its path.
func (s *Store) Show(ctx context.Context, cluster statedir.Cluster) (string, error) {
	err := s.locked(ctx, func() error {
		c, err := s.read()
		if err != nil {
			return err
		}
		return s.show(c, cluster)
	})
	return cluster.Images(), err
}

// show links the blobs, then replaces the index, then removes blobs that nothing names any more.
func (s *Store) show(c catalogue, cluster statedir.Cluster) error {
	if _, err := os.Stat(string(cluster)); err != nil {
		return fmt.Errorf("showing images to the machines of a cluster: %w", err)
	}
	index := c.of(cluster.Namespace())
	used := map[digest.Digest]bool{}
	if err := os.MkdirAll(string(blobsOf(cluster.Images())), 0o700); err != nil {
		return fmt.Errorf("showing images to the machines of a cluster: %w", err)
	}
	for _, image := range index.Images {
		for _, blob := range image.Blobs() {
			used[blob.Digest] = true
			err := os.Link(s.blobs().Path(blob.Digest), blobsOf(cluster.Images()).Path(blob.Digest))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("showing image %s to the machines of a cluster: %w", image.Name, err)
			}
		}
	}
	content, _, err := index.Encode()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(cluster.Images(), loadedimages.IndexFile), content, 0o600); err != nil {
		return err
	}
	return s.removeUnused(cluster.Images(), used)
}

// Shown is what a cluster's machines see, by the version that they report.
func (s *Store) Shown(cluster statedir.Cluster) (index loadedimages.Index, version string, err error) {
	return loadedimages.Read(cluster.Images())
}

// blobsOf is where the blobs of a directory are.
func blobsOf(dir string) blobstore.Dir {
	return blobstore.Dir(filepath.Join(dir, ocispec.ImageBlobsDir, string(digest.SHA256)))
}

func (s *Store) blobs() blobstore.Dir { return blobsOf(s.dir()) }
