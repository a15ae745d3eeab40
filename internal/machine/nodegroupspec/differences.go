// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
)

// Differences lists the fields in which a node group differs from the requested one of the same cluster, "" if there
// are none. A value with the same effect is not a difference, such as a default that only one of them names.
func Differences(there, wanted *v1alpha1.NodeGroup) string {
	is, asked := &there.Spec, &wanted.Spec
	var differences []string
	note := func(field string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			differences = append(differences, fmt.Sprintf("%s %v, not %v", field, a, b))
		}
	}
	note("name", is.Name, asked.Name)
	note("provider", is.Provider, asked.Provider)
	version := cmp.Or(is.Version, there.Status.Version)
	note("version", version, cmp.Or(asked.Version, version))
	note("isolation", cmp.Or(Isolation(is.Provider, is.Isolation), "none"), cmp.Or(Isolation(asked.Provider, asked.Isolation), "none"))
	note("simulatePods", is.SimulatePods, asked.SimulatePods)
	note("bootstrap", Bootstrap(is), Bootstrap(asked))
	note("nodeRole", cmp.Or(there.Role(), "none"), cmp.Or(wanted.Role(), "none"))
	note("minSize", is.ScalingConfig.MinSize, asked.ScalingConfig.MinSize)
	note("maxSize", is.ScalingConfig.MaxSize, asked.ScalingConfig.MaxSize)
	note("desiredSize", is.ScalingConfig.DesiredSize, asked.ScalingConfig.DesiredSize)
	note("nodeRepairConfig.enabled", is.EKS.Repairs(), asked.EKS.Repairs())
	note("labels", Labels(is.Labels), Labels(asked.Labels))
	note("taints", Taints(is.Taints), Taints(asked.Taints))
	return strings.Join(differences, "; ")
}

// Isolation returns what separates a machine of a provider from the host, by the default if the machine or its group
// does not say. Simulated machines run nothing and have none: "".
func Isolation(provider v1alpha1.Provider, isolation v1alpha1.Isolation) v1alpha1.Isolation {
	if !provider.Can(v1alpha1.RunPods) {
		return ""
	}
	return cmp.Or(isolation, v1alpha1.IsolationUserNamespace)
}

// Bootstrap returns how the machines of a group prove their identity, by the default if the spec does not say.
func Bootstrap(s *v1alpha1.NodeGroupSpec) v1alpha1.Bootstrap {
	if s.JoinsByRole() {
		return v1alpha1.BootstrapRole
	}
	return v1alpha1.BootstrapToken
}
