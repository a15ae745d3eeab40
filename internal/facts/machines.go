// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/policy"
)

// Machines lists and watches the Machines of a management plane.
func Machines(config *rest.Config) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	c := rest.CopyConfig(config)
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
	out := policy.Machine{ID: m.Name, NodeName: m.Status.NodeName, Deleting: m.DeletionTimestamp != nil}
	for _, a := range m.Status.Addresses {
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Zone() == "" {
				out.Addresses = append(out.Addresses, ip.Unmap())
			}
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName:
			out.Names = append(out.Names, strings.ToLower(strings.TrimSuffix(a.Address, ".")))
		}
	}
	return out
}

// namesOf returns every name and address of a machine, in the text in which requests ask for them.
func namesOf(m policy.Machine) []string {
	names := slices.Clone(m.Names)
	if m.NodeName != "" {
		names = append(names, m.NodeName)
	}
	for _, a := range m.Addresses {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// trim drops what nobody here reads, so that thousands of machines stay small.
func trim(o any) (any, error) {
	if m, ok := o.(*v1alpha1.Machine); ok {
		m.ManagedFields, m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil, nil
		m.Spec = v1alpha1.MachineSpec{ClusterName: m.Spec.ClusterName}
		m.Status = v1alpha1.MachineStatus{NodeName: m.Status.NodeName, Addresses: m.Status.Addresses}
	}
	return o, nil
}

// index computes the keys of a machine, none for those of other clusters.
func (i *Inventory) index(keys func(policy.Machine) []string) cache.IndexFunc {
	return func(o any) ([]string, error) {
		m, ok := o.(*v1alpha1.Machine)
		if !ok || !i.mine(m) {
			return nil, nil
		}
		return slices.DeleteFunc(keys(machineOf(m)), func(k string) bool { return k == "" }), nil
	}
}

// handler turns events into changes. Most updates of a Machine, such as a step of its joining, change nothing here.
func (i *Inventory) handler(onChange func(Change)) cache.ResourceEventHandler {
	machine := func(o any) (policy.Machine, bool) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		m, ok := o.(*v1alpha1.Machine)
		if !ok || !i.mine(m) {
			return policy.Machine{}, false
		}
		return machineOf(m), true
	}
	tell := func(o any) {
		if m, ok := machine(o); ok {
			onChange(changeOf(m))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			a, okA := machine(before)
			b, okB := machine(after)
			if okA && okB && !reflect.DeepEqual(a, b) {
				onChange(changeOf(a, b))
			}
		},
	}
}

func changeOf(machines ...policy.Machine) Change {
	var c Change
	for _, m := range machines {
		c.Machines = append(c.Machines, m.ID)
		if m.NodeName != "" {
			c.Nodes = append(c.Nodes, m.NodeName)
		}
		c.Names = append(c.Names, namesOf(m)...)
	}
	for _, list := range []*[]string{&c.Machines, &c.Nodes, &c.Names} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c
}
