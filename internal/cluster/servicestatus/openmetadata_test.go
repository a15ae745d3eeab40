// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"slices"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestOpenMetadata(t *testing.T) {
	machine := func(group, cluster, profile string, hops int32) v1alpha1.Machine {
		return v1alpha1.Machine{Spec: v1alpha1.MachineSpec{
			ClusterName: cluster, NodeGroup: group, InstanceProfile: profile, MetadataOptions: &v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: hops},
		}}
	}
	got := openMetadata([]v1alpha1.Machine{
		machine("a", "blue", "nodes", 2), machine("a", "blue", "nodes", 3), machine("b", "blue", "nodes", 1), machine("c", "blue", "", 2), machine("d", "red", "nodes", 2), {Spec: v1alpha1.MachineSpec{ClusterName: "blue", InstanceProfile: "nodes"}},
	}, "blue")
	want := []string{"pods on 2 machines of node group a can take the role of the node: httpPutResponseHopLimit is more than 1 there"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
