// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// The record follows the Cluster object, and the cluster the record; a mode that the cluster has left does not come
// back.
func TestRecordFollowsTheObject(t *testing.T) {
	h := newHosted(t.Context(), newService(t), newCluster(t))
	wanted := clusterconfig.Default(2, v1alpha1.ProviderSimulated)
	if _, err := clusterconfig.Save(h.dir.Record(), wanted); err != nil {
		t.Fatal(err)
	}
	object := wanted.Cluster.DeepCopy()
	expect := func(what string, want v1alpha1.ClusterSpec, reloads int) {
		t.Helper()
		err := h.adopt(object)
		if refused := what == "a mode before"; (err != nil) != refused {
			t.Errorf("%s: %v", what, err)
		}
		saved, err := clusterconfig.Read(h.dir.Record())
		if err != nil {
			t.Fatal(err)
		}
		if saved.Cluster.Spec.AccessConfig.AuthenticationMode != want.AccessConfig.AuthenticationMode || saved.Cluster.Spec.APIServer != want.APIServer || len(saved.NodeGroups) != 1 || len(h.reload) != reloads {
			t.Errorf("%s: the record is %+v, and %d reloads wait", what, saved.Cluster.Spec, len(h.reload))
		}
	}
	expect("the same", object.Spec, 0)
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationConfigMap
	expect("a mode before", wanted.Cluster.Spec, 0)
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationAPI
	object.Spec.APIServer.Port = 20443
	expect("a mode after, and a port", object.Spec, 1)
}
