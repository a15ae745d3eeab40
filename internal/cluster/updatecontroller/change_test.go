// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// A version is forced for the minor that the update names, and a later update without force takes that back.
func TestForcedVersion(t *testing.T) {
	t.Parallel()
	c := &v1alpha1.Cluster{}
	for _, step := range []struct {
		change          v1alpha1.UpdateChange
		version, forced string
	}{
		{v1alpha1.UpdateChange{Version: "1.36"}, "1.36", ""},
		{v1alpha1.UpdateChange{Version: "1.37", Force: true}, "1.37", "1.37"},
		{v1alpha1.UpdateChange{DeletionProtection: new(true)}, "1.37", "1.37"},
		{v1alpha1.UpdateChange{Version: "1.36"}, "1.36", ""},
	} {
		changeCluster(c, "u", step.change)
		if got := c.Annotations[v1alpha1.AnnotationForceVersion]; got != step.forced || c.Spec.Version != step.version {
			t.Errorf("after %+v: %s, forced is %q", step.change, c.Spec.Version, got)
		}
	}
}
