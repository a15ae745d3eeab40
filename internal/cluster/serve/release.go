// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/version"
)

// releaseOf is the release of Kubernetes that a cluster asks for by its version; the newest if it asks for none. There is one, whose programs
// lie with Muster's own.
func releaseOf(binDir, wanted string) (component.Release, error) {
	if asked := cmp.Or(wanted, version.Kubernetes); asked != version.Kubernetes {
		return component.Release{}, fmt.Errorf("spec.version: there are no programs of Kubernetes %s: write %s, or leave it out", asked, version.Kubernetes)
	}
	return component.Release{Version: version.Kubernetes, Programs: binDir}, nil
}
