// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ClusterControlPlane sets the size of the control plane of a cluster.
type ClusterControlPlane struct {
	// Replicas is how many API servers serve at a time. With 2, the end of one closes its connections and nothing else. It can be changed at any
	// time, without a failed call. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	Replicas *int32 `json:"replicas,omitempty"`
}

// MaxReplicas is how many API servers of a cluster serve at a time, at most.
const MaxReplicas = 2

// Servers is how many API servers are to serve.
func (c ClusterControlPlane) Servers() int {
	if c.Replicas == nil {
		return 1
	}
	return int(min(max(*c.Replicas, 1), MaxReplicas))
}
