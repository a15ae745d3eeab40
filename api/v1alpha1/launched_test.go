// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLaunched(t *testing.T) {
	for name, test := range map[string]struct {
		spec NodeGroupSpec
		want *NodeGroupLaunchTemplate
	}{
		"nothing":         {NodeGroupSpec{}, nil},
		"types":           {NodeGroupSpec{InstanceTypes: []string{"t3.small", "t3.large"}}, &NodeGroupLaunchTemplate{InstanceType: "t3.small"}},
		"a template":      {NodeGroupSpec{LaunchTemplate: &NodeGroupLaunchTemplate{UserData: "x"}}, &NodeGroupLaunchTemplate{UserData: "x"}},
		"both":            {NodeGroupSpec{LaunchTemplate: &NodeGroupLaunchTemplate{UserData: "x"}, InstanceTypes: []string{"t3.small"}}, &NodeGroupLaunchTemplate{UserData: "x", InstanceType: "t3.small"}},
		"both with types": {NodeGroupSpec{LaunchTemplate: &NodeGroupLaunchTemplate{InstanceType: "m5.large"}, InstanceTypes: []string{"t3.small"}}, &NodeGroupLaunchTemplate{InstanceType: "m5.large"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.spec.DeepCopy()
			if diff := cmp.Diff(test.want, test.spec.Launched()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*before, test.spec); diff != "" {
				t.Errorf("the group was changed:\n%s", diff)
			}
		})
	}
}
