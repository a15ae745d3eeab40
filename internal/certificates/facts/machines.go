// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/watchretry"
)

// NewMachines makes the source "machines": the Machines of Muster's management plane, where nodes cannot write.
// c.Objects is what Machines returns.
func NewMachines(c WatchConfig) (*Watch, error) {
	if c.Name == "" {
		c.Name = "machines"
	}
	return newWatch(c, objects{
		example: &v1alpha1.Machine{},
		read: func(o any) (policy.Machine, bool) {
			m, ok := o.(*v1alpha1.Machine)
			if !ok || c.ClusterName != "" && m.Spec.ClusterName != c.ClusterName {
				return policy.Machine{}, false
			}
			return machineOf(m), true
		},
		elsewhere: func(o any) (id, cluster string, ok bool) {
			m, ok := o.(*v1alpha1.Machine)
			if !ok || c.ClusterName == "" || m.Spec.ClusterName == "" || m.Spec.ClusterName == c.ClusterName {
				return "", "", false
			}
			return m.Name, m.Spec.ClusterName, true
		},
		trim: trimMachine,
	})
}

// Machines lists and watches the Machines of a management plane.
func Machines(config *rest.Config) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of Machine: %w", err)
	}
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	c := rest.CopyConfig(config)
	watchretry.Wrap(c)
	c.GroupVersion = &v1alpha1.GroupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no protobuf
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for machines: %w", err)
	}
	return cache.NewListWatchFromClient(client, "machines", metav1.NamespaceAll, fields.Everything()), nil
}

// machineOf keeps what policies look at.
func machineOf(m *v1alpha1.Machine) policy.Machine {
	out := policy.Machine{ID: m.Name, NodeName: m.Status.NodeName, Deleting: m.DeletionTimestamp != nil, Group: m.Spec.NodeGroup, Created: m.CreationTimestamp.Time}
	for _, a := range m.Status.Addresses {
		assigned(&out, a.Type, a.Address)
	}
	return out
}

func trimMachine(o any) {
	if m, ok := o.(*v1alpha1.Machine); ok {
		m.ManagedFields, m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil, nil
		m.Spec = v1alpha1.MachineSpec{ClusterName: m.Spec.ClusterName, NodeGroup: m.Spec.NodeGroup}
		m.Status = v1alpha1.MachineStatus{NodeName: m.Status.NodeName, Addresses: m.Status.Addresses}
	}
}
