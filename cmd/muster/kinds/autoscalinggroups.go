// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// AutoScalingGroups is the kind AutoScalingGroup, which is the account's.
func AutoScalingGroups() Kind {
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	return Kind{
		Singular: "autoscalinggroup", Plural: "autoscalinggroups", Aliases: []string{"asg"}, group: v1alpha1.GroupVersion.Group, ofAccount: true,
		List: func() client.ObjectList { return &v1alpha1.AutoScalingGroupList{} },
		columns: []column{
			columnName(),
			col("MIN", func(g *v1alpha1.AutoScalingGroup) string { return number(g.Spec.MinSize) }),
			col("MAX", func(g *v1alpha1.AutoScalingGroup) string { return number(g.Spec.MaxSize) }),
			col("DESIRED", func(g *v1alpha1.AutoScalingGroup) string { return number(g.Spec.DesiredCapacity) }),
			col("INSTANCES", func(g *v1alpha1.AutoScalingGroup) string { return strconv.Itoa(len(g.Status.Instances)) }),
			col("IN-SERVICE", func(g *v1alpha1.AutoScalingGroup) string { return number(g.Status.InService) }),
			col("STATUS", func(g *v1alpha1.AutoScalingGroup) string { return readiness.Word(g, g.Status.Conditions) }),
			columnAge(),
			col("TEMPLATE", templateOf).onlyWide(),
			columnMessage(func(g *v1alpha1.AutoScalingGroup) []metav1.Condition { return g.Status.Conditions }),
		},
	}
}

// templateOf is the launch template of a group, with its version.
func templateOf(g *v1alpha1.AutoScalingGroup) string {
	t := g.Spec.LaunchTemplate
	if p := g.Spec.MixedInstancesPolicy; p != nil {
		t = &p.LaunchTemplate
	}
	if t == nil {
		return ""
	}
	return t.Name + ":" + t.Version
}
