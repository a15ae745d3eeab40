// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// FargateProfiles is the kind FargateProfile.
func FargateProfiles() Kind {
	return Kind{
		Singular: "fargateprofile", Plural: "fargateprofiles", Aliases: []string{"fp"}, group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.FargateProfileList{} },
		columns: []column{
			columnName(),
			col(headingCluster, func(p *v1alpha1.FargateProfile) string { return p.Spec.ClusterName }),
			col("SELECTORS", selectorsOf),
			col("STATUS", func(p *v1alpha1.FargateProfile) string { return readiness.Word(p, p.Status.Conditions) }),
			columnAge(),
			col("ROLE", func(p *v1alpha1.FargateProfile) string { return p.Spec.PodExecutionRoleARN }).onlyWide(),
			columnMessage(func(p *v1alpha1.FargateProfile) []metav1.Condition { return p.Status.Conditions }),
		},
	}
}

// selectorsOf are the selectors of a profile as the command line takes them, with blanks in between.
func selectorsOf(p *v1alpha1.FargateProfile) string {
	all := make([]string, 0, len(p.Spec.Selectors))
	for _, s := range p.Spec.Selectors {
		parts := []string{"namespace=" + s.Namespace}
		for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
			parts = append(parts, key+"="+string(s.Labels[key]))
		}
		all = append(all, strings.Join(parts, ","))
	}
	return strings.Join(all, " ")
}
