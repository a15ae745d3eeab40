// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"muster.dev/muster/internal/platform/release"
)

// releaseOf is the release of Kubernetes that a cluster asks for by its version.
func releaseOf(wanted string) (release.Release, error) {
	found, err := release.All().Of(wanted)
	if err != nil {
		return release.Release{}, fmt.Errorf("spec.version: %w", err)
	}
	return found, nil
}
