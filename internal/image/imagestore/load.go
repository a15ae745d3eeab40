// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"

	"muster.dev/muster/internal/node/loadedimages"
)

// Load adds the images that a function reads, and their blobs with them, for the clusters with some namespaces; for all
// if there are none. Nothing is left of a load that fails.
func (s *Store) Load(ctx context.Context, namespaces []string, read func(*Ingest) ([]loadedimages.Image, error)) ([]loadedimages.Image, error) {
	ingest, err := s.Begin()
	if err != nil {
		return nil, err
	}
	images, err := read(ingest)
	if err == nil {
		err = s.Add(ctx, ingest, images, namespaces)
	}
	if ended := ingest.End(); err == nil {
		err = ended
	}
	return images, err
}
