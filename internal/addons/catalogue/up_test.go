// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"slices"
	"testing"

	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/platform/programs"
)

// An add-on waits for its files; a cluster must come up without them.
func TestUpNeedsNoFilesOfAddons(t *testing.T) {
	for _, known := range catalogue.New() {
		for _, file := range known.Files() {
			if slices.Contains(programs.Machine(), file) || slices.Contains(programs.Plane(), file) {
				t.Errorf("muster up needs %s of add-on %s", file, known.Name)
			}
		}
	}
}
