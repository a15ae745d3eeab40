// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/watchretry"
)

// Machines are the Machines of the management plane, which nodes cannot write. It is safe for use by many at once.
type Machines struct{ informer *watchretry.Informer }

var _ Instances = (*Machines)(nil)

// NewMachines makes a watch that knows nothing until Run has listed.
func NewMachines(api client.WithWatch) *Machines {
	return &Machines{NewInformer(api, &v1alpha1.Machine{}, &v1alpha1.MachineList{}, "")}
}

// Run watches until the context ends.
func (m *Machines) Run(ctx context.Context) { m.informer.Run(ctx) }

// Wait returns when all machines have been listed once; the error is the context's.
func (m *Machines) Wait(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), m.informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// Tell has the service hear of changes of machines that concern identities: their status changes all the time. It is
// called before Run.
func (m *Machines) Tell(service *Service) {
	m.informer.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { service.InstancesChanged(o.(*v1alpha1.Machine).Name) },
		UpdateFunc: func(old, now any) { machineChanged(service, old.(*v1alpha1.Machine), now.(*v1alpha1.Machine)) },
		DeleteFunc: func(o any) {
			if machine, ok := o.(*v1alpha1.Machine); ok {
				service.InstancesChanged(machine.Name)
			}
		},
	})
}

func machineChanged(service *Service, old, now *v1alpha1.Machine) {
	if old.UID != now.UID || old.Spec.InstanceProfile != now.Spec.InstanceProfile || old.Status.NodeName != now.Status.NodeName {
		service.InstancesChanged(now.Name)
	}
}

// Get finds a machine by its id. One that is being deleted is there until its instance is gone.
func (m *Machines) Get(id string) (*v1alpha1.Machine, bool) {
	object, exists, err := m.informer.Store().GetByKey(id)
	if err != nil || !exists {
		return nil, false
	}
	machine, ok := object.(*v1alpha1.Machine)
	return machine, ok
}

// Lookup implements [Instances].
func (m *Machines) Lookup(id string) (Instance, bool) {
	machine, ok := m.Get(id)
	if !ok {
		return Instance{}, false
	}
	return Instance{
		Profile: machine.Spec.InstanceProfile, PrivateDNSName: machine.Status.NodeName, Cluster: machine.Spec.ClusterName,
		Fargate: machine.Spec.Fargate != nil,
	}, true
}

// Of reports whether a machine is there and a cluster's, by the cluster's name.
func (m *Machines) Of(cluster, id string) bool {
	machine, ok := m.Get(id)
	return ok && machine.Spec.ClusterName == cluster
}

// OfNode finds a cluster's machine by the name of its node; no machine has the empty name.
func (m *Machines) OfNode(cluster, node string) (*v1alpha1.Machine, bool) {
	if node == "" {
		return nil, false
	}
	for _, object := range m.informer.Store().List() {
		if machine, ok := object.(*v1alpha1.Machine); ok && machine.Spec.ClusterName == cluster && machine.Status.NodeName == node {
			return machine, true
		}
	}
	return nil, false
}
