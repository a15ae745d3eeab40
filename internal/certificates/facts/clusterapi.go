// SPDX-License-Identifier: Apache-2.0

package facts

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/internal/certificates/policy"
)

// Labels and kinds of Cluster API (sigs.k8s.io/cluster-api, api/core/v1beta2).
const (
	clusterAPIGroup      = "cluster.x-k8s.io"
	deploymentNameLabel  = "cluster.x-k8s.io/deployment-name"
	clusterAPIKind       = "Machine"
	clusterAPIListSuffix = "List"
)

// capiMachine is a Machine of Cluster API, as much of it as is looked at: v1beta1 and v1beta2 are the same in that.
type capiMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ClusterName string `json:"clusterName"`
	} `json:"spec"`
	Status capiStatus `json:"status"`
}

type capiStatus struct {
	NodeRef *struct {
		Name string `json:"name"`
	} `json:"nodeRef,omitempty"`
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
}

// DeepCopyObject copies it.
func (m *capiMachine) DeepCopyObject() runtime.Object {
	out := *m
	m.DeepCopyInto(&out.ObjectMeta)
	if m.Status.NodeRef != nil {
		ref := *m.Status.NodeRef
		out.Status.NodeRef = &ref
	}
	out.Status.Addresses = append([]corev1.NodeAddress(nil), m.Status.Addresses...)
	return &out
}

type capiMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []capiMachine `json:"items"`
}

// DeepCopyObject copies it.
func (l *capiMachineList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		if m, ok := l.Items[i].DeepCopyObject().(*capiMachine); ok {
			out.Items = append(out.Items, *m)
		}
	}
	return &out
}

// NewClusterAPI makes the source "clusterAPI": the Machines of a Cluster API management cluster, whose addresses
// infrastructure providers write. It is to be trusted if nodes of the workload cluster cannot write there. c.Objects is
// what ClusterAPIMachines returns.
//
// The ID of a machine is its namespace and name, which never change. Its providerID may come when its node has
// registered, and a node whose machine has another ID than before counts as replaced.
func NewClusterAPI(c WatchConfig) (*Watch, error) {
	if c.Name == "" {
		c.Name = "clusterAPI"
	}
	return newWatch(c, objects{
		example: &capiMachine{},
		read: func(o any) (policy.Machine, bool) {
			m, ok := o.(*capiMachine)
			if !ok || c.ClusterName != "" && m.Spec.ClusterName != c.ClusterName {
				return policy.Machine{}, false
			}
			return m.machine(), true
		},
		trim: trimClusterAPI,
	})
}

func (m *capiMachine) machine() policy.Machine {
	out := policy.Machine{ID: m.Namespace + "/" + m.Name, Deleting: m.DeletionTimestamp != nil, Group: m.Labels[deploymentNameLabel], Created: m.CreationTimestamp.Time}
	for _, a := range m.Status.Addresses {
		assigned(&out, a.Type, a.Address)
	}
	out.NodeName = m.nodeName()
	return out
}

// nodeName is the node's, or the one that it will have: until it has registered, the provider's name of the host.
func (m *capiMachine) nodeName() string {
	if m.Status.NodeRef != nil && m.Status.NodeRef.Name != "" {
		return m.Status.NodeRef.Name
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS} {
		for _, a := range m.Status.Addresses {
			if name := canonicalName(a.Address); a.Type == kind && validName(name) {
				return name
			}
		}
	}
	return ""
}

func trimClusterAPI(o any) {
	if m, ok := o.(*capiMachine); ok {
		group, named := m.Labels[deploymentNameLabel]
		m.ManagedFields, m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil, nil
		if named {
			m.Labels = map[string]string{deploymentNameLabel: group}
		}
	}
}
