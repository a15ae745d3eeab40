// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/api/v1alpha1"
)

// ManagedPrefix is the prefix of the labels that EKS gives the nodes of managed node groups. Users of its API cannot
// set labels below it.
const ManagedPrefix = "eks.amazonaws.com/"

// ManagedLabels are the labels that the Node of a machine has because it is of a node group, by EKS's names: eksctl
// finds by them the nodes to drain. A machine of no node group has none. The image is that of the machine. A launch
// template that is nowhere but in the node group has no id to tell, and the name of a group that cannot be the value of
// a label, such as web_, is left out: a kubelet does not start with it.
func ManagedLabels(m *v1alpha1.Machine, image string) map[string]string {
	if m.Spec.NodeGroup == "" {
		return nil
	}
	labels := map[string]string{ManagedPrefix + "capacityType": "ON_DEMAND", ManagedPrefix + "nodegroup-image": image}
	if len(validation.IsValidLabelValue(m.Spec.NodeGroup)) == 0 {
		labels[ManagedPrefix+"nodegroup"] = m.Spec.NodeGroup
	}
	if t := m.Spec.LaunchTemplate; t != nil && t.ID != "" {
		labels[ManagedPrefix+"sourceLaunchTemplateId"] = t.ID
		labels[ManagedPrefix+"sourceLaunchTemplateVersion"] = strconv.FormatInt(t.Version, 10)
	}
	return labels
}
