// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

func TestCheckMachines(t *testing.T) {
	t.Parallel()
	of := func(minor string) release.Release {
		found, err := release.All().OfMinor(minor)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	machine := func(name, minor string) v1alpha1.Machine {
		return v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{ImageID: ami.OfRelease(of(minor))}}
	}
	group := func(name, wanted, has string) v1alpha1.NodeGroup {
		return v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{Name: name, Version: wanted}, Status: v1alpha1.NodeGroupStatus{Version: has}}
	}
	for name, c := range map[string]struct {
		to       string
		machines []v1alpha1.Machine
		groups   []v1alpha1.NodeGroup
		says     string
	}{
		"nothing":                   {"1.36", nil, nil, ""},
		"all fit":                   {"1.36", []v1alpha1.Machine{machine("i-1", "1.34"), machine("i-2", "1.36")}, []v1alpha1.NodeGroup{group("a", "", "1.36"), group("b", "1.35", "1.37"), group("new", "", "")}, ""},
		"a newer machine":           {"1.36", []v1alpha1.Machine{machine("i-1", "1.37"), machine("i-2", "1.36")}, nil, "machine i-1: machines of 1.37 would be newer than their cluster, which runs 1.36"},
		"a group that has machines": {"1.36", nil, []v1alpha1.NodeGroup{group("a", "", "1.37")}, "node group a: machines of 1.37 would be newer than their cluster, which runs 1.36"},
		"a group that is to have":   {"1.36", nil, []v1alpha1.NodeGroup{group("a", "1.37", "1.36")}, "node group a: machines of 1.37 would be newer than their cluster, which runs 1.36"},
		"all of it": {
			"1.35",
			[]v1alpha1.Machine{machine("i-1", "1.37"), machine("i-2", "1.36")},
			[]v1alpha1.NodeGroup{group("a", "1.37", ""), group("b", "", "1.36")},
			"machine i-1, node group a: machines of 1.37 would be newer than their cluster, which runs 1.35; machine i-2, node group b: machines of 1.36 would be newer than their cluster, which runs 1.35",
		},
	} {
		err, want := CheckMachines(of(c.to), c.machines, c.groups), ""
		if c.says != "" {
			want = "spec.version: machines keep the cluster from " + c.to + ": " + c.says + "; update the node groups first, by UpdateNodegroupVersion or spec.version of a NodeGroup"
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
