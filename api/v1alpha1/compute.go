// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NodePoolName is the name of a node pool that the control plane makes, by EKS's name.
//
// +kubebuilder:validation:Enum=general-purpose;system
type NodePoolName string

// The node pools that a control plane can make.
const (
	// PoolGeneralPurpose is for all pods.
	PoolGeneralPurpose NodePoolName = "general-purpose"
	// PoolSystem is for pods that tolerate the taint CriticalAddonsOnly.
	PoolSystem NodePoolName = "system"
)

// NodePoolNames lists the node pools, in EKS's order.
func NodePoolNames() []NodePoolName { return []NodePoolName{PoolGeneralPurpose, PoolSystem} }

// ClusterCompute is the computeConfig of EKS Auto Mode: Karpenter runs in the control plane, launches local machines for pending pods, and ends
// machines that are not needed.
//
// +kubebuilder:validation:XValidation:rule="self.enabled || !has(self.nodePools) || size(self.nodePools) == 0",message="nodePools are for compute that is enabled: leave them out, or set enabled to true"
type ClusterCompute struct {
	// Enabled has Karpenter run in the control plane. Once it is false, the machines that Karpenter launched are drained and end, and then
	// Karpenter does.
	Enabled bool `json:"enabled"`

	// NodePools are the node pools that the control plane makes: general-purpose, system, both or none. A pool whose name is taken out is
	// deleted, and its machines with it. Pools of one's own can stand beside them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	NodePools []NodePoolName `json:"nodePools,omitempty"`

	// NodeRole is the IAM role of the machines, by name or ARN. Empty means the cluster's own role, which node groups without a role have, too.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	NodeRole string `json:"nodeRole,omitempty"`
}

// On reports whether Karpenter is to run in the control plane.
func (c *ClusterCompute) On() bool { return c != nil && c.Enabled }

// ComputeRole returns the IAM role of the machines that the control plane launches, by name or ARN, whether or not it launches any.
func (c *Cluster) ComputeRole() string {
	if c.Spec.Compute != nil && c.Spec.Compute.NodeRole != "" {
		return c.Spec.Compute.NodeRole
	}
	return ClusterNodeRole(c.Namespace)
}

// validate applies the rules of the schema.
func (c *ClusterCompute) validate(path *field.Path) (errs field.ErrorList) {
	if c == nil {
		return nil
	}
	for i, name := range c.NodePools {
		switch {
		case !slices.Contains(NodePoolNames(), name):
			errs = append(errs, field.NotSupported(path.Child("nodePools").Index(i), name, NodePoolNames()))
		case slices.Contains(c.NodePools[:i], name):
			errs = append(errs, field.Duplicate(path.Child("nodePools").Index(i), name))
		}
	}
	if len(c.NodeRole) > maxComputeRole {
		errs = append(errs, field.TooLong(path.Child("nodeRole"), "", maxComputeRole))
	}
	if !c.Enabled && len(c.NodePools) > 0 {
		errs = append(errs, field.Invalid(path, "enabled: false", "nodePools are for compute that is enabled: leave them out, or set enabled to true"))
	}
	return errs
}

// maxComputeRole is how many characters the name or ARN of a node role may have.
const maxComputeRole = 2048
