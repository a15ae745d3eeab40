// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// The log types that are switched are those of the object, at once, and nothing of the cluster begins again for it.
func TestLogTypesFollowTheObject(t *testing.T) {
	s := newService(t)
	h := newHosted(t.Context(), s, newCluster(t))
	s.hosted[h.dir] = h
	wanted := clusterconfig.Default(2, v1alpha1.ProviderSimulated)
	if _, err := clusterconfig.Save(h.dir.Record(), wanted); err != nil {
		t.Fatal(err)
	}
	if got := configurations(s); len(got) != 0 {
		t.Errorf("a cluster that is being prepared: %v", got)
	}
	h.specs.Dir, h.specs.Cluster = h.dir, *wanted.Cluster
	object := wanted.Cluster.DeepCopy()
	for _, types := range [][]v1alpha1.LoggingType{nil, {"audit"}, {"api", "audit"}, nil} {
		object.Spec.EKS.LoggingTypes = types
		if err := h.adopt(object, anyRelease, anySettings); err != nil {
			t.Fatal(err)
		}
		if got := configurations(s); len(got) != 1 || !slices.Equal(got[0].Cluster.Spec.EKS.LoggingTypes, types) || len(h.reload) != 0 {
			t.Errorf("%v: %+v, and %d reloads wait", types, got, len(h.reload))
		}
	}
}
