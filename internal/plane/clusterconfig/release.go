// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"fmt"

	"muster.dev/muster/internal/platform/release"
)

// ReleaseOf is the release of Kubernetes that a cluster asks for by its version.
func ReleaseOf(wanted string) (release.Release, error) {
	found, err := release.All().Of(wanted)
	if err != nil {
		return release.Release{}, fmt.Errorf("spec.version: %w", err)
	}
	return found, nil
}
