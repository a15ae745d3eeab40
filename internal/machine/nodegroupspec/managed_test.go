// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
)

// The labels of a node of EKS, as a real cluster's user data had them in 2022.
func TestManagedLabels(t *testing.T) {
	t.Parallel()
	machine := func(group string, template *v1alpha1.NodeGroupLaunchTemplate) *v1alpha1.Machine {
		return &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{NodeGroup: group, LaunchTemplate: template}}
	}
	const image = "ami-0ec9e1727a24fb788"
	for name, test := range map[string]struct {
		is   *v1alpha1.Machine
		want map[string]string
	}{
		"a launch template": {machine("ng1-public-ssh", &v1alpha1.NodeGroupLaunchTemplate{ID: "lt-000b4417a7baebbf8", Version: 1}), map[string]string{
			"eks.amazonaws.com/nodegroup": "ng1-public-ssh", "eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup-image": image,
			"eks.amazonaws.com/sourceLaunchTemplateId": "lt-000b4417a7baebbf8", "eks.amazonaws.com/sourceLaunchTemplateVersion": "1",
		}},
		"one without id": {machine("Web_1", &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "m5.large"}), map[string]string{
			"eks.amazonaws.com/nodegroup": "Web_1", "eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup-image": image,
		}},
		"no value of a label": {machine("web_", nil), map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup-image": image}},
		"no node group":       {machine("", nil), nil},
	} {
		if diff := cmp.Diff(test.want, ManagedLabels(test.is, image)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
